# shellcheck shell=bash
# ActiveRecord: migrations, and a database of tests from structure.sql.
command -v ruby >/dev/null && ruby -e 'require "active_record"; require "pg"' ||
    skip "no ActiveRecord: gem install activerecord pg, or Debian's ruby-activerecord and ruby-pg"
PGUSER=postgres psql -Xq -c "CREATE DATABASE rails_test OWNER app"
PGUSER=postgres psql -Xq -d rails_test -c "CREATE EXTENSION ttl_ext; GRANT CREATE ON SCHEMA public TO app"
ruby checks.rb
# What was loaded from structure.sql waits, empty or not, until somebody says so.
expect "what waits" "$(sql -c "SELECT ttl.resume_restored()")" "carts"
deletion() { PGUSER=postgres sql -c "ALTER SYSTEM SET ttl.enabled = $1" -c "SELECT pg_reload_conf()" >/dev/null; }
deletion on
export PGDATABASE=rails_test
for _ in $(seq 600); do
    [ "$(sql -c "SELECT problems FROM ttl.tables")" != "{}" ] || break
    sleep 0.1
done
expect "nothing waits" "$(sql -c "SELECT relation, problems FROM ttl.tables")" "carts {}"
deletion off
