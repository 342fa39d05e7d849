-- = Debezium outbox
-- No column with a time: ttl.enable. The connector reads the INSERT from WAL, nothing reads the table.
CREATE TABLE outboxevent (id uuid NOT NULL PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb);
SELECT ttl.enable('outboxevent', '1 hour', ttl_column => NULL);
-- at 2026-10-01 10:00
INSERT INTO outboxevent (id, aggregatetype, aggregateid, type, payload) VALUES ('00000000-0000-0000-0000-000000000001', 'order', '1', 'OrderCreated', '{}');
-- left: outboxevent.right(id::text, 1): 1
-- at 2026-10-01 10:30
INSERT INTO outboxevent (id, aggregatetype, aggregateid, type, payload) VALUES ('00000000-0000-0000-0000-000000000002', 'order', '2', 'OrderCreated', '{}');
-- left: outboxevent.right(id::text, 1): 1 2
-- at 2026-10-01 11:15
-- left: outboxevent.right(id::text, 1): 2
-- at 2026-10-01 12:30
INSERT INTO outboxevent (id, aggregatetype, aggregateid, type, payload) VALUES ('00000000-0000-0000-0000-000000000001', 'order', '1', 'OrderChanged', '{}');
-- left: outboxevent.right(id::text, 1): 1

-- = idempotency keys
-- As payment services describe them: locked while the work is done, kept for a day after the request.
CREATE TABLE idempotency_keys (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), idempotency_key text NOT NULL CHECK (char_length(idempotency_key) <= 100), last_run_at timestamptz NOT NULL DEFAULT now(),
    locked_at timestamptz DEFAULT now(), request_method text NOT NULL, request_path text NOT NULL, response_code int, response_body jsonb, recovery_point text NOT NULL, user_id bigint NOT NULL);
CREATE UNIQUE INDEX idempotency_keys_user_id_idempotency_key ON idempotency_keys (user_id, idempotency_key);
SELECT ttl.expire_after('idempotency_keys', 'created_at', '24 hours');
-- at 2026-10-01 10:00
INSERT INTO idempotency_keys (idempotency_key, request_method, request_path, recovery_point, user_id) VALUES ('k1', 'POST', '/charges', 'started', 7) ON CONFLICT DO NOTHING RETURNING id;   --> 1
UPDATE idempotency_keys SET response_code = 201, response_body = '{"id": 1}', locked_at = NULL, recovery_point = 'finished' WHERE id = 1;
-- left: idempotency_keys.id: 1
-- at 2026-10-02 09:30
INSERT INTO idempotency_keys (idempotency_key, request_method, request_path, recovery_point, user_id) VALUES ('k1', 'POST', '/charges', 'started', 7) ON CONFLICT DO NOTHING RETURNING id;   --> (no rows)
SELECT response_code FROM idempotency_keys WHERE user_id = 7 AND idempotency_key = 'k1' FOR UPDATE;   --> 201
-- left: idempotency_keys.id: 1
-- at 2026-10-02 10:30
INSERT INTO idempotency_keys (idempotency_key, request_method, request_path, recovery_point, user_id) VALUES ('k1', 'POST', '/charges', 'started', 7) ON CONFLICT DO NOTHING RETURNING recovery_point;   --> started
-- left: idempotency_keys.recovery_point: started

-- = PaperTrail
-- Audit: versions by polymorphic reference, seven years of them but a month of what a robot did.
CREATE TABLE "versions" ("id" bigserial primary key, "item_type" character varying NOT NULL, "item_id" bigint NOT NULL, "event" character varying NOT NULL, "whodunnit" character varying, "object" text, "created_at" timestamp(6));
CREATE INDEX "index_versions_on_item_type_and_item_id" ON "versions" ("item_type", "item_id");
CREATE INDEX versions_end ON versions (ttl.add_seconds(created_at, CASE whodunnit WHEN 'robot' THEN 30 ELSE 7 * 366 END * 86400));
SELECT ttl.expire_index('versions_end', 0, time_zone => 'UTC');
-- at 2026-10-01 10:00
INSERT INTO "versions" ("item_type", "item_id", "event", "whodunnit", "object", "created_at") VALUES ('Order', 1, 'update', 'robot', '---', '2026-09-01 10:30'), ('Order', 1, 'update', '7', '---', '2019-10-15 10:30'), ('Order', 2, 'create', NULL, NULL, '2026-10-01 10:00');
-- left: versions.id: 1 2 3
-- at 2026-10-01 11:00
SELECT "id" FROM "versions" WHERE "versions"."item_id" = 1 AND "versions"."item_type" = 'Order' ORDER BY "versions"."created_at" ASC;   --> 2
-- left: versions.id: 2 3
-- at 2026-10-31 12:00
-- left: versions.id: 3

