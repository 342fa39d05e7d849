# shellcheck shell=bash
# Prisma: migrations and the client, by its engines in WebAssembly, which npm brings; and, where
# those for this machine can be downloaded, a schema that is in sync: the former cannot read the
# catalogs (prisma/orm#27403).
export npm_config_ignore_scripts=true # @prisma/engines would download
use_npm
prisma generate --config wasm.config.ts
prisma migrate deploy --config wasm.config.ts
prisma migrate status --config wasm.config.ts
expect_ttl cart
node checks.js
if prisma --version; then
    prisma migrate diff --from-schema-datasource schema.prisma --to-schema-datamodel schema.prisma --exit-code
    cp schema.prisma before.prisma
    prisma db pull
    expect "a pulled schema has the columns" "$(grep -c 'ttl.current_ts\|^ *ttl ' schema.prisma)" 2
    prisma migrate diff --from-schema-datasource schema.prisma --to-schema-datamodel schema.prisma --exit-code
else
    printf '\nSKIPPED: prisma: migrate diff and db pull: its engines cannot be downloaded\n'
fi
