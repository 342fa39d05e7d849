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
