# shellcheck shell=bash
# Drizzle: migrations by `generate`, which looks at no database; `push`, which does.
use_npm

cp schema.ts with.ts
cp before.ts schema.ts
drizzle-kit generate --name cart
drizzle-kit generate --custom --name ttl
cp ttl.sql migrations/0001_ttl.sql
drizzle-kit migrate
expect_ttl cart
drizzle-kit generate
expect "generate has nothing to do" "$(find migrations -name '*.sql' | wc -l)" 2

# Refused where the model does not know of them, quiet where it does.
state() { sql -c "SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY 1) FROM pg_index WHERE indrelid = 'cart'::regclass"; }
had=$(state)
drizzle-kit push --force || true
expect "push with a model that does not know: nothing is lost" "$(state)" "$had"
expect_ttl cart
cp with.ts schema.ts
drizzle-kit push --force
drizzle-kit push --force | tee push.log
expect "push with a model that does know is quiet" "$(grep -c 'No changes detected' push.log)" 1
expect "and builds nothing twice" "$(state)" "$had"
expect_ttl cart
node checks.js