-- = Laravel soft deletes
-- deleted_at in UTC; a unique key among what is not deleted.
CREATE TABLE users (id bigserial PRIMARY KEY, email varchar(255) NOT NULL, created_at timestamp(0), updated_at timestamp(0), deleted_at timestamp(0) without time zone NULL);
CREATE UNIQUE INDEX users_email_unique ON users (email) WHERE deleted_at IS NULL;
CREATE TABLE posts (id bigserial PRIMARY KEY, user_id bigint NOT NULL, body text, CONSTRAINT posts_user_id_foreign FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE);
SELECT ttl.expire_after('users', 'deleted_at', '30 days', time_zone => 'UTC');
-- at 2026-10-01 10:00
insert into "users" ("email", "created_at", "updated_at") values ('ada@x', now(), now()), ('bob@x', now(), now()) returning "id";
insert into "posts" ("user_id", "body") values (1, 'hi'), (2, 'ho');
update "users" set "deleted_at" = timezone('UTC', now()), "updated_at" = now() where "id" = 1;
-- left: users.id: 1 2
-- at 2026-10-01 11:00
insert into "users" ("email", "created_at", "updated_at") values ('ada@x', now(), now()) returning "id";   --> 3
update "users" set "deleted_at" = timezone('UTC', now()) where "id" = 2;
update "users" set "deleted_at" = null where "id" = 2;
select count(*) from "users" where "users"."deleted_at" is null;                              --> 2
-- left: users.id: 1 2 3
-- at 2026-10-31 12:00
select "id" from "users" order by "id";
--> 2
--> 3
-- left: users.id: 2 3
-- disk: posts.user_id: 2

-- = epoch in five forms
-- Seconds, milliseconds, microseconds, double precision, numeric.
CREATE TABLE forms (id int PRIMARY KEY, s int, ms bigint, us bigint, d double precision, n numeric(20, 6));
SELECT ttl.expire_after('forms', 's', 0, unit => 'seconds'), ttl.expire_after('forms', 'ms', 0, unit => 'milliseconds'), ttl.expire_after('forms', 'us', 0, unit => 'microseconds'),
       ttl.expire_after('forms', 'd', 0, unit => 'seconds'), ttl.expire_after('forms', 'n', 0, unit => 'seconds');
-- at 2026-10-01 10:00
INSERT INTO forms (id, s) SELECT h, extract(epoch FROM timestamptz '2026-10-01 10:30Z')::bigint + h * 3600 FROM generate_series(0, 2) AS h;
INSERT INTO forms (id, ms) SELECT 10 + h, (extract(epoch FROM timestamptz '2026-10-01 10:30Z') + h * 3600) * 1000 FROM generate_series(0, 2) AS h;
INSERT INTO forms (id, us) SELECT 20 + h, (extract(epoch FROM timestamptz '2026-10-01 10:30Z') + h * 3600) * 1000000 FROM generate_series(0, 2) AS h;
INSERT INTO forms (id, d) SELECT 30 + h, extract(epoch FROM timestamptz '2026-10-01 10:30Z') + h * 3600 + 0.5 FROM generate_series(0, 2) AS h;
INSERT INTO forms (id, n) SELECT 40 + h, extract(epoch FROM timestamptz '2026-10-01 10:30Z') + h * 3600 + 0.5 FROM generate_series(0, 2) AS h;
INSERT INTO forms VALUES (99, NULL, NULL, NULL, 'NaN', 'NaN'), (98, 2147483647, 9223372036854775807, -9223372036854775808, 'infinity', NULL);
-- left: forms.id: 0 1 2 10 11 12 20 21 22 30 31 32 40 41 42 98 99
-- at 2026-10-01 11:00
-- left: forms.id: 1 2 11 12 21 22 31 32 41 42 98 99
-- at 2026-10-01 12:00
-- left: forms.id: 2 12 22 32 42 98 99
-- at 2026-10-01 12:45
-- left: forms.id: 98 99

