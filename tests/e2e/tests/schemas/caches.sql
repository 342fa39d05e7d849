-- = Laravel cache
-- Two tables, cache and locks, by seconds since 1970; a lock is taken over by UPDATE.
CREATE TABLE cache (key varchar(255) NOT NULL PRIMARY KEY, value text NOT NULL, expiration integer NOT NULL);
CREATE TABLE cache_locks (key varchar(255) NOT NULL PRIMARY KEY, owner varchar(255) NOT NULL, expiration integer NOT NULL);
SELECT ttl.expire_after('cache', 'expiration', 0, unit => 'seconds');
SELECT ttl.expire_after('cache_locks', 'expiration', 0, unit => 'seconds');
-- at 2026-10-01 10:00
insert into "cache" ("expiration", "key", "value") values (extract(epoch from now())::int + 1800, 'a', '1') on conflict ("key") do update set "expiration" = "excluded"."expiration", "key" = "excluded"."key", "value" = "excluded"."value";
insert into "cache" ("expiration", "key", "value") values (2147483647, 'ever', '1') on conflict ("key") do update set "expiration" = "excluded"."expiration", "value" = "excluded"."value";
insert into "cache_locks" ("key", "owner", "expiration") values ('l', 'w1', extract(epoch from now())::int + 600);
-- left: cache.key: a ever
-- left: cache_locks.key: l
-- at 2026-10-01 11:00
select * from "cache" where "key" in ('a');                                                  --> (no rows)
insert into "cache" ("expiration", "key", "value") values (extract(epoch from now())::int + 1800, 'a', '1') on conflict do nothing;
update "cache" set "value" = "value"::int + 1 where "key" = 'a' returning value;             --> 2
insert into "cache_locks" ("key", "owner", "expiration") values ('l', 'w2', extract(epoch from now())::int + 600);
select owner from "cache_locks" where "key" = 'l';                                           --> w2
-- left: cache.key: a ever
-- left: cache_locks.key: l
-- at 2026-10-01 12:30
delete from "cache_locks" where "key" = 'l' and "owner" = 'w2';
-- left: cache.key: ever
-- left: cache_locks.key:

-- = Django database cache
-- culls by itself when it holds too many rows: COUNT(*) and DELETE.
CREATE TABLE "my_cache" ("cache_key" varchar(255) NOT NULL PRIMARY KEY, "value" text NOT NULL, "expires" timestamp with time zone NOT NULL);
CREATE INDEX "my_cache_expires" ON "my_cache" ("expires");
SELECT ttl.expire_after('my_cache', 'expires', 0);
-- at 2026-10-01 10:00
INSERT INTO "my_cache" ("cache_key", "value", "expires") VALUES (':1:a', 'x', date_trunc('second', now()) + interval '300 s'), (':1:b', 'x', '9999-12-31 23:59:59+00');
-- left: my_cache.cache_key: :1:a :1:b
-- at 2026-10-01 11:00
SELECT COUNT(*) FROM "my_cache";                                                              --> 1
SELECT "cache_key", "expires" FROM "my_cache" WHERE "cache_key" = ':1:a';                     --> (no rows)
INSERT INTO "my_cache" ("cache_key", "value", "expires") VALUES (':1:a', 'y', date_trunc('second', now()) + interval '300 s');
UPDATE "my_cache" SET "value" = 'z', "expires" = date_trunc('second', now()) + interval '2 hours' WHERE "cache_key" = ':1:a';
DELETE FROM "my_cache" WHERE "expires" < date_trunc('second', now());
-- left: my_cache.cache_key: :1:a :1:b
-- at 2026-10-02 10:00
-- left: my_cache.cache_key: :1:b

-- = Rails Solid Cache
-- Entries by a hash of the key, oldest first; created_at is UTC without a zone, as Rails writes it.
CREATE TABLE "solid_cache_entries" ("id" bigserial primary key, "key" bytea NOT NULL, "value" bytea NOT NULL, "created_at" timestamp(6) NOT NULL, "key_hash" bigint NOT NULL, "byte_size" integer NOT NULL);
CREATE INDEX "index_solid_cache_entries_on_byte_size" ON "solid_cache_entries" ("byte_size");
CREATE INDEX "index_solid_cache_entries_on_key_hash_and_byte_size" ON "solid_cache_entries" ("key_hash", "byte_size");
CREATE UNIQUE INDEX "index_solid_cache_entries_on_key_hash" ON "solid_cache_entries" ("key_hash");
SELECT ttl.expire_after('solid_cache_entries', 'created_at', '60 days', time_zone => 'UTC');
-- at 2026-10-01 10:00
INSERT INTO "solid_cache_entries" ("key", "value", "created_at", "key_hash", "byte_size") VALUES ('\x61', '\x01', CURRENT_TIMESTAMP - interval '59 days 23 hours 30 minutes', 11, 140), ('\x62', '\x01', CURRENT_TIMESTAMP, 12, 140)
    ON CONFLICT ("key_hash") DO UPDATE SET "key" = excluded."key", "value" = excluded."value", "byte_size" = excluded."byte_size" RETURNING "key_hash";
--> 11
--> 12
-- left: solid_cache_entries.key_hash: 11 12
-- at 2026-10-01 11:00
SELECT "value" FROM "solid_cache_entries" WHERE "key_hash" IN (11, 12) ORDER BY "key_hash";   --> \x01
INSERT INTO "solid_cache_entries" ("key", "value", "created_at", "key_hash", "byte_size") VALUES ('\x61', '\x02', CURRENT_TIMESTAMP, 11, 140)
    ON CONFLICT ("key_hash") DO UPDATE SET "key" = excluded."key", "value" = excluded."value", "byte_size" = excluded."byte_size" RETURNING "key_hash", created_at > CURRENT_TIMESTAMP - interval '1 day';   --> 11 | t
SELECT "id" FROM "solid_cache_entries" ORDER BY "id" LIMIT 1;                                 --> 2
-- left: solid_cache_entries.key_hash: 11 12
-- at 2026-10-31 12:00
-- left: solid_cache_entries.key_hash: 11 12
