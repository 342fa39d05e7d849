-- C6, hostile cases: what must not be removed, who must not remove, and what must not fail.
CREATE SCHEMA reclaim_hostile;
SET search_path = reclaim_hostile;
-- COPY clears expired rows by an index of the user's that leads to live rows, too
CREATE TABLE overrides (id int PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ttl int);
CREATE INDEX ON overrides (_ts);
SELECT ttl.enable('overrides', 3600);
SET ttl.preserve_ts = on;
INSERT INTO overrides VALUES (1, '2000-01-01', -1), (2, '2000-01-01', 2000000000), (3, '2000-01-01', NULL), (4, '-infinity', -1);
RESET ttl.preserve_ts;
COPY overrides (id) FROM STDIN;
3
5
\.
SELECT id FROM overrides ORDER BY id;
SET ttl.show_expired = on;
SELECT id FROM overrides ORDER BY id;
RESET ttl.show_expired;

-- an INSERT of many rows does the same
SET ttl.preserve_ts = on;
INSERT INTO overrides VALUES (6, '2000-01-01', -1), (7, '2000-01-01', NULL);
RESET ttl.preserve_ts;
INSERT INTO overrides SELECT i FROM generate_series(7, 5000) i;
SELECT array_agg(id ORDER BY id) FROM overrides WHERE id < 9;

-- a deferred foreign key meets an expired row whose deletion fires a trigger
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
SELECT ttl.enable('child', 3600);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', tg_op, old.id; RETURN NULL; END $$;
CREATE TRIGGER note AFTER DELETE ON child FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO parent VALUES (1), (2), (3);
SET ttl.preserve_ts = on;
INSERT INTO child (id, p, _ts) VALUES (1, 1, '2000-01-01'), (2, 2, '2000-01-01');
RESET ttl.preserve_ts;
INSERT INTO child (id, p) VALUES (3, 3);
BEGIN;
DELETE FROM parent WHERE id = 1;
COMMIT;
BEGIN;
DELETE FROM parent WHERE id = 2;
SET CONSTRAINTS ALL IMMEDIATE;
COMMIT;
DELETE FROM parent WHERE id = 3;
SELECT id FROM parent;

-- a function that a foreign key's statement calls, where the planner has put it: nobody
-- else can, also where a foreign key is being enforced, and be it on a table of theirs
CREATE ROLE ttl_hostile;
GRANT CREATE, USAGE ON SCHEMA reclaim_hostile TO ttl_hostile;
CREATE TABLE victim (id int PRIMARY KEY);
SELECT ttl.enable('victim', 3600);
SET ttl.preserve_ts = on;
INSERT INTO victim (id, _ts) VALUES (1, '2000-01-01'), (2, now());
RESET ttl.preserve_ts;
CREATE TABLE partitioned (id int) PARTITION BY RANGE (id);
SELECT ttl.enable('partitioned', 3600);
SELECT ttl_internal.live_or_unneeded('victim'::regclass, '(0,1)', false);
SET ROLE ttl_hostile;
CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE c (id int REFERENCES p ON DELETE CASCADE, rel oid, place tid);
CREATE FUNCTION use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        RAISE NOTICE 'live or unneeded %: %', old.place, ttl_internal.live_or_unneeded(old.rel, old.place, false);
    EXCEPTION WHEN feature_not_supported THEN
        RAISE NOTICE 'refused %', old.place;
    END;
    RETURN old;
END $$;
CREATE TRIGGER use BEFORE DELETE ON c FOR EACH ROW EXECUTE FUNCTION use();
INSERT INTO p VALUES (1);
INSERT INTO c VALUES (1, 'victim'::regclass, '(0,1)'), (1, 'victim'::regclass, '(0,2)'), (1, 'victim'::regclass, '(0,77)'),
    (1, 'victim'::regclass, '(99,1)'), (1, 'victim'::regclass, '(4294967295,1)'), (1, 'victim'::regclass, '(0,0)'),
    (1, 'partitioned'::regclass, '(0,1)'), (1, 'pg_class'::regclass, '(0,1)'), (1, 1, '(0,1)'), (1, NULL, '(0,1)'), (1, 'victim'::regclass, NULL);
BEGIN;
DELETE FROM p;
-- not even a lock is left
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('victim'::regclass, 'partitioned'::regclass) AND mode = 'RowExclusiveLock';
ROLLBACK;
RESET ROLE;
-- the owner of all
ALTER TABLE c OWNER TO CURRENT_USER;
ALTER TABLE p OWNER TO CURRENT_USER;
DELETE FROM p;
SET ttl.show_expired = on;
SELECT id FROM victim;
RESET ttl.show_expired;

