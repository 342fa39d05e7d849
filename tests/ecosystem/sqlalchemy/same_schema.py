"""Alembic compares the schemas of two databases. Says what differs; 1 if something does."""

import sys

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine

one, other = (create_engine(f"postgresql+psycopg:///{name}") for name in sys.argv[1:])
metadata = MetaData()
metadata.reflect(one)
assert metadata.tables, "no table is there to compare"
with other.connect() as connection:
    options = {"compare_type": True, "compare_server_default": True}
    differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
for difference in differences:
    print(difference)
sys.exit(1 if differences else 0)
