-- = connect-pg-simple
-- Express. The end of a session is local time of the database's sessions, without an offset.
SET TimeZone = 'America/New_York';
CREATE TABLE "session" ("sid" varchar NOT NULL COLLATE "default", "sess" json NOT NULL, "expire" timestamp(6) NOT NULL);
ALTER TABLE "session" ADD CONSTRAINT "session_pkey" PRIMARY KEY ("sid") NOT DEFERRABLE INITIALLY IMMEDIATE;
CREATE INDEX "IDX_session_expire" ON "session" ("expire");
SELECT ttl.expire_index('"IDX_session_expire"', 0);
-- at 2026-10-01 10:00
PREPARE put (text, json, bigint) AS INSERT INTO "session" (sess, expire, sid) SELECT $2, to_timestamp($3), $1
    ON CONFLICT (sid) DO UPDATE SET sess = $2, expire = to_timestamp($3) RETURNING sid;
EXECUTE put ('a', '{"n": 1}', extract(epoch FROM now() + interval '30 minutes')::bigint);
EXECUTE put ('b', '{"n": 1}', extract(epoch FROM now() + interval '2 hours')::bigint);
EXECUTE put ('c', '{"n": 1}', extract(epoch FROM now() + interval '40 days')::bigint);
-- left: session.sid: a b c
-- at 2026-10-01 11:00
SELECT sess FROM "session" WHERE sid = 'a' AND expire >= to_timestamp(extract(epoch FROM now()));   --> (no rows)
UPDATE "session" SET expire = to_timestamp(extract(epoch FROM now() + interval '1 minute')) WHERE sid = 'a' RETURNING sid;  --> (no rows)
UPDATE "session" SET expire = to_timestamp(extract(epoch FROM now() + interval '2 days')) WHERE sid = 'b' RETURNING sid;    --> b
EXECUTE put ('a', '{"n": 2}', extract(epoch FROM now() + interval '3 days')::bigint);                                     --> a
SELECT sess FROM "session" WHERE sid = 'a';                                                         --> {"n": 2}
-- left: session.sid: a b c
-- at 2026-10-04 10:30
DELETE FROM "session" WHERE expire < to_timestamp(extract(epoch FROM now()));
-- left: session.sid: a c
-- at 2026-10-31 12:00
-- left: session.sid: c
-- at 2026-11-10 14:00
-- left: session.sid:

-- = Spring Session JDBC
-- Milliseconds, a second unique key, attributes by ON DELETE CASCADE.
CREATE TABLE spring_session (primary_id char(36) NOT NULL, session_id char(36) NOT NULL, creation_time bigint NOT NULL,
    last_access_time bigint NOT NULL, max_inactive_interval int NOT NULL, expiry_time bigint NOT NULL, principal_name varchar(100),
    CONSTRAINT spring_session_pk PRIMARY KEY (primary_id));
CREATE UNIQUE INDEX spring_session_ix1 ON spring_session (session_id);
CREATE INDEX spring_session_ix2 ON spring_session (expiry_time);
CREATE INDEX spring_session_ix3 ON spring_session (principal_name);
CREATE TABLE spring_session_attributes (session_primary_id char(36) NOT NULL, attribute_name varchar(200) NOT NULL, attribute_bytes bytea NOT NULL,
    CONSTRAINT spring_session_attributes_pk PRIMARY KEY (session_primary_id, attribute_name),
    CONSTRAINT spring_session_attributes_fk FOREIGN KEY (session_primary_id) REFERENCES spring_session (primary_id) ON DELETE CASCADE);
SELECT ttl.expire_after('spring_session', 'expiry_time', 0, unit => 'milliseconds');
-- at 2026-10-01 10:00
PREPARE put (text, int) AS INSERT INTO spring_session (primary_id, session_id, creation_time, last_access_time, max_inactive_interval, expiry_time, principal_name)
    SELECT 'p-' || $1, $1, ms, ms, $2, ms + $2 * 1000, 'ada' FROM (SELECT (extract(epoch FROM now()) * 1000)::bigint) AS t (ms);
