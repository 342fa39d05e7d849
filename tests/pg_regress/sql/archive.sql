-- C26, C27, C28: expired rows are archived by the statement that deletes them, and told of.
CREATE SCHEMA archive;
SET search_path = archive;
\set VERBOSITY default
CREATE TABLE t (id int PRIMARY KEY, what text DEFAULT 'x', gone int, n int GENERATED ALWAYS AS IDENTITY);
ALTER TABLE t DROP COLUMN gone;
SELECT ttl.enable('t', 100);
CREATE FUNCTION fill(rel regclass, first int, last int) RETURNS void LANGUAGE plpgsql SET ttl.preserve_ts = on AS $$
BEGIN
    EXECUTE format('INSERT INTO %s (id, _ts, ttl) SELECT i, ''2020-01-01'', i FROM generate_series($1, $2) i', rel)
      USING first, last;
END $$;

-- Refusals.
SELECT ttl.archive_to(NULL, 't');
SELECT ttl.archive_to('t', 't');
CREATE TABLE plain (id int);
SELECT ttl.archive_to('plain', 't');
SELECT ttl.archive_to('t', 'plain');
CREATE TABLE other_type (id date, what text, n int, _ts timestamptz, ttl int);
SELECT ttl.archive_to('t', 'other_type');
CREATE VIEW v AS SELECT * FROM t;
SELECT ttl.archive_to('t', 'v');
CREATE TEMPORARY TABLE temporary (LIKE t);
CREATE UNLOGGED TABLE unlogged (LIKE t);
\set VERBOSITY sqlstate
SELECT ttl.archive_to('t', 'temporary');
SELECT ttl.archive_to('t', 'unlogged');
\set VERBOSITY default
CREATE TABLE child () INHERITS (t);
SELECT ttl.archive_to('t', 'child');
SELECT ttl.archive_to('child', 't');
DROP TABLE child;
CREATE TABLE ruled (LIKE t);
CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT 1;
SELECT ttl.archive_to('t', 'ruled');
SELECT ttl.archive_to('t', 'pg_class');
-- one in which the rows are expired, too
CREATE TABLE alike (LIKE t INCLUDING ALL) WITH (ttl.default_ttl = 100);
SELECT ttl.archive_to('t', 'alike');
SELECT ttl.set_default('alike', '3650 days');
SELECT ttl.archive_to('t', 'alike');
SELECT ttl.problems('t');
SELECT ttl.set_default('alike', 1);
SELECT ttl.problems('t');
SELECT ttl.archive_to('t', NULL);
CREATE ROLE regress_archive_owner;
GRANT USAGE, CREATE ON SCHEMA archive TO regress_archive_owner;
CREATE TABLE hers (LIKE t);
ALTER TABLE hers OWNER TO regress_archive_owner;
CREATE TABLE mine (LIKE t);
SELECT ttl.enable('hers', 100);
SELECT ttl.archive_to('hers', 'mine');
SET ROLE regress_archive_owner;
SELECT ttl.archive_to('t', 'hers');
RESET ROLE;

-- All columns, by name, with _ts and override, though the archive has a policy of its own, a column
-- more, another order, a generated one, and other types.
CREATE TABLE a (extra text DEFAULT 'e', what varchar, ttl int, _ts timestamptz DEFAULT ttl.current_ts(), id bigint,
                n bigint GENERATED ALWAYS AS IDENTITY);
