# shellcheck shell=bash
# Django's own test suite: what its list of differences has been made for; another part by TTL_LABELS, such as "queries schema".
. "$TTL_ECOSYSTEM/suite.sh"
use_pip
use_source django "$(sed -n 's/^Django==//p' requirements.txt)"

one_form() { # FORM
    make_database "django_template" "$1"
    PGUSER=postgres PGDATABASE=postgres sql -c "ALTER ROLE app CREATEDB" -c "ALTER DATABASE django_template IS_TEMPLATE true"
    (
        cd "$SOURCE/tests"
        # shellcheck disable=SC2086 # a list
        PYTHONPATH=$SOURCE:$OLDPWD python runtests.py --settings=suite_settings --noinput --parallel=1 ${TTL_LABELS:-sessions_tests introspection inspectdb delete constraints bulk_create} || true
    ) 2>&1 | tee log
    PGUSER=postgres PGDATABASE=postgres sql -c "ALTER DATABASE django_template IS_TEMPLATE false"
    sed -nE 's/^(FAIL|ERROR): (.*)$/\2/p' log | sed -E 's/ (\[.*|\(i=.*|\(<.*)$//' >"$1.failed"
    sed -nE 's/^Ran ([0-9]+) tests? in.*/\1/p' log | tail -n 1 >"$1.count"
    [ -s "$1.count" ] || echo 0 >"$1.count"
}

compare_forms one_form