-- = text in ISO 8601
CREATE TABLE leases (name text PRIMARY KEY, expires_at varchar(40));
CREATE INDEX leases_expires ON leases (ttl.from_iso8601(expires_at));
SELECT ttl.expire_index('leases_expires', 0);
-- at 2026-10-01 10:00
INSERT INTO leases VALUES ('z', '2026-10-01T10:30:00Z'), ('ms', '2026-10-01T10:30:00.123Z'), ('offset', '2026-10-01T13:30:00+02:00'), ('basic', '20261001T123000Z'), ('none', NULL), ('words', 'never'), ('local', '2026-10-01T10:30:00');
-- left: leases.name: basic local ms none offset words z
-- at 2026-10-01 11:00
UPDATE leases SET expires_at = '2026-10-01T12:00:00.000Z' WHERE name = 'z';
INSERT INTO leases VALUES ('z', '2026-10-01T12:45:00.000+00:00') ON CONFLICT (name) DO NOTHING RETURNING expires_at;   --> 2026-10-01T12:45:00.000+00:00
-- left: leases.name: basic local none offset words z
-- at 2026-10-01 12:00
-- left: leases.name: basic local none words z
-- at 2026-10-01 12:32
-- left: leases.name: local none words z

-- = local time in three zones
-- Clocks in Sydney go forward on 2026-10-04 at 02:00, which is 16:00 of the day before in UTC; in Berlin back on 2026-10-25 at
-- 03:00 (01:00 UTC), in New York back on 2026-11-01 at 02:00 (06:00 UTC). What they show twice is the second time.
CREATE TABLE sydney (id text PRIMARY KEY, until timestamp);
CREATE TABLE berlin (id text PRIMARY KEY, until timestamp);
CREATE TABLE new_york (id text PRIMARY KEY, until timestamp);
CREATE TABLE days (id text PRIMARY KEY, until date);
SELECT ttl.expire_after('sydney', 'until', 0, time_zone => 'Australia/Sydney'), ttl.expire_after('berlin', 'until', 0, time_zone => 'Europe/Berlin'),
       ttl.expire_after('new_york', 'until', 0, time_zone => 'America/New_York'), ttl.expire_after('days', 'until', 0, time_zone => 'Europe/Berlin');
INSERT INTO sydney VALUES ('01:45', '2026-10-04 01:45'), ('02:15', '2026-10-04 02:15'), ('03:15', '2026-10-04 03:15'), ('03:45', '2026-10-04 03:45');
INSERT INTO berlin VALUES ('01:45', '2026-10-25 01:45'), ('02:15', '2026-10-25 02:15'), ('02:45', '2026-10-25 02:45'), ('03:15', '2026-10-25 03:15');
INSERT INTO new_york VALUES ('00:45', '2026-11-01 00:45'), ('01:15', '2026-11-01 01:15'), ('01:45', '2026-11-01 01:45'), ('02:15', '2026-11-01 02:15');
INSERT INTO days VALUES ('25', '2026-10-25'), ('26', '2026-10-26');
-- at 2026-10-03 15:40
-- left: sydney.id: 01:45 02:15 03:15 03:45
-- at 2026-10-03 15:50
-- left: sydney.id: 02:15 03:15 03:45
-- at 2026-10-03 16:20
-- left: sydney.id: 03:45
-- at 2026-10-24 21:50
-- left: days.id: 25 26
-- at 2026-10-24 22:10
-- left: days.id: 26
-- at 2026-10-25 00:20
-- left: berlin.id: 02:15 02:45 03:15
-- at 2026-10-25 01:20
-- left: berlin.id: 02:45 03:15
-- at 2026-10-25 22:50
-- left: days.id: 26
-- left: berlin.id:
-- at 2026-10-25 23:10
-- left: days.id:
-- at 2026-11-01 05:20
-- left: new_york.id: 01:15 01:45 02:15
-- at 2026-11-01 06:20
-- left: new_york.id: 01:45 02:15
-- at 2026-11-01 07:20
-- left: new_york.id:
