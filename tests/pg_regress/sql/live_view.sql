-- C31: ttl.is_live, ttl.create_live_view.
CREATE SCHEMA live_view;
SET search_path = live_view;
SET timezone = 'UTC';
CREATE TABLE o (gone int, id int PRIMARY KEY, "Note" text, at date);
ALTER TABLE o DROP COLUMN gone;
SELECT ttl.create_live_view('o', 'o_live');
SELECT ttl.enable('o', 3600, hidden => false);
SELECT ttl.create_live_view('o', 'o_live');
SELECT ttl.create_live_view('o', 'o_live');
-- 15 names the alias before each column
SELECT regexp_replace(regexp_replace(pg_get_viewdef('o_live'), '\mr\.(?=["_a-z])', '', 'g'), '\s+', ' ', 'g');
SELECT reloptions FROM pg_class WHERE oid = 'o_live'::regclass;
SET ttl.preserve_ts = on;
INSERT INTO o (id, "Note", ttl, _ts) SELECT i, 'n', NULL, now() - interval '2 h' FROM generate_series(1, 3) i;
INSERT INTO o (id, "Note", ttl, _ts) VALUES (4, 'lives', 10000, now() - interval '2 h'), (5, 'gone', 10, now() - interval '1 m'), (6, 'lives', NULL, now());
RESET ttl.preserve_ts;
SELECT id FROM o ORDER BY id;
SELECT id, "Note" FROM o_live ORDER BY id;
-- the same by the function: replaced by the filter's expression, or by looking at the row
SELECT id FROM o WHERE ttl.is_live(o) ORDER BY id;
SELECT id, ttl.is_live(o) FROM o ORDER BY id;
SELECT id, ttl.is_live(r) FROM (SELECT id, o AS r FROM o OFFSET 0) AS s ORDER BY id;
SELECT bool_and(live IS NOT DISTINCT FROM ttl.is_live(r)) FROM (SELECT ttl.is_live(o) AS live, o AS r FROM o OFFSET 0) AS s;
SELECT ttl.is_live(NULL::o), ttl.is_live(NULL);
SELECT ttl.is_live(v) FROM o_live AS v;
SELECT ttl.is_live(ROW(1));
SELECT x, id FROM generate_series(3, 7) AS x LEFT JOIN o ON id = x WHERE ttl.is_live(o) ORDER BY 1;
SELECT x, v.id FROM generate_series(3, 7) AS x LEFT JOIN o_live AS v ON id = x ORDER BY 1;
SELECT v.id, w.id FROM o_live v JOIN o_live w ON w.id = v.id + 2;
SELECT x, EXISTS (SELECT FROM o_live WHERE id = x) FROM generate_series(5, 6) AS x;
SELECT id, (SELECT ttl.is_live(o)) FROM o ORDER BY id;
-- plans: by the table's indexes
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM o_live WHERE id = 4;
EXPLAIN (COSTS OFF) SELECT * FROM o WHERE ttl.is_live(o) AND id = 4;
RESET enable_seqscan;
-- a change of default needs no new view
PREPARE ids AS SELECT id FROM o_live ORDER BY id;
EXECUTE ids;
EXECUTE ids;
EXECUTE ids;
EXECUTE ids;
EXECUTE ids;
EXECUTE ids;
SELECT ttl.set_default('o', 100000);
EXECUTE ids;
SELECT ttl.set_default('o', 3600);
EXECUTE ids;
SELECT ttl.set_default('o', NULL, revive_expired => true);
EXECUTE ids;
SELECT ttl.set_default('o', 3600);
EXECUTE ids;
-- changed through the view
INSERT INTO o_live (id, "Note") VALUES (7, 'new') RETURNING id, ttl.remaining(NULL::o);
UPDATE o_live SET "Note" = 'changed' RETURNING id;
DELETE FROM o_live WHERE id IN (3, 6) RETURNING id;
SELECT id, "Note" FROM o ORDER BY id;
BEGIN;
SELECT id FROM o_live ORDER BY id FOR UPDATE;
ROLLBACK;
-- a TTL index of each kind
CREATE INDEX o_at ON o (at) WHERE "Note" <> 'kept';
SELECT ttl.expire_index('o_at', 0);
UPDATE o SET at = '2001-01-01' WHERE id IN (4, 7);
UPDATE o SET "Note" = 'kept' WHERE id = 7;
EXECUTE ids;
SELECT id, ttl.is_live(r) FROM (SELECT id, o AS r FROM o OFFSET 0) AS s ORDER BY id;
-- row-level security and privileges are the reader's
CREATE ROLE regress_live;
GRANT USAGE ON SCHEMA live_view TO regress_live;
GRANT SELECT ON o_live TO regress_live;
SET ROLE regress_live;
SELECT id FROM o_live;
RESET ROLE;
GRANT SELECT ON o TO regress_live;
ALTER TABLE o ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON o USING (id % 2 = 1);
SET ROLE regress_live;
SELECT id FROM o_live ORDER BY id;
SELECT ttl.create_live_view('o', 'mine');
RESET ROLE;
-- names: the table's schema is the default
CREATE SCHEMA "Other";
SELECT ttl.create_live_view('o', '"Other"."A view"');
SELECT ttl.create_live_view('o', 'UPPER');
SET search_path = pg_catalog;
SELECT ttl.create_live_view('live_view.o', 'unqualified');
SET search_path = live_view;
SELECT ttl.create_live_view('o', 'a..b');
SELECT ttl.create_live_view('o', '');
SELECT ttl.create_live_view('o', 'nosuch.v');
SELECT ttl.create_live_view('o', 'x; DROP TABLE o');
SELECT ttl.create_live_view('o', NULL);
SELECT ttl.create_live_view('o', 'v', NULL);
DROP VIEW upper, unqualified, "Other"."A view";
-- dropped with the policy only if asked
SELECT ttl.disable('o', drop_columns => true);
SELECT id FROM o_live WHERE id = 7;
DROP VIEW o_live;
SELECT ttl.create_live_view('o', '"Other".with_policy', drop_with_policy => true);
SELECT ttl.disable('o', drop_columns => true);
SELECT to_regclass('"Other".with_policy');
-- a label does not drop what is no view of this table's live rows
CREATE TABLE u (id int);
SELECT ttl.enable('u', 60), ttl.create_live_view('u', 'u_live', drop_with_policy => true);
CREATE VIEW precious AS SELECT 1 AS one;
DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR ttl ON TABLE u IS %L', (SELECT jsonb_set(label::jsonb, '{added,views}', '["live_view.precious", "live_view.u_live", "live_view.nosuch"]') FROM pg_seclabels WHERE objoid = 'u'::regclass AND provider = 'ttl')); END $$;
SELECT ttl.resume('u');
SELECT ttl.disable('u', drop_columns => true);
SELECT to_regclass('u_live'), to_regclass('precious');
-- no more views than a label may name
CREATE TABLE many (id int);
SELECT ttl.enable('many', 60);
SELECT count(ttl.create_live_view('many', 'many_' || i, drop_with_policy => true)) FROM generate_series(1, 100) AS i;
SELECT ttl.create_live_view('many', 'many_101', drop_with_policy => true);
SELECT problems FROM ttl.tables WHERE relation = 'many'::regclass;
-- partitions
CREATE TABLE p (id int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 (x int, id int);
ALTER TABLE p2 DROP COLUMN x;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20);
SELECT ttl.enable('p', 60, hidden => false);
SELECT ttl.create_live_view('p', 'p_live'), ttl.create_live_view('p1', 'p1_live');
SELECT ttl.create_live_view('p', 'p_live');
SET ttl.preserve_ts = on;
INSERT INTO p (id, _ts) VALUES (1, now() - interval '1 h'), (2, now()), (11, now() - interval '1 h'), (12, now());
RESET ttl.preserve_ts;
SELECT id FROM p_live ORDER BY id;
SELECT id FROM p2 WHERE ttl.is_live(p2);
SELECT tableoid::regclass, id, ttl.is_live(p) FROM p ORDER BY id;
-- to who sees all
SELECT ttl.enable('p', 60, hidden => true);
SET ttl.show_expired = on;
SELECT id FROM p ORDER BY id;
SELECT id FROM p_live ORDER BY id;
RESET ttl.show_expired;
-- a table without a time to live
CREATE TABLE plain (id int);
INSERT INTO plain VALUES (1);
SELECT ttl.is_live(plain) FROM plain;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA live_view, "Other" CASCADE;
DROP ROLE regress_live;
