# shellcheck shell=bash
# A framework's own tests in three databases, for TOOL/test.sh: as they are, with `ttl.enable` on every table that they
# create, and with a TTL index on every table that has a time. A difference from the first that is not in a list of
# names with reasons fails.
#
# The last form adds no column, and so differs in nothing but the index.

# The source of a package, once.
use_source() { # PACKAGE VERSION
    SOURCE=$TOOL_HOME/$1-$2
    [ -d "$SOURCE" ] && return
    local archive
    "$TOOL_HOME/venv/bin/pip" download -q --disable-pip-version-check --no-binary "$1" --no-deps -d "$TOOL_HOME" "$1==$2" ||
        "$TOOL_HOME/venv/bin/pip" download -q --disable-pip-version-check --no-binary "$1" --no-deps -d "$TOOL_HOME" "$1==$2" ||
        skip "cannot be downloaded: $1 $2"
    archive=$(find "$TOOL_HOME" -maxdepth 1 -iname "$1-$2.tar.gz" | head -n 1)
    tar xzf "$archive" -C "$TOOL_HOME"
    SOURCE=$(find "$TOOL_HOME" -maxdepth 1 -type d -iname "$1-$2" | head -n 1)
    version_of "$1 $2"
}

# Rows of the tests do not live long enough to expire by either form: a day after their last write, 68 years after a time
# that is later than 1990.
trigger_of() { # FORM
    case $1 in
        plain) echo "SELECT" ;;
        enabled) echo "
            PERFORM ttl.enable(table_name, 86400)" ;;
        index) echo "
            SELECT quote_ident(attname) INTO column_name FROM pg_attribute WHERE attrelid = table_name AND attnum > 0
               AND atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype) AND attgenerated = '' ORDER BY attnum LIMIT 1;
            IF FOUND THEN
                EXECUTE format('CREATE INDEX %I ON %s (%s) WHERE %s > ''1990-01-01''', 'ttl_index_' || table_name::oid, table_name, column_name, column_name);
                SELECT indexrelid INTO index_name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
                 WHERE indrelid = table_name AND relname = 'ttl_index_' || table_name::oid;
                PERFORM ttl.expire_index(index_name, 2147483647, time_zone => CASE WHEN format_type((SELECT atttypid FROM pg_attribute
                    WHERE attrelid = table_name AND quote_ident(attname) = column_name), NULL) LIKE '%with time zone' THEN NULL ELSE 'UTC' END);
            END IF" ;;
    esac
}

# A database for the tests, or to copy. Temporary tables and partitions have no time to live of their own.
make_database() { # NAME FORM
    PGUSER=postgres PGDATABASE=postgres sql -c "DROP DATABASE IF EXISTS $1" -c "CREATE DATABASE $1 OWNER app"
    [ "$2" != plain ] || return 0
    PGUSER=postgres PGDATABASE=$1 sql >/dev/null <<END
CREATE EXTENSION ttl_ext;
CREATE FUNCTION public.expire_all() RETURNS event_trigger LANGUAGE plpgsql AS \$\$
DECLARE table_name regclass; index_name regclass; column_name text;
BEGIN
    FOR table_name IN
        SELECT c.oid FROM pg_event_trigger_ddl_commands() AS d JOIN pg_class AS c ON c.oid = d.objid
         WHERE d.classid = 'pg_class'::regclass AND d.command_tag = 'CREATE TABLE' AND c.relkind IN ('r', 'p')
           AND NOT c.relispartition AND c.relpersistence <> 't'
    LOOP
        IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = table_name) THEN CONTINUE; END IF;
        $(trigger_of "$2");
    END LOOP;
END \$\$;
CREATE EVENT TRIGGER expire_all ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.expire_all();
END
}

# Names that have failed in FORM and not in the plain run, and are not in the list. Its lines: FORM, a name or the part
# of it before a *, and the reason.
differences() { # FORM
    local name known kind pattern
    comm -13 <(sort -u "plain.failed") <(sort -u "$1.failed") >"$1.different"
    while read -r name; do
        known=
        while IFS='|' read -r kind pattern _; do
            kind=${kind// /} pattern=$(echo "$pattern" | xargs)
            # shellcheck disable=SC2053 # a pattern
            if [ "$kind" = "$1" ] && [[ $name == $pattern ]]; then known=1; fi
        done < <(grep -v '^#' known)
        [ -n "$known" ] || echo "$name"
    done <"$1.different"
}

# Runs a function in each form: it writes failed tests to FORM.failed, and the number of all to FORM.count.
compare_forms() { # FUNCTION
    local form start unknown=0
    for form in plain enabled index; do
        start=$SECONDS
        "$1" "$form" >"$TOOL_HOME/$form.log" 2>&1 || true
        [ "$(cat "$form.count")" -gt 0 ] || {
            tail -n 40 "$TOOL_HOME/$form.log"
            echo "FAILED: no test ran in form $form"
            exit 1
        }
        echo "$form: $(cat "$form.count") tests, $(sort -u "$form.failed" | wc -l) failed, $((SECONDS - start)) s"
    done
    for form in enabled index; do
        differences "$form" >"$form.unknown"
        echo "$form: $(wc -l <"$form.different") differ from plain, $(wc -l <"$form.unknown") of them unknown"
        sed "s/^/  unknown in $form: /" "$form.unknown"
        unknown=$((unknown + $(wc -l <"$form.unknown")))
    done
    [ "$unknown" = 0 ] || exit 1
}
