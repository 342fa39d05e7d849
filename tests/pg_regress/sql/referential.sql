-- C6 and foreign keys: an expired parent takes no new child; what keeps the
-- tables consistent on disk reaches every row.
CREATE SCHEMA referential;
SET search_path = referential;
CREATE TABLE parent (id int PRIMARY KEY, k int UNIQUE);
SELECT ttl.enable('parent', 3600);
CREATE TABLE cascading (id int, pid int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE nulling (id int, pid int REFERENCES parent (k) ON DELETE SET NULL);
CREATE TABLE acting (id int, pid bigint REFERENCES parent ON DELETE NO ACTION);
SELECT ttl.enable(c, 3600) FROM unnest('{cascading,nulling,acting}'::regclass[]) c;
CREATE FUNCTION expire(tab regclass, rid int) RETURNS void LANGUAGE plpgsql
    SET ttl.preserve_ts = on SET ttl.show_expired = on AS $$
BEGIN EXECUTE format('UPDATE %s SET _ts = now() - interval ''1 day'' WHERE id = %s', tab, rid); END $$;
CREATE FUNCTION orphans() RETURNS bigint LANGUAGE sql SET ttl.show_expired = on AS $$
    SELECT (SELECT count(*) FROM cascading c WHERE pid IS NOT NULL AND NOT EXISTS (SELECT FROM parent WHERE id = pid))
         + (SELECT count(*) FROM nulling c WHERE pid IS NOT NULL AND NOT EXISTS (SELECT FROM parent WHERE k = pid))
         + (SELECT count(*) FROM acting c WHERE pid IS NOT NULL AND NOT EXISTS (SELECT FROM parent WHERE id = pid)) $$;
INSERT INTO parent SELECT i, i FROM generate_series(1, 9) i;

-- a child of an expired parent is refused: 23503
SELECT expire('parent', 1);
\set VERBOSITY sqlstate
INSERT INTO cascading VALUES (1, 1);
\set VERBOSITY default
INSERT INTO nulling VALUES (1, 1);
INSERT INTO acting VALUES (1, 1);
INSERT INTO cascading VALUES (2, 2);
UPDATE cascading SET pid = 1 WHERE id = 2;

-- ON DELETE CASCADE, SET NULL, ON UPDATE CASCADE remove expired children, and do not revive them
INSERT INTO cascading VALUES (3, 3);
INSERT INTO nulling VALUES (3, 3), (33, 3);
SELECT expire('cascading', 3), expire('nulling', 3);
DELETE FROM parent WHERE id = 3;
SELECT orphans();
SELECT id, pid FROM nulling;
SET ttl.show_expired = on;
SELECT count(*) FROM cascading WHERE id = 3;
SELECT id, pid, _ts > now() - interval '10 s' AS fresh FROM nulling ORDER BY id;
RESET ttl.show_expired;
-- ON UPDATE CASCADE likewise
INSERT INTO cascading VALUES (4, 4), (44, 4);
SELECT expire('cascading', 4);
UPDATE parent SET id = 40 WHERE id = 4;
SET ttl.show_expired = on;
SELECT id, pid, _ts > now() - interval '10 s' AS fresh FROM cascading WHERE pid = 40 ORDER BY id;
RESET ttl.show_expired;
SELECT orphans();
-- NO ACTION removes an expired child: it blocks nobody
INSERT INTO acting VALUES (5, 5);
SELECT expire('acting', 5);
DELETE FROM parent WHERE id = 5;
SELECT orphans();
-- purging an expired parent cascades to live children, or is refused for them
INSERT INTO cascading VALUES (6, 6);
SELECT expire('parent', 6);
SELECT ttl.purge('parent');
SELECT orphans();
SELECT count(*) FROM cascading WHERE id = 6;
INSERT INTO acting VALUES (7, 7);
SELECT expire('parent', 7);
SELECT ttl.purge('parent');
SELECT orphans();

-- triggers that fire inside a cascade see live rows only
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE n bigint; e bigint;
BEGIN
    SELECT count(*) INTO n FROM referential.cascading WHERE OLD.pid = pid;
    SELECT count(*) INTO e FROM referential.parent WHERE 7 = id;
    RAISE NOTICE 'cascade to %: sees % of the children, % expired parents', OLD.id, n, e;
    RETURN OLD;
END $$;
CREATE TRIGGER tell BEFORE DELETE ON cascading FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO cascading VALUES (8, 8), (88, 8), (888, 8);
SELECT expire('cascading', 8);
DELETE FROM parent WHERE id = 8;
SELECT orphans();

-- constraints are validated against every row on disk
CREATE TABLE late (id int, pid int);
INSERT INTO late VALUES (1, 7);
ALTER TABLE late ADD FOREIGN KEY (pid) REFERENCES parent;
ALTER TABLE late DROP CONSTRAINT late_pid_fkey;
ALTER TABLE late ADD CONSTRAINT fk FOREIGN KEY (pid) REFERENCES parent NOT VALID;
ALTER TABLE late VALIDATE CONSTRAINT fk;
-- but only inside ALTER TABLE, and only by PostgreSQL's own query
SELECT fk.pid FROM ONLY late fk LEFT OUTER JOIN ONLY parent pk ON (pk.id OPERATOR(pg_catalog.=) fk.pid) WHERE pk.id IS NULL AND fk.pid IS NOT NULL;
CREATE FUNCTION nosy(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN EXISTS (SELECT FROM referential.parent WHERE id = $1); END $$;
ALTER TABLE late ADD CHECK (nosy(pid));
ALTER TABLE late ADD COLUMN x int;
SELECT count(*) FROM parent WHERE id = 7;
-- an ALTER TABLE that failed leaves nothing behind
BEGIN;
SAVEPOINT s;
ALTER TABLE late ADD CHECK (nosy(pid));
ROLLBACK TO s;
SELECT fk.pid FROM ONLY late fk LEFT OUTER JOIN ONLY parent pk ON (pk.id OPERATOR(pg_catalog.=) fk.pid) WHERE pk.id IS NULL AND fk.pid IS NOT NULL;
COMMIT;

-- deferred, self-referencing, partitioned
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree DEFERRABLE INITIALLY DEFERRED);
SELECT ttl.enable('tree', 3600);
INSERT INTO tree VALUES (1, NULL), (2, 1);
SELECT expire('tree', 1);
BEGIN;
INSERT INTO tree VALUES (3, 1);
COMMIT;
DELETE FROM tree WHERE id = 2;
SELECT ttl.purge('tree');
CREATE TABLE pp (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE pp1 PARTITION OF pp FOR VALUES FROM (0) TO (10);
SELECT ttl.enable('pp', 3600);
CREATE TABLE pc (id int, pid int REFERENCES pp ON DELETE CASCADE) PARTITION BY RANGE (id);
CREATE TABLE pc1 PARTITION OF pc FOR VALUES FROM (0) TO (10);
SELECT ttl.enable('pc', 3600);
INSERT INTO pp VALUES (1), (2);
INSERT INTO pc VALUES (1, 1), (2, 2);
SELECT expire('pp', 1), expire('pc', 2);
INSERT INTO pc VALUES (3, 1);
DELETE FROM pp WHERE id = 2;
SET ttl.show_expired = on;
SELECT id, pid FROM pc;
RESET ttl.show_expired;
-- keys on a boolean, which the planner rewrites
CREATE TABLE bp (id bool PRIMARY KEY);
CREATE TABLE bc (id bool REFERENCES bp ON DELETE CASCADE);
SELECT ttl.enable('bp', 3600), ttl.enable('bc', 3600);
INSERT INTO bp VALUES (true), (false);
INSERT INTO bc VALUES (true);
SET ttl.preserve_ts = on;
UPDATE bc SET _ts = '2000-01-01';
UPDATE bp SET _ts = '2000-01-01' WHERE NOT id;
RESET ttl.preserve_ts;
INSERT INTO bc VALUES (false);
DELETE FROM bp WHERE id;
SET ttl.show_expired = on;
SELECT count(*) FROM bc;
RESET ttl.show_expired;

SET client_min_messages = warning;
DROP SCHEMA referential CASCADE;
