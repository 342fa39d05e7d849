# shellcheck shell=bash
# psycopg and asyncpg: COPY, pipelines, prepared statements that a change of the default reaches.
use_pip
python use_psycopg.py
python use_asyncpg.py
