# shellcheck shell=bash
# TypeORM: a migration, an entity with which schema:log is quiet, repositories.
use_npm
sql -c 'CREATE TABLE cart (id integer CONSTRAINT "PK_cart" PRIMARY KEY, owner text NOT NULL UNIQUE)'
tsx checks.ts
expect_ttl cart