-- a key on the whole row, generated columns included
CREATE TABLE whole_row (a int, b int GENERATED ALWAYS AS (a + 1) STORED, gone int, c int);
ALTER TABLE whole_row DROP COLUMN gone;
CREATE FUNCTION key(whole_row) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN coalesce($1.b, 0); END';
CREATE UNIQUE INDEX ON whole_row ((key(whole_row)));
SELECT ttl.enable('whole_row', 3600);
SET ttl.preserve_ts = on;
INSERT INTO whole_row (a, _ts) VALUES (1, '2000-01-01'), (2, '2000-01-01');
RESET ttl.preserve_ts;
INSERT INTO whole_row (a) VALUES (1), (5);
UPDATE whole_row SET a = 2 WHERE a = 5;
SELECT a, b FROM whole_row ORDER BY a;
INSERT INTO whole_row (a) VALUES (2);

-- generated columns in keys, in a partition whose rows are built from another's
CREATE TABLE generated (r int, k int, g int GENERATED ALWAYS AS (k * 2) STORED, UNIQUE (r, g)) PARTITION BY LIST (r);
CREATE TABLE generated1 (gone int, g int GENERATED ALWAYS AS (k * 2) STORED, k int, r int);
ALTER TABLE generated1 DROP COLUMN gone;
ALTER TABLE generated ATTACH PARTITION generated1 FOR VALUES IN (1);
CREATE TABLE generated2 PARTITION OF generated FOR VALUES IN (2);
SELECT ttl.enable('generated', 3600);
SET ttl.preserve_ts = on;
INSERT INTO generated (r, k, _ts) SELECT r, k, '2000-01-01' FROM generate_series(1, 2) r, generate_series(1, 4) k;
RESET ttl.preserve_ts;
INSERT INTO generated (r, k) VALUES (1, 1), (2, 2);
UPDATE generated SET k = k + 1;
UPDATE generated SET r = 2, k = 4 WHERE r = 1;
SELECT tableoid::regclass, r, k, g FROM generated ORDER BY k;
SET ttl.show_expired = on;
SELECT tableoid::regclass, r, k, g FROM generated ORDER BY r, k;
RESET ttl.show_expired;

-- COPY on a table whose deletions cannot be published is no DELETE
CREATE TABLE published (a int UNIQUE);
SET client_min_messages = error;
CREATE PUBLICATION reclaim_hostile FOR TABLE published;
RESET client_min_messages;
SELECT ttl.enable('published', 3600);
SET ttl.preserve_ts = on;
INSERT INTO published (a, _ts) VALUES (1, '2000-01-01');
RESET ttl.preserve_ts;
COPY published (a) FROM STDIN;
2
\.
SELECT a FROM published;
DROP PUBLICATION reclaim_hostile;

-- a constraint that an index's expression counts on is heard first, as on any table
CREATE TABLE counted (id int, a float8 CHECK (a > 0));
CREATE UNIQUE INDEX ON counted (ln(a));
SELECT ttl.enable('counted', 3600);
\set VERBOSITY terse
INSERT INTO counted VALUES (1, -1);
\set VERBOSITY default
INSERT INTO counted VALUES (1, 1);
INSERT INTO counted VALUES (1, 1);
DROP TABLE counted;

-- a DELETE trigger that changes the expired row itself: the row lives again, and counts
CREATE TABLE changed (id int PRIMARY KEY, v int);
SELECT ttl.enable('changed', 3600);
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('ttl.show_expired', 'on', true);
    UPDATE changed SET v = 99 WHERE id = old.id;
    PERFORM set_config('ttl.show_expired', 'off', true);
    RETURN old;
END $$;
CREATE TRIGGER change BEFORE DELETE ON changed FOR EACH ROW EXECUTE FUNCTION change();
SET ttl.preserve_ts = on;
INSERT INTO changed VALUES (1, 1, '2000-01-01');
RESET ttl.preserve_ts;
INSERT INTO changed VALUES (1, 2);

-- a partition with a policy of its own is detached: the trigger is created in a
-- transaction that has no snapshot
CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY RANGE (id);
SELECT ttl.enable('whole', 3600);
CREATE TABLE part (LIKE whole INCLUDING ALL);
SELECT ttl.enable('part', 60);
ALTER TABLE whole ATTACH PARTITION part FOR VALUES FROM (0) TO (100);
ALTER TABLE whole DETACH PARTITION part CONCURRENTLY;
SELECT tgenabled, tgparentid <> 0 AS cloned FROM pg_trigger WHERE tgrelid = 'part'::regclass AND tgname = '~ttl_free_expired_keys';

-- foreign keys with actions are read once for many rows, and again after a change
CREATE TABLE acting (id int PRIMARY KEY);
CREATE TABLE acted (ref int CONSTRAINT first REFERENCES acting ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
SELECT ttl.enable('acting', 3600);
SET ttl.preserve_ts = on;
INSERT INTO acting VALUES (1, '2000-01-01'), (2, '2000-01-01'), (3, '2000-01-01');
RESET ttl.preserve_ts;
INSERT INTO acting VALUES (1), (2);
ALTER TABLE acted RENAME ref TO other;
ALTER TABLE acted RENAME CONSTRAINT first TO second;
BEGIN;
INSERT INTO acted VALUES (3);
INSERT INTO acting VALUES (3);
COMMIT;

SET client_min_messages = error;
DROP SCHEMA reclaim_hostile CASCADE;
DROP ROLE ttl_hostile;
