-- C29, C30: ttl.pause, ttl.resume, delete_between. That workers obey: workers/resting.rs.
CREATE SCHEMA pause;
SET search_path = pause;
CREATE TABLE t (id int PRIMARY KEY);
SELECT ttl.pause('t');
SELECT ttl.enable('t', 3600);
CREATE VIEW shown AS SELECT relation, paused_until, delete_between, worker, problems FROM ttl.tables WHERE relation::text !~ '\.';
CREATE VIEW labelled AS SELECT label::jsonb - 'added' AS label FROM pg_seclabels WHERE objoid = 'pause.t'::regclass AND provider = 'ttl';
SELECT * FROM shown;
SELECT ttl.pause('t');
SELECT * FROM shown;
SELECT label ->> 'paused_until' FROM labelled;
SELECT ttl.pause('t', '2100-01-01 00:00:00.5+00');
SELECT paused_until AT TIME ZONE 'UTC', problems FROM shown;
SELECT label ->> 'paused_until' FROM labelled;
-- hidden as ever, keys are free, ttl.purge deletes
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts) VALUES (1, now() - interval '2 h'), (2, now() - interval '2 h'), (3, now());
RESET ttl.preserve_ts;
SELECT id FROM t;
INSERT INTO t VALUES (1);
SELECT ttl.purge('t');
SELECT id FROM t ORDER BY id;
-- other changes keep it, as does a transaction that is rolled back
SELECT ttl.set_default('t', 7200);
SELECT ttl.enable('t', 7200, hidden => false);
SELECT ttl.disable('t');
SELECT ttl.enable('t', 7200, hidden => true);
BEGIN;
SELECT ttl.resume('t');
ROLLBACK;
SELECT label FROM labelled;
SELECT ttl.resume('t');
SELECT label FROM labelled;
SELECT ttl.resume('t');
-- refused
SELECT ttl.pause('t', now());
SELECT ttl.pause('t', '-infinity');
SELECT ttl.pause('t', NULL);
SELECT ttl.pause(NULL);
CREATE VIEW v AS SELECT 1;
SELECT ttl.pause('v');
CREATE ROLE regress_pause;
GRANT USAGE ON SCHEMA pause TO regress_pause;
SET ROLE regress_pause;
SELECT ttl.pause('t');
SELECT ttl.set_option('t', 'delete_between', '22:00-06:00');
RESET ROLE;
SET default_transaction_read_only = on;
SELECT ttl.pause('t');
RESET default_transaction_read_only;
-- the window
SELECT ttl.set_option('t', 'delete_between', '22:00-06:00');
SELECT delete_between, paused_until FROM shown;
SELECT ttl.set_option('t', 'delete_between', ' 00:30 - 24:00 ');
SELECT label FROM labelled;
SELECT ttl.set_option('t', 'delete_between', '22:00-22:00');
SELECT ttl.set_option('t', 'delete_between', '22:00-06:00:30');
SELECT ttl.set_option('t', 'delete_between', '25:00-06:00');
SELECT ttl.set_option('t', 'delete_between', 'at night');
SELECT delete_between FROM shown;
SELECT ttl.resume('t');
SELECT delete_between FROM shown;
SELECT ttl.set_option('t', 'delete_between', NULL);
SELECT label FROM labelled;
-- labels by hand
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 60, "paused_until": "for ever"}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 60, "paused_until": 9e30}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 60, "delete_between": "6-7"}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 60, "paused_until": "infinity", "delete_between": "06:00-07:00"}';
-- ttl.resume ends both: what waits after a restore, and the pause
SELECT worker, problems FROM (SELECT paused_until, problems::text ~ 'paused without an end' AS problems, worker FROM shown) AS s;
SELECT ttl.resume('t');
SELECT label FROM labelled;
-- a TTL index first, then a default
CREATE TABLE i (id int PRIMARY KEY, at timestamptz);
CREATE INDEX i_at ON i (at);
SELECT ttl.expire_index('i_at', 60);
SELECT ttl.pause('i', '2100-01-01'), ttl.set_option('i', 'delete_between', '01:00-02:00');
SELECT ttl.enable('i', 3600);
SELECT relation, paused_until IS NOT NULL AS paused, delete_between FROM shown ORDER BY 1;
-- a partition follows its parent
CREATE TABLE p (id int) PARTITION BY LIST (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
SELECT ttl.enable('p', 60);
SELECT ttl.pause('p1');
DROP SCHEMA pause CASCADE;
DROP ROLE regress_pause;