SELECT ttl.enable('a', -1, ttl_column => NULL);
SELECT ttl.archive_to('t', 'a');
SELECT label::jsonb -> 'archive_to' AS archive_to, (ttl_internal.policy('t') #>> '{local,archive,table}')::oid = 'a'::regclass AS bound
  FROM pg_seclabel WHERE objoid = 't'::regclass AND provider = 'ttl';
SELECT fill('t', 1, 3);
INSERT INTO t VALUES (10);
SELECT ttl.purge('t');
SELECT id, extra, what, n, ttl, _ts FROM a ORDER BY id;
SELECT id FROM t;
-- a statement of the archive's triggers is stamped as ever
CREATE TABLE log (id int, _ts timestamptz DEFAULT ttl.current_ts());
SELECT ttl.enable('log', 1000, ttl_column => NULL);
CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO archive.log (id, _ts) VALUES (new.id, '2020-01-01');
    RETURN new;
END $$;
CREATE TRIGGER log BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION log();
SELECT fill('t', 4, 4);
SELECT ttl.purge('t');
SELECT id, _ts > '2021-01-01' AS stamped FROM log;
DROP TRIGGER log ON a;
-- chains that lead back
CREATE TABLE circle (LIKE t);
SELECT ttl.enable('circle', 50);
SELECT ttl.archive_to('circle', 't');
ALTER TABLE a DROP COLUMN extra;
SELECT ttl.archive_to('a', 'circle');

-- A key: INSERT, COPY, upsert, MERGE.
TRUNCATE a;
SELECT fill('t', 20, 24);
INSERT INTO t (id) VALUES (20);
COPY t (id) FROM stdin;
21
\.
INSERT INTO t (id) VALUES (22) ON CONFLICT (id) DO UPDATE SET what = 'conflict' RETURNING id, what;
UPDATE t SET id = 23 WHERE id = 22;
SELECT id, _ts, ttl FROM a ORDER BY id;
-- a transaction that is rolled back has archived nothing
BEGIN;
INSERT INTO t (id) VALUES (24);
SELECT id FROM a WHERE id = 24;
ROLLBACK;
SELECT id FROM a WHERE id = 24;

-- Before a statement that checks all rows, and before a change of policy.
TRUNCATE a;
ALTER TABLE t ADD CHECK (id <> 24);
SELECT id FROM a;
SELECT fill('t', 25, 26);
SELECT ttl.set_default('t', 100000000, confirm => true);
SELECT id FROM a ORDER BY id;
SELECT ttl.set_default('t', 100);

-- A row that a trigger keeps is not archived.
TRUNCATE a;
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% %: %', tg_when, old.id, ttl.deleting();
    IF old.id = 31 THEN RETURN NULL; END IF;
    RETURN old;
END $$;
CREATE TRIGGER keep BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep();
CREATE TRIGGER told AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep();
SELECT fill('t', 30, 32);
SELECT ttl.purge('t');
SELECT id FROM a ORDER BY id;
-- ttl.deleting(): by a key, by DELETE, after an error, within one
SELECT fill('t', 33, 33);
INSERT INTO t (id) VALUES (33);
DELETE FROM t WHERE id = 33;
SELECT ttl.deleting();
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
        RAISE NOTICE 'caught: %', ttl.deleting();
    END;
    RAISE EXCEPTION 'fails';
END $$;
CREATE TRIGGER fail AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION fail();
SELECT fill('t', 34, 34);
DO $$ BEGIN PERFORM ttl.purge('archive.t'); EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%: %', sqlerrm, ttl.deleting(); END $$;
SELECT ttl.purge('t');
SELECT ttl.deleting();
BEGIN;
SAVEPOINT s;
INSERT INTO t (id) VALUES (34);
ROLLBACK TO s;
SELECT ttl.deleting();
ROLLBACK;
DROP TRIGGER fail ON t;
DROP TRIGGER keep ON t;
DROP TRIGGER told ON t;
SELECT ttl.purge('t');

-- The archive refuses a row: nothing is deleted.
TRUNCATE a;
ALTER TABLE a ADD CONSTRAINT small CHECK (id < 50);
SELECT fill('t', 49, 51);
SELECT ttl.purge('t');
INSERT INTO t (id) VALUES (50);
-- all that can go
ALTER TABLE t ADD CHECK (id <> 50);
SELECT id FROM a;
ALTER TABLE a DROP CONSTRAINT small;
-- renamed: followed
SELECT ttl.problems('t');
SET quote_all_identifiers = on;
SELECT ttl.problems('t');
SELECT ttl.archive_to('t', 'a');
RESET quote_all_identifiers;
SELECT ttl.problems('t');
SELECT label::jsonb -> 'archive_to' AS archive_to FROM pg_seclabel WHERE objoid = 't'::regclass AND provider = 'ttl';
ALTER TABLE a RENAME TO b;
SELECT ttl.purge('t');
SELECT id FROM b ORDER BY id;
SELECT unnest(problems) FROM ttl.tables WHERE relation = 't'::regclass;
-- dropped: nothing is deleted, and nothing goes to another table of either name
SELECT fill('t', 52, 52);
DROP TABLE b;
CREATE TABLE a (LIKE t);
CREATE TABLE b (LIKE t);
SELECT ttl.purge('t');
INSERT INTO t (id) VALUES (52);
SELECT unnest(problems) FROM ttl.tables WHERE relation = 't'::regclass;
SELECT ttl.archive_to('t', 'b');
SELECT ttl.purge('t');
SELECT id FROM b UNION ALL SELECT -id FROM a;
SELECT ttl.archive_to('t', NULL);

-- A dump: by its name there is no archive before the owner says so.
CREATE TABLE restored (id int, ttl int, _ts timestamptz DEFAULT ttl.current_ts());
CREATE TABLE "the Archive" (LIKE restored);
SECURITY LABEL FOR ttl ON TABLE restored IS
    '{"default_ttl": 100, "archive_to": "archive.\"the Archive\""}';
SELECT unnest(ttl.problems('restored'));
SELECT ttl.resume('restored');
SELECT unnest(ttl.problems('restored'));
SELECT fill('restored', 1, 2);
SELECT ttl.purge('restored');
SELECT ttl.archive_to('archive.restored', 'archive."the Archive"');
SELECT ttl.purge('restored');
SELECT id, _ts FROM "the Archive" ORDER BY id;
-- in the other order
SECURITY LABEL FOR ttl ON TABLE restored IS '{"default_ttl": 100, "archive_to": "archive.\"the Archive\""}';
SELECT ttl.archive_to('restored', 'archive."the Archive"');
SELECT unnest(ttl.problems('restored')) LIKE 'nothing is deleted: restored %' AS waits;
SELECT ttl.resume('restored');
SELECT ttl.problems('restored');
SECURITY LABEL FOR ttl ON TABLE restored IS '{"default_ttl": 100, "archive_to": "archive.nothing"}';
SELECT ttl.resume('restored');
-- a statement cannot say which table it is, nor what is remembered of the table
SECURITY LABEL FOR ttl ON TABLE restored IS '{"default_ttl": 100, "archive_to": "archive.alike"}';
SELECT label, ttl_internal.policy('restored') -> 'local' AS local FROM pg_seclabel WHERE objoid = 'restored'::regclass AND provider = 'ttl';
SECURITY LABEL FOR ttl ON TABLE restored IS '{"default_ttl": 100, "local": {"database": 1}}';
SECURITY LABEL FOR ttl ON TYPE restored IS '{"database": 1}';
SECURITY LABEL FOR ttl ON TABLE restored IS '{"default_ttl": 100, "archive_to": ""}';
SECURITY LABEL FOR ttl ON TABLE restored IS '{"default_ttl": 100, "notify": ""}';

-- Partitions, from one table to another.
CREATE TABLE p (id int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ttl int) PARTITION BY RANGE (id);
CREATE TABLE p1 (ttl int, id int NOT NULL, _ts timestamptz NOT NULL DEFAULT ttl.current_ts());
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
CREATE TABLE q (LIKE p) PARTITION BY LIST (id);
CREATE TABLE q1 PARTITION OF q DEFAULT;
SELECT ttl.enable('p', 100);
SELECT ttl.archive_to('p', 'p1');
SELECT ttl.archive_to('p1', 'q');
SELECT ttl.archive_to('p', 'q');
SELECT fill('p', 8, 11);
SELECT ttl.purge('p');
SELECT tableoid::regclass, id, _ts, ttl FROM q ORDER BY id;
-- one that belongs to somebody else
ALTER TABLE p2 OWNER TO regress_archive_owner;
ALTER TABLE p OWNER TO regress_archive_owner;
GRANT INSERT ON q TO regress_archive_owner;
SELECT fill('p', 9, 12);
SELECT ttl.purge('p');
SELECT unnest(ttl.problems('p'));
SELECT ttl.archive_to('p', 'q');
ALTER TABLE q OWNER TO regress_archive_owner;
SELECT ttl.archive_to('p', 'q');
ALTER TABLE q1 OWNER TO regress_archive_owner;
SELECT unnest(ttl.problems('p'));
SELECT ttl.archive_to('p', 'q');
SELECT unnest(ttl.problems('p'));
ALTER TABLE p1 OWNER TO regress_archive_owner;
SELECT ttl.problems('p');
SELECT ttl.purge('p');
SELECT tableoid::regclass, id FROM q ORDER BY id;
-- a partition of the archive, and a table whose partition the archive becomes
CREATE TABLE q2 PARTITION OF q FOR VALUES IN (1);
SELECT fill('p', 1, 2);
SELECT ttl.purge('p');
DROP TABLE q2;
SELECT ttl.purge('p');
CREATE TABLE around (LIKE q) PARTITION BY RANGE (id);
ALTER TABLE around ATTACH PARTITION q DEFAULT;
SELECT ttl.problems('p');
SELECT ttl.archive_to('p', 'q');
ALTER TABLE around DETACH PARTITION q;
SELECT ttl.problems('p');

-- Whoever inserts: the archive is the owner's.
CREATE TABLE shared (id int PRIMARY KEY, who name);
CREATE TABLE shared_archive (id int PRIMARY KEY, who name, ttl int, _ts timestamptz);
CREATE ROLE regress_archive_writer;
GRANT USAGE ON SCHEMA archive TO regress_archive_writer;
ALTER TABLE shared OWNER TO regress_archive_owner;
ALTER TABLE shared_archive OWNER TO regress_archive_owner;
GRANT SELECT, INSERT ON shared TO regress_archive_writer;
SELECT ttl.enable('shared', 100);
SELECT ttl.archive_to('shared', 'shared_archive');
CREATE FUNCTION who() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    new.who = current_user;
    RETURN new;
END $$;
CREATE TRIGGER who BEFORE INSERT ON shared_archive FOR EACH ROW EXECUTE FUNCTION who();
SELECT fill('shared', 1, 3);
-- In the session of a user who could not become the owner the archive takes nothing: a worker does that.
SET ROLE regress_archive_writer;
INSERT INTO shared (id) VALUES (1);
RESET ROLE;
GRANT regress_archive_owner TO regress_archive_writer;
SET ROLE regress_archive_writer;
INSERT INTO shared (id) VALUES (1);
INSERT INTO shared_archive (id) VALUES (9);
RESET ROLE;
SELECT id, who, ttl FROM shared_archive;
-- the error names the archive
INSERT INTO shared_archive (id) VALUES (2);
SET ROLE regress_archive_writer;
INSERT INTO shared (id) VALUES (2);
RESET ROLE;
-- what would run later as the writer is refused
DELETE FROM shared_archive;
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON shared_archive DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION later();
SET ROLE regress_archive_writer;
INSERT INTO shared (id) VALUES (2);
RESET ROLE;
REVOKE INSERT ON shared_archive FROM regress_archive_owner;
SELECT ttl.purge('shared');
GRANT INSERT ON shared_archive TO regress_archive_owner;
REVOKE regress_archive_owner FROM regress_archive_writer;
-- another owner of either, and the former one again
ALTER TABLE shared_archive OWNER TO regress_archive_writer;
SELECT ttl.purge('shared');
ALTER TABLE shared OWNER TO regress_archive_writer;
SELECT ttl.purge('shared');
ALTER TABLE shared OWNER TO regress_archive_owner;
ALTER TABLE shared_archive OWNER TO regress_archive_owner;
SELECT ttl.problems('shared');

-- Rows that refer to one that is deleted. An archive that is not to be used stops only what would go there.
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int, parent int REFERENCES parent, _ts timestamptz DEFAULT ttl.current_ts(), ttl int);
CREATE TABLE child_archive (LIKE child);
SELECT ttl.enable('child', 100);
SELECT ttl.enable('child_archive', -1, ttl_column => NULL);
SELECT ttl.archive_to('child', 'child_archive');
INSERT INTO parent SELECT generate_series(1, 5);
BEGIN;
SET LOCAL ttl.preserve_ts = on;
INSERT INTO child SELECT i, i, '2020-01-01', 5 FROM generate_series(1, 4) AS i;
COMMIT;
DELETE FROM parent WHERE id <= 2;
SELECT * FROM child_archive ORDER BY id;
ALTER TABLE child_archive OWNER TO regress_archive_owner;
DELETE FROM parent WHERE id = 3;
DELETE FROM parent WHERE id = 5;
ALTER TABLE child_archive OWNER TO CURRENT_USER;
DELETE FROM parent WHERE id = 3;
SELECT ttl.resume('child'), ttl.resume('child_archive');
DELETE FROM parent WHERE id = 3;
SELECT * FROM child_archive WHERE id > 2;

-- NOTIFY: what comes is seen by the other tests
SELECT ttl.set_option('shared', 'notify', 'gone');
SELECT label::jsonb -> 'notify' AS notify FROM pg_seclabel WHERE objoid = 'shared'::regclass AND provider = 'ttl';
SELECT ttl.set_option('shared', 'notify', repeat('long', 20));
SELECT ttl.set_option('shared', 'notify', '');
SELECT ttl.set_option('shared', 'notify', NULL);
SELECT label::jsonb -> 'notify' AS notify FROM pg_seclabel WHERE objoid = 'shared'::regclass AND provider = 'ttl';
SET client_min_messages = warning;
DROP SCHEMA archive CASCADE;
DROP ROLE regress_archive_owner, regress_archive_writer;
