# shellcheck shell=bash
# SQLAlchemy's own tests; TTL_LABELS is for a part of them, such as "test/orm test/sql/test_query.py".
. "$TTL_ECOSYSTEM/suite.sh"
use_pip
use_source sqlalchemy "$(sed -n 's/^SQLAlchemy==//p' requirements.txt)"

# All but those of speed and of types. Some fifteen minutes of processor time in each form.
tests=(test/base test/dialect test/engine test/ext test/orm test/sql)

one_form() { # FORM
    make_database sqlalchemy_tests "$1"
    PGUSER=postgres PGDATABASE=sqlalchemy_tests sql -c "CREATE EXTENSION hstore" -c "CREATE EXTENSION citext" \
        -c "CREATE SCHEMA test_schema AUTHORIZATION app" -c "CREATE SCHEMA test_schema_2 AUTHORIZATION app"
    (
        cd "$SOURCE"
        # shellcheck disable=SC2086 # a list
        python -m pytest -p no:cacheprovider -p no:logging -q -rfE --tb=line --maxfail=100000 \
            --dburi "postgresql+psycopg://app@$PGHOST:$PGPORT/sqlalchemy_tests" ${TTL_LABELS:-"${tests[@]}"} || true
    ) 2>&1 | tee log
    # The names of classes end with the driver and the server's version.
    sed -nE 's/^(FAILED|ERROR) (test[^ ]*).*$/\2/p' log | sed -E 's/_postgresql\+psycopg_[0-9_]+//' >"$1.failed"
    sed -nE '$s/^/,/; $s/[^0-9,a-z ]//g; $p' log | tr ',' '\n' |
        awk '/ (passed|failed|errors?) ?/ { n += $1 } END { print n + 0 }' >"$1.count"
}

compare_forms one_form