EXECUTE put ('a', 1800);
EXECUTE put ('b', 5400);
INSERT INTO spring_session_attributes (session_primary_id, attribute_name, attribute_bytes) SELECT primary_id, 'cart', '\x01' FROM spring_session WHERE session_id = 'a';
INSERT INTO spring_session_attributes (session_primary_id, attribute_name, attribute_bytes) SELECT primary_id, 'cart', '\x02' FROM spring_session WHERE session_id = 'b';
SELECT trim(s.session_id), sa.attribute_bytes FROM spring_session s LEFT OUTER JOIN spring_session_attributes sa ON s.primary_id = sa.session_primary_id WHERE s.session_id = 'a';  --> a | \x01
-- left: spring_session.trim(session_id): a b
-- left: spring_session_attributes.trim(session_primary_id): p-a p-b
-- at 2026-10-01 11:00
SELECT s.session_id, sa.attribute_bytes FROM spring_session s LEFT OUTER JOIN spring_session_attributes sa ON s.primary_id = sa.session_primary_id WHERE s.session_id = 'a';  --> (no rows)
INSERT INTO spring_session_attributes (session_primary_id, attribute_name, attribute_bytes) SELECT primary_id, 'late', '\x03' FROM spring_session WHERE session_id = 'a';
UPDATE spring_session SET last_access_time = (extract(epoch FROM now()) * 1000)::bigint, expiry_time = (extract(epoch FROM now()) * 1000)::bigint + 5400000 WHERE primary_id = 'p-b';
EXECUTE put ('a', 7200);
DELETE FROM spring_session WHERE expiry_time < (extract(epoch FROM now()) * 1000)::bigint;
SELECT trim(session_id) FROM spring_session WHERE principal_name = 'ada' ORDER BY 1;
--> a
--> b
-- left: spring_session.trim(session_id): a b
-- left: spring_session_attributes.trim(session_primary_id): p-b
-- at 2026-10-02 10:00
-- left: spring_session.trim(session_id):
-- disk: spring_session_attributes.trim(session_primary_id):

-- = Laravel sessions
-- Seconds since 1970 of the last activity; the lifetime is in the configuration.
CREATE TABLE sessions (id varchar(255) NOT NULL PRIMARY KEY, user_id bigint NULL, ip_address varchar(45) NULL, user_agent text NULL,
    payload text NOT NULL, last_activity integer NOT NULL);
CREATE INDEX sessions_user_id_index ON sessions (user_id);
CREATE INDEX sessions_last_activity_index ON sessions (last_activity);
SELECT ttl.expire_after('sessions', 'last_activity', '120 minutes', unit => 'seconds');
-- at 2026-10-01 10:00
insert into "sessions" ("payload", "last_activity", "user_id", "ip_address", "user_agent", "id") values ('x', extract(epoch from now())::int, null, '127.0.0.1', 'curl', 'a');
insert into "sessions" ("payload", "last_activity", "user_id", "ip_address", "user_agent", "id") values ('x', extract(epoch from now())::int - 3600 - 1800, 7, '127.0.0.1', 'curl', 'b');
-- left: sessions.id: a b
-- at 2026-10-01 11:00
select * from "sessions" where "id" = 'b' limit 1;                                          --> (no rows)
update "sessions" set "payload" = 'y', "last_activity" = extract(epoch from now())::int where "id" = 'a';
update "sessions" set "payload" = 'y', "last_activity" = extract(epoch from now())::int where "id" = 'b';
-- left: sessions.id: a
-- at 2026-10-01 12:30
insert into "sessions" ("payload", "last_activity", "user_id", "ip_address", "user_agent", "id") values ('z', extract(epoch from now())::int, 7, '127.0.0.1', 'curl', 'b');
-- left: sessions.id: a b
-- at 2026-10-02 10:00
delete from "sessions" where "last_activity" <= extract(epoch from now())::int - 7200;
-- left: sessions.id:

-- = Django sessions
CREATE TABLE "django_session" ("session_key" varchar(40) NOT NULL PRIMARY KEY, "session_data" text NOT NULL, "expire_date" timestamp with time zone NOT NULL);
CREATE INDEX "django_session_session_key_like" ON "django_session" ("session_key" varchar_pattern_ops);
CREATE INDEX "django_session_expire_date_idx" ON "django_session" ("expire_date");
SELECT ttl.expire_after('django_session', 'expire_date', 0);
-- at 2026-10-01 10:00
INSERT INTO "django_session" ("session_key", "session_data", "expire_date") VALUES ('a', 'x', now() + interval '30 minutes'), ('b', 'x', now() + interval '14 days');
-- left: django_session.session_key: a b
-- at 2026-10-01 11:00
SELECT (1) AS "a" FROM "django_session" WHERE "django_session"."session_key" = 'a' LIMIT 1;   --> (no rows)
UPDATE "django_session" SET "session_data" = 'y', "expire_date" = now() + interval '14 days' WHERE "django_session"."session_key" = 'a';
INSERT INTO "django_session" ("session_key", "session_data", "expire_date") VALUES ('a', 'new', now() + interval '1 day');
SELECT session_data FROM "django_session" WHERE "expire_date" > now() AND "session_key" = 'a';  --> new
-- left: django_session.session_key: a b
-- at 2026-10-04 10:30
DELETE FROM "django_session" WHERE "django_session"."expire_date" < now();
-- left: django_session.session_key: b
-- at 2026-10-31 12:00
-- left: django_session.session_key:
