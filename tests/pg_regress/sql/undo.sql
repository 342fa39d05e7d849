-- C23, C25: rows that have expired and are still on disk: looked at, and brought back.
CREATE SCHEMA undo;
SET search_path = undo;
SET timezone = 'UTC';
CREATE TABLE t (id int PRIMARY KEY, gone int, what text DEFAULT 'x', log text);
ALTER TABLE t DROP COLUMN gone;
SELECT ttl.enable('t', 3600);
CREATE TABLE fired (what text);
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts, ttl) SELECT i, now() - i * interval '30 minutes', CASE i WHEN 4 THEN -1 WHEN 5 THEN 60 END
  FROM generate_series(0, 6) i;
RESET ttl.preserve_ts;
SELECT id FROM t ORDER BY id;
SELECT id, what, log, ttl FROM ttl.expired(NULL::t) ORDER BY id;
SELECT e.id, e._ts < now() AS old, pg_typeof(e) FROM ttl.expired(NULL::undo.t) e WHERE id > 4 ORDER BY id;
SELECT (ttl.expired(NULL::t)).id ORDER BY 1;
SELECT count(*) FROM ttl.expired((SELECT t FROM t LIMIT 1));
-- the two are all
SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT id FROM ttl.expired(NULL::t)) a;
-- what is no row of a table with a time to live
CREATE VIEW v AS SELECT * FROM t;
CREATE TYPE pair AS (a int, b int);
CREATE TABLE plain (id int);
SELECT * FROM ttl.expired(NULL::int);
SELECT * FROM ttl.expired(NULL::v);
SELECT * FROM ttl.expired(NULL::pair);
SELECT * FROM ttl.expired(NULL::plain);
SELECT * FROM ttl.expired('t');

-- back they come, stamped anew; with triggers and constraints as an UPDATE
SELECT ttl.revive('t', 'id = 3');
SELECT id, _ts > now() - interval '1 minute' AS new FROM t ORDER BY id;
SELECT ttl.revive('t', 'id = 3'), ttl.revive('t', 'false'), ttl.revive('t', 'NULL');
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fired VALUES (TG_WHEN || ' ' || TG_OP || ' ' || NEW.id || ' ' || (NEW._ts > OLD._ts) || ' ' || current_user);
    IF NEW.id = 6 AND TG_WHEN = 'BEFORE' THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER a BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER b AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fire();
