# shellcheck shell=bash
# Prisma: migrations, a schema that is in sync, the client.
use_npm
# Its engines come from a place of their own.
prisma --version || skip "its engines cannot be downloaded"
prisma generate
prisma migrate deploy
expect_ttl cart
prisma migrate diff --from-schema-datasource schema.prisma --to-schema-datamodel schema.prisma --exit-code
cp schema.prisma before.prisma
prisma db pull
expect "a pulled schema has the columns" "$(grep -c 'ttl.current_ts\|^ *ttl ' schema.prisma)" 2
prisma migrate diff --from-schema-datasource schema.prisma --to-schema-datamodel schema.prisma --exit-code
cp before.prisma schema.prisma
node checks.js
