# shellcheck shell=bash
# ActiveRecord: migrations, and a database of tests from structure.sql.
command -v ruby >/dev/null || skip "no ruby"
export GEM_HOME=$TOOL_HOME/gems
mapfile -t gems <Gemfile
install_once Gemfile gem install --no-document "${gems[@]}"
PGUSER=postgres psql -Xq -c "CREATE DATABASE rails_test OWNER app"
PGUSER=postgres psql -Xq -d rails_test -c "CREATE EXTENSION ttl_ext"
ruby checks.rb
PGDATABASE=rails_test expect_ttl carts