-- a comment at its end; a sub-query; one that a trigger holds back
SELECT ttl.revive('t', 'id IN (SELECT 5) -- five
');
SELECT replace(what, current_user, 'me') FROM fired ORDER BY what;
SELECT ttl.revive('t', 'id = 6');
DROP TRIGGER a ON t;
DROP TRIGGER b ON t;
ALTER TABLE t ADD CHECK (id <> 6) NOT VALID;
\set VERBOSITY terse
SELECT ttl.revive('t');
\set VERBOSITY default
ALTER TABLE t DROP CONSTRAINT t_id_check;
-- 2 and 6 are left
SELECT id FROM ttl.expired(NULL::t) ORDER BY id;

-- the condition is one expression
SELECT ttl.revive('t', 'true) OR (true');
SELECT ttl.revive('t', 'true); DROP TABLE t; SELECT (true');
SELECT ttl.revive('t', 'true; DROP TABLE t');
SELECT ttl.revive('t', 'true RETURNING id');
SELECT ttl.revive('t', 'true FROM t');
SELECT ttl.revive('t', 'true, true');
SELECT ttl.revive('t', 'true /*');
SELECT ttl.revive('t', '');
SELECT ttl.revive('t', 'id');
SELECT ttl.revive('t', 'nothing = 1');
SELECT ttl.revive('t', 'id = $1');
SELECT ttl.revive('t', 'count(*) > 1');
SELECT ttl.revive('t', 'id / 0 = 1');
SELECT ttl.revive(NULL);
SELECT ttl.revive('plain');
SELECT ttl.revive('v');
BEGIN READ ONLY;
SELECT ttl.revive('t');
ROLLBACK;
SELECT id FROM ttl.expired(NULL::t) ORDER BY id;

-- the key of an expired row is free as ever: its second life is over then
INSERT INTO t (id, what) VALUES (2, 'another');
SELECT ttl.revive('t', 'id = 2');
-- within the caller's transaction
BEGIN;
SELECT ttl.revive('t');
SELECT id, what FROM t ORDER BY id;
ROLLBACK;
SELECT id FROM ttl.expired(NULL::t) ORDER BY id;
-- rows whose time is preserved are stamped, too
SET ttl.preserve_ts = on;
SELECT ttl.revive('t');
RESET ttl.preserve_ts;
SELECT id FROM ttl.expired(NULL::t) ORDER BY id;
SELECT count(*) FROM t;

-- the owner's, with their rights
CREATE ROLE regress_undo_owner;
CREATE ROLE regress_undo_other;
GRANT ALL ON SCHEMA undo TO regress_undo_owner, regress_undo_other;
SET ROLE regress_undo_owner;
CREATE TABLE own (id int PRIMARY KEY, who text);
SELECT ttl.enable('own', 3600);
SET ttl.preserve_ts = on;
INSERT INTO own (id, who, _ts) SELECT i, CASE i % 2 WHEN 0 THEN 'regress_undo_owner' ELSE 'else' END, '2020-01-01'
  FROM generate_series(1, 4) i;
RESET ttl.preserve_ts;
GRANT ALL ON own TO regress_undo_other;
SET ROLE regress_undo_other;
SELECT * FROM ttl.expired(NULL::own);
SELECT ttl.revive('own');
RESET ROLE;
-- a superuser: as the owner
SELECT id FROM ttl.expired(NULL::own) ORDER BY id;
SET ROLE regress_undo_owner;
ALTER TABLE own ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON own USING (who = current_user);
SELECT id FROM ttl.expired(NULL::own) ORDER BY id;
ALTER TABLE own FORCE ROW LEVEL SECURITY;
SELECT id FROM ttl.expired(NULL::own) ORDER BY id;
SELECT ttl.revive('own');
SELECT id FROM own ORDER BY id;
ALTER TABLE own NO FORCE ROW LEVEL SECURITY;
SELECT id FROM ttl.expired(NULL::own) ORDER BY id;
-- the condition runs as the owner, for a superuser, too
RESET ROLE;
CREATE FUNCTION whoami() RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN current_user; END$$;
SELECT ttl.revive('own', 'whoami() <> ''regress_undo_owner''');
SELECT ttl.revive('own', 'whoami() = ''regress_undo_owner''');

-- partitions, odd names, another schema
CREATE SCHEMA "Odd ""schema""";
CREATE TABLE "Odd ""schema"""."t able" ("kept" int, "kept.*" text, "Time" timestamptz NOT NULL) PARTITION BY RANGE ("kept");
CREATE TABLE part_1 PARTITION OF "Odd ""schema"""."t able" FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 ("Time" timestamptz NOT NULL, "kept.*" text, "kept" int);
ALTER TABLE "Odd ""schema"""."t able" ATTACH PARTITION part_2 FOR VALUES FROM (10) TO (20);
SELECT ttl.enable('"Odd ""schema"""."t able"', 3600, ts_column => 'Time', ttl_column => NULL);
SET ttl.preserve_ts = on;
INSERT INTO "Odd ""schema"""."t able" SELECT i, 'v' || i, now() - i * interval '10 minutes' FROM generate_series(2, 19, 3) i;
RESET ttl.preserve_ts;
SELECT kept, "kept.*" FROM "Odd ""schema"""."t able" ORDER BY 1;
SELECT kept, "kept.*" FROM ttl.expired(NULL::"Odd ""schema"""."t able") ORDER BY 1;
SELECT kept, "kept.*" FROM ttl.expired(NULL::part_2) ORDER BY 1;
SELECT ttl.revive('part_2', 'kept = 17'), ttl.revive('"Odd ""schema"""."t able"', '"kept.*" = ''v8''');
SELECT kept FROM "Odd ""schema"""."t able" ORDER BY 1;
-- partitioned by the time: a row moves
CREATE TABLE by_time (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
CREATE TABLE old PARTITION OF by_time FOR VALUES FROM (MINVALUE) TO ('2021-01-01');
CREATE TABLE new PARTITION OF by_time FOR VALUES FROM ('2021-01-01') TO (MAXVALUE);
SELECT ttl.enable('by_time', 3600, ttl_column => NULL);
SET ttl.preserve_ts = on;
INSERT INTO by_time VALUES (1, '2020-01-01'), (2, '2020-02-01');
RESET ttl.preserve_ts;
SELECT id FROM ttl.expired(NULL::by_time) ORDER BY id;
SELECT ttl.revive('by_time', 'id = 1');
SELECT tableoid::regclass, id FROM by_time;
SELECT id FROM ttl.expired(NULL::by_time) ORDER BY id;

-- TTL indexes
CREATE TABLE dated (id int, at timestamptz, d date);
CREATE INDEX dated_at ON dated (at);
CREATE INDEX dated_d ON dated (d) WHERE id < 3;
SELECT ttl.expire_index('dated_at', 60), ttl.expire_index('dated_d', 60);
INSERT INTO dated VALUES (1, '2020-01-01', NULL), (2, NULL, '2020-01-01'), (3, NULL, '2020-01-01'), (4, '-infinity', NULL);
SELECT id FROM ttl.expired(NULL::dated) ORDER BY id;
SELECT ttl.revive('dated');
-- beside a default: what has expired by its date stays expired
SELECT ttl.enable('dated', 3600);
SET ttl.preserve_ts = on;
UPDATE dated SET _ts = '2020-01-01' WHERE id > 2;
RESET ttl.preserve_ts;
INSERT INTO dated VALUES (1, '2020-01-01', NULL);
SELECT id FROM ttl.expired(NULL::dated) ORDER BY id;
SELECT ttl.revive('dated', 'id <> 4');
SELECT id FROM dated;
-- TTL off: no row is expired
SELECT ttl.disable('dated', revive_expired => true);
SELECT count(*) FROM ttl.expired(NULL::dated);
SELECT ttl.revive('dated');

-- C23: keep_expired
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 3600, "keep_expired": -1}';
SELECT ttl.set_option('t', 'keep_expired', '-1');
SELECT ttl.set_option('t', 'keep_expired', '1 month');
SELECT ttl.set_option('t', 'keep_expired', '2147483648');
SELECT ttl.set_option('t', 'keep_expired', '1 day');
-- it stays with other changes
SELECT ttl.enable('t', 3600);
SELECT relation, keep_expired, deletion_waits_until FROM ttl.tables WHERE relation = 't'::regclass;
SET ttl.preserve_ts = on;
UPDATE t SET _ts = now() - interval '2 hours' WHERE id < 3;
RESET ttl.preserve_ts;
SELECT id FROM ttl.expired(NULL::t) ORDER BY id;
-- a new row needs the key; many rows at once do not end what is kept
INSERT INTO t (id) VALUES (1);
INSERT INTO t (id) SELECT generate_series(100, 2100);
SELECT id FROM ttl.expired(NULL::t) ORDER BY id;
-- purge waits for nothing
SELECT ttl.purge('t');
SELECT id FROM ttl.expired(NULL::t) ORDER BY id;
-- C24: no delay here
SELECT ttl.set_default('t', 1800);
SELECT ttl_internal.policy('t') -> 'local' ? 'shortened' AS noted, ttl_internal.policy('t') -> 'keep_expired' AS kept;
SELECT ttl.set_option('t', 'keep_expired', NULL);
SELECT keep_expired FROM ttl.tables WHERE relation = 't'::regclass;
SELECT ttl_internal.row_is_kept(0, 1);

SET client_min_messages = warning;
DROP SCHEMA undo, "Odd ""schema""" CASCADE;
DROP ROLE regress_undo_owner, regress_undo_other;
