# shellcheck shell=bash
# pgvector: an index finds its nearest rows before expired ones are left out.
PGUSER=postgres sql -c "CREATE EXTENSION vector" || skip "PostgreSQL $PG_VERSION has no pgvector"
version_of "pgvector $(sql -c "SELECT extversion FROM pg_extension WHERE extname = 'vector'")"
sql -f docs.sql >/dev/null
sql -c "SELECT setseed(0.5)" -c "INSERT INTO docs SELECT n, (SELECT array_agg(random()) FROM generate_series(1, 16) WHERE n > 0)::vector
    FROM generate_series(1, 5000) n" >/dev/null
expire docs "id % 10 <> 0"
nearest="SELECT count(*) FROM (SELECT id FROM docs ORDER BY embedding <-> (SELECT array_agg(0.5) FROM generate_series(1, 16))::vector LIMIT 40) n"
found=$(sql -c "SET enable_seqscan = off" -c "$nearest")
echo "without iterative scans: $found of 40"
[ "$found" -lt 40 ]
expect "with them" "$( (cat iterative.sql && echo "SET enable_seqscan = off; $nearest") | sql)" 40
