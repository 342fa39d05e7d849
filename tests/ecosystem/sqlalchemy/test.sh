# shellcheck shell=bash
# SQLAlchemy's ORM, and Alembic: the page's include_object is what keeps it quiet.
use_pip

alembic upgrade head
expect_ttl cart
python checks.py

if WITHOUT_KEEP_TTL=1 alembic check; then
    echo "FAILED: Alembic does not see our columns, so that include_object is for nothing"
    exit 1
fi
expect "Alembic is quiet" "$(alembic check)" "No new upgrade operations detected."

alembic downgrade 0001
expect "there and back: nothing is left" "$(WITHOUT_KEEP_TTL=1 alembic check 2>&1 | grep -c 'ttl\|_ts')" 0
alembic upgrade head
expect_ttl cart

# Another database, whose policy came to be in another way: Alembic and pg_dump see no difference.
PGUSER=postgres sql -d postgres -c "CREATE DATABASE sqlalchemy_other OWNER app"
PGUSER=postgres sql -d sqlalchemy_other -c "CREATE EXTENSION ttl_ext; GRANT CREATE ON SCHEMA public TO app"
(
    export PGDATABASE=sqlalchemy_other
    alembic upgrade 0001
    sql -c "SELECT ttl.enable('cart', 60)" -c "SELECT ttl.set_option('cart', 'hidden', 'off')" \
        -c "ALTER TABLE cart SET (ttl.default_ttl = '30 days', ttl.hidden = on)"
    alembic stamp head
)
python same_schema.py sqlalchemy sqlalchemy_other
echo "ok: two databases, by Alembic"
for name in sqlalchemy sqlalchemy_other; do
    # Newer ones have a line with a random key.
    pg_dump -s "$name" | sed '/^\\\(un\)\?restrict /d' >"$name.sql"
    grep -q 'SECURITY LABEL FOR ttl' "$name.sql"
done
diff sqlalchemy.sql sqlalchemy_other.sql
echo "ok: two databases, by pg_dump"
sql -d sqlalchemy_other -c "SELECT ttl.disable('cart', drop_columns => true)"
if python same_schema.py sqlalchemy sqlalchemy_other; then
    echo "FAILED: Alembic sees no difference where there is one"
    exit 1
fi
