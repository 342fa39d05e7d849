# shellcheck shell=bash
# Django's own test suite; TTL_LABELS takes a part of it, such as "queries schema".
. "$TTL_ECOSYSTEM/suite.sh"
use_pip
use_source django "$(sed -n 's/^Django==//p' requirements.txt)"

one_form() { # FORM
    make_database "django_template" "$1"
    # Which its tests would create, as a superuser.
    for extension in bloom btree_gin btree_gist citext hstore pg_trgm unaccent; do
        PGUSER=postgres PGDATABASE=django_template sql -c "CREATE EXTENSION $extension"
    done
    PGUSER=postgres PGDATABASE=postgres sql -c "ALTER ROLE app CREATEDB" -c "ALTER DATABASE django_template IS_TEMPLATE true"
    (
        cd "$SOURCE/tests"
        # shellcheck disable=SC2086 # a list
        PYTHONPATH=$SOURCE:$OLDPWD python runtests.py --settings=suite_settings --noinput --parallel=1 ${TTL_LABELS:-} || true
    ) 2>&1 | tee log
    PGUSER=postgres PGDATABASE=postgres sql -c "ALTER DATABASE django_template IS_TEMPLATE false"
    sed -nE 's/^(FAIL|ERROR): (.*)$/\2/p' log | sed -E 's/ (\[.*|\(i=.*|\(<.*)$//' >"$1.failed"
    sed -nE 's/^Ran ([0-9]+) tests? in.*/\1/p' log | tail -n 1 >"$1.count"
    [ -s "$1.count" ] || echo 0 >"$1.count"
}

compare_forms one_form
