# shellcheck shell=bash
# node-postgres and Knex: migrations, and many upserts on the same expired keys.
use_npm
knex migrate:latest
expect_ttl cart
node checks.js
knex migrate:rollback --all
knex migrate:latest
expect_ttl cart
