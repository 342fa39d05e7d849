-- C6 and foreign keys: the key of an expired parent is free, an expired child keeps no
-- parent, and whatever happens no reference on disk points nowhere.
CREATE SCHEMA free_keys_references;
SET search_path = free_keys_references;
CREATE FUNCTION expire(tab regclass, condition text DEFAULT 'true') RETURNS void LANGUAGE plpgsql
    SET ttl.preserve_ts = on SET ttl.show_expired = on AS $$
BEGIN EXECUTE format('UPDATE %s SET _ts = now() - interval ''1 day'' WHERE %s', tab, condition); END $$;
CREATE FUNCTION on_disk(tab regclass) RETURNS SETOF text LANGUAGE plpgsql SET ttl.show_expired = on AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT (to_jsonb(t) - ''_ts'' - ''ttl'')::text
                || CASE WHEN (to_jsonb(t) ->> ''_ts'')::timestamptz < now() - interval ''1 h'' THEN '' EXPIRED'' ELSE '''' END
           FROM %s t ORDER BY 1', tab);
END $$;
-- the error, with the one number for foreign keys that all versions of PostgreSQL have:
-- a violation of RESTRICT is 23001 and worded differently since 18
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; t text; c text;
BEGIN
    EXECUTE statement;
    SET CONSTRAINTS ALL IMMEDIATE;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, t = TABLE_NAME, c = CONSTRAINT_NAME;
    RETURN concat_ws(' ', CASE state WHEN '23001' THEN '23503' ELSE state END, t, c);
END $$;
-- every foreign key of this schema, checked on what is on disk
CREATE FUNCTION orphans() RETURNS bigint LANGUAGE plpgsql SET ttl.show_expired = on AS $$
DECLARE fk record; n bigint; total bigint := 0;
BEGIN
    FOR fk IN
        SELECT conrelid::regclass AS child, confrelid::regclass AS parent,
               string_agg(format('c.%I = p.%I', ca.attname, pa.attname), ' AND ') AS joined,
               string_agg(format('c.%I IS NOT NULL', ca.attname), ' AND ') AS filled
          FROM pg_constraint, unnest(conkey, confkey) AS k (c, p)
          JOIN pg_attribute ca ON ca.attnum = k.c JOIN pg_attribute pa ON pa.attnum = k.p
         WHERE contype = 'f' AND conparentid = 0 AND connamespace = 'free_keys_references'::regnamespace
           AND ca.attrelid = conrelid AND pa.attrelid = confrelid
         GROUP BY pg_constraint.oid, 1, 2
    LOOP
        EXECUTE format('SELECT count(*) FROM %s c WHERE %s AND NOT EXISTS (SELECT FROM %s p WHERE %s)',
                       fk.child, fk.filled, fk.parent, fk.joined) INTO n;
        total := total + n;
    END LOOP;
    RETURN total;
END $$;

-- the parent's key is expired, a live child refers to it --------------------
CREATE TABLE parent (id int PRIMARY KEY, u text UNIQUE, v text DEFAULT 'new');
SELECT ttl.enable('parent', 3600);
CREATE TABLE acting (id int, pid int REFERENCES parent);
CREATE TABLE restricting (id int, pid int REFERENCES parent ON DELETE RESTRICT);
CREATE TABLE cascading (id int, pid int REFERENCES parent ON DELETE CASCADE);
CREATE TABLE nulling (id int, pid int REFERENCES parent ON DELETE SET NULL);
CREATE TABLE defaulting (id int, pid int DEFAULT 99 REFERENCES parent ON DELETE SET DEFAULT);
CREATE TABLE deferring (id int, pid int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
-- parents 1 to 7 are expired, 8, 90 and 99 live; child n of each table refers to parent n
CREATE FUNCTION kin(VARIADIC children regclass[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE c regclass;
BEGIN
    TRUNCATE parent, acting, restricting, cascading, nulling, defaulting, deferring;
    INSERT INTO parent SELECT i, 'u' || i, 'old' FROM generate_series(1, 8) i;
    INSERT INTO parent VALUES (90, 'u90', 'old'), (99, 'u99', 'old');
    FOREACH c IN ARRAY children LOOP
        EXECUTE format('INSERT INTO %s SELECT i, i FROM generate_series(1, 8) i', c);
    END LOOP;
    SET CONSTRAINTS ALL IMMEDIATE;
    PERFORM expire('parent', 'id < 8');
END $$;

-- NO ACTION: the reference holds at the end of the statement
SELECT kin('acting');
INSERT INTO parent VALUES (1) RETURNING id, u, v, ttl;
INSERT INTO parent VALUES (2) ON CONFLICT DO NOTHING RETURNING id, v;
INSERT INTO parent VALUES (3) ON CONFLICT (id) DO UPDATE SET v = 'updated' RETURNING id, v;
UPDATE parent SET id = 4 WHERE id = 90;
COPY parent (id) FROM STDIN;
5
\.
MERGE INTO parent USING (VALUES (6)) s (id) ON parent.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id);
SELECT on_disk('parent');
SELECT orphans();
-- but not if another key is free: the child of 7 would refer to nothing
SELECT try('INSERT INTO parent VALUES (100, ''u7'')');
SELECT orphans();
-- nothing is inserted, for a live row is in the way of another key: the expired row is
-- removed before that is known, and the child's constraint has nothing to be content with
SELECT kin('acting');
INSERT INTO parent VALUES (1, 'u8') ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO parent VALUES (2, 'u8') ON CONFLICT (u) DO UPDATE SET v = 'updated' RETURNING id, v;
SELECT try('INSERT INTO parent VALUES (3, ''u8'')');
SELECT orphans();

-- deferred: at the end of the transaction
SELECT kin('deferring');
BEGIN;
INSERT INTO parent VALUES (1);
INSERT INTO parent VALUES (100, 'u2');
SELECT orphans() AS not_yet;
INSERT INTO parent VALUES (2);
COMMIT;
BEGIN;
INSERT INTO parent VALUES (103, 'u3');
COMMIT;
SELECT orphans();

-- RESTRICT: the constraint's own error, whoever deletes the parent
SELECT kin('restricting');
SELECT try('INSERT INTO parent VALUES (1)');
SELECT try('INSERT INTO parent VALUES (1) ON CONFLICT DO NOTHING');
SELECT try('UPDATE parent SET id = 1 WHERE id = 90');
DELETE FROM restricting WHERE id = 1;
SELECT try('INSERT INTO parent VALUES (1)');
SELECT orphans();

-- CASCADE, SET NULL, SET DEFAULT: as if the parent had been removed before
SELECT kin('cascading', 'nulling', 'defaulting');
INSERT INTO parent VALUES (1);
INSERT INTO parent VALUES (2) ON CONFLICT (id) DO UPDATE SET v = 'updated' RETURNING id, v;
UPDATE parent SET id = 3 WHERE id = 90;
COPY parent (id) FROM STDIN;
4
\.
SELECT id, pid FROM cascading ORDER BY id;
SELECT id, pid FROM nulling ORDER BY id;
SELECT id, pid FROM defaulting ORDER BY id;
SELECT orphans();
BEGIN;
INSERT INTO parent VALUES (5);
ROLLBACK;
SELECT count(*) FROM cascading WHERE id = 5;
-- a child of an expired parent is refused, one of the new parent is not
SELECT try('INSERT INTO cascading VALUES (50, 5)'), try('INSERT INTO cascading VALUES (10, 1)');
-- also if it comes in the same statement: what the old row's cascades reach are its children
WITH p AS (INSERT INTO parent VALUES (5) RETURNING id) INSERT INTO cascading SELECT 51, id FROM p;
WITH p AS (INSERT INTO parent VALUES (6) RETURNING id) INSERT INTO nulling SELECT 61, id FROM p;
WITH p AS (INSERT INTO parent VALUES (7) RETURNING id) INSERT INTO defaulting SELECT 71, id FROM p;
SELECT id, pid FROM cascading WHERE id > 8 ORDER BY id;
SELECT id, pid FROM nulling WHERE id > 8;
SELECT id, pid FROM defaulting WHERE id > 8;
SELECT orphans();
-- replicas fire no cascades, and break no reference that they find
SELECT kin('acting');
SET session_replication_role = replica;
INSERT INTO parent VALUES (1) RETURNING id;
RESET session_replication_role;
SELECT orphans();
-- an AFTER trigger gives the new parent a child
SELECT kin('cascading');
CREATE FUNCTION give() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO free_keys_references.cascading VALUES (NEW.id + 1000, NEW.id); RETURN NULL; END $$;
CREATE TRIGGER give AFTER INSERT ON parent FOR EACH ROW EXECUTE FUNCTION give();
INSERT INTO parent VALUES (1), (2);
INSERT INTO parent VALUES (3) ON CONFLICT (id) DO UPDATE SET v = 'updated';
SELECT id, pid FROM cascading WHERE pid <= 3 ORDER BY id;
SELECT orphans();
DROP TABLE acting, restricting, cascading, nulling, defaulting, deferring, parent;

-- the child is expired -------------------------------------------------------
CREATE TABLE parent (id int PRIMARY KEY, v text);
CREATE TABLE acting (id int, pid int REFERENCES parent ON DELETE NO ACTION ON UPDATE NO ACTION);
CREATE TABLE restricting (id int, pid int REFERENCES parent ON DELETE RESTRICT ON UPDATE RESTRICT);
CREATE TABLE deferring (id int, pid int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE nulling (id int, pid int NOT NULL REFERENCES parent ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE defaulting (id int, pid int DEFAULT -1 REFERENCES parent ON DELETE SET DEFAULT ON UPDATE SET DEFAULT);
CREATE TABLE cascading (id int, pid int CHECK (pid < 100) REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE FUNCTION children(c regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ttl.enable(c, 3600);
    TRUNCATE parent, acting, restricting, deferring, nulling, defaulting, cascading;
    INSERT INTO parent SELECT i FROM generate_series(1, 9) i;
    EXECUTE format('INSERT INTO %s SELECT i, i FROM generate_series(1, 9) i', c);
    EXECUTE format('INSERT INTO %s SELECT i, i FROM generate_series(8, 9) i', c);
    PERFORM expire(c, 'pid <= 7');
    PERFORM expire(c, 'ctid IN (SELECT min(ctid) FROM ' || c || ' GROUP BY pid)');
END $$;
-- 1 to 7 have an expired child, 8 and 9 an expired and a live one
CREATE FUNCTION attempts() RETURNS TABLE (attempt text, result text) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH attempt IN ARRAY ARRAY[
        'DELETE FROM parent WHERE id = 1', 'UPDATE parent SET id = 102 WHERE id = 2',
        'DELETE FROM parent WHERE id IN (3, 4)', 'DELETE FROM parent WHERE id = 8',
        'UPDATE parent SET id = 109 WHERE id = 9']
    LOOP
        result := try(attempt);
        RETURN NEXT;
    END LOOP;
    attempt := 'orphans';
    result := orphans();
    RETURN NEXT;
END $$;
SELECT children('acting');
SELECT * FROM attempts();
SELECT on_disk('acting');
SELECT children('restricting');
SELECT * FROM attempts();
SELECT on_disk('restricting');
SELECT children('deferring');
SELECT * FROM attempts();
SELECT on_disk('deferring');
SELECT children('nulling');
SELECT * FROM attempts();
SELECT on_disk('nulling');
SELECT children('defaulting');
SELECT * FROM attempts();
SELECT on_disk('defaulting');
SELECT children('cascading');
SELECT * FROM attempts();
SELECT on_disk('cascading');
-- deferred: a child may expire between the statement and the commit
SELECT children('deferring');
BEGIN;
DELETE FROM parent WHERE id IN (5, 8);
SELECT expire('deferring', 'pid = 8');
COMMIT;
BEGIN;
DELETE FROM parent WHERE id IN (6, 9);
SAVEPOINT s;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK TO s;
DELETE FROM deferring WHERE pid = 9;
COMMIT;
SELECT on_disk('deferring');
SELECT orphans();
-- with ttl.show_expired the children are there
SELECT children('acting');
SET ttl.show_expired = on;
SELECT try('DELETE FROM parent WHERE id = 1');
RESET ttl.show_expired;
-- after time to live is off they are, as far as they are still on disk
BEGIN;
DELETE FROM parent WHERE id = 1;
SELECT ttl.disable('acting');
SELECT orphans();
ROLLBACK;
-- a role that has no rights on the children
CREATE ROLE regress_deleter;
GRANT USAGE ON SCHEMA free_keys_references TO regress_deleter;
GRANT SELECT, DELETE, UPDATE ON parent TO regress_deleter;
SET ROLE regress_deleter;
DELETE FROM parent WHERE id = 2;
UPDATE parent SET id = 103 WHERE id = 3;
DELETE FROM parent WHERE id = 9;
RESET ROLE;
SELECT on_disk('acting');
SELECT orphans();
DROP TABLE acting, restricting, deferring, nulling, defaulting, cascading, parent;

-- parent and child, and a child of the child --------------------------------
CREATE TABLE a (id int PRIMARY KEY);
CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a);
CREATE TABLE c (id int PRIMARY KEY, b int REFERENCES b ON DELETE CASCADE);
SELECT ttl.enable(t, 3600) FROM unnest('{a,b,c}'::regclass[]) t;
INSERT INTO a SELECT generate_series(1, 6);
INSERT INTO b SELECT i, i FROM generate_series(1, 6) i;
INSERT INTO c SELECT i, i FROM generate_series(1, 6) i;
SELECT expire('a', 'id <= 4'), expire('b', 'id IN (1, 2, 5)'), expire('c', 'id = 1');
INSERT INTO a VALUES (1), (2), (3);
SELECT try('INSERT INTO a VALUES (4)');
INSERT INTO b VALUES (1, 1), (2, NULL);
SELECT try('INSERT INTO b VALUES (5, 4)');
DELETE FROM a WHERE id = 5;
SELECT try('DELETE FROM a WHERE id = 6');
SELECT on_disk('a');
SELECT on_disk('b');
SELECT on_disk('c');
SELECT orphans();
-- an expired child that a live one of its own needs keeps its parent
CREATE TABLE d (id int, b int REFERENCES b ON DELETE RESTRICT);
INSERT INTO a VALUES (7);
INSERT INTO b VALUES (7, 7);
INSERT INTO d VALUES (7, 7);
SELECT expire('b', 'id = 7');
SELECT try('DELETE FROM a WHERE id = 7');
SELECT orphans();
DROP TABLE a, b, c, d;

-- a table that refers to itself ---------------------------------------------
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree, v text DEFAULT 'new');
CREATE TABLE vine (id int PRIMARY KEY, up int REFERENCES vine ON DELETE CASCADE, v text DEFAULT 'new');
SELECT ttl.enable('tree', 3600), ttl.enable('vine', 3600);
INSERT INTO tree VALUES (1, NULL, 'old'), (2, 1, 'old'), (3, 1, 'old'), (4, 4, 'old'), (5, 2, 'old');
INSERT INTO vine TABLE tree;
SELECT expire('tree', 'id IN (1, 3, 4)'), expire('vine', 'id IN (1, 3, 4)');
INSERT INTO tree (id, up) VALUES (1, 1), (4, 1), (3, 3);
INSERT INTO vine (id, up) VALUES (1, 1), (4, 1), (3, 3);
SELECT on_disk('tree');
SELECT on_disk('vine');
SELECT expire('tree', 'id = 5');
DELETE FROM tree WHERE id = 2;
SELECT expire('tree', 'true');
INSERT INTO tree (id, up) VALUES (4, 1);
INSERT INTO tree (id, up) VALUES (1, 1);
INSERT INTO tree (id, up) VALUES (4, 1);
SELECT on_disk('tree');
SELECT orphans();
DROP TABLE tree, vine;

-- keys of several columns, partitions on both sides -------------------------
CREATE TABLE pp (a int, b int, v text, PRIMARY KEY (a, b)) PARTITION BY RANGE (a);
CREATE TABLE pp1 PARTITION OF pp FOR VALUES FROM (0) TO (10);
CREATE TABLE pp2 (v text, b int NOT NULL, a int NOT NULL);
ALTER TABLE pp ATTACH PARTITION pp2 FOR VALUES FROM (10) TO (20);
CREATE TABLE pc (id int, b int, a int, FOREIGN KEY (a, b) REFERENCES pp ON UPDATE CASCADE) PARTITION BY LIST (id);
CREATE TABLE pc1 PARTITION OF pc FOR VALUES IN (1);
CREATE TABLE pc2 PARTITION OF pc FOR VALUES IN (2);
SELECT ttl.enable('pp', 3600), ttl.enable('pc', 3600);
INSERT INTO pp VALUES (1, 1), (2, 2), (3, 3), (11, 1), (12, 2), (13, 3);
INSERT INTO pc VALUES (1, 1, 1), (2, 2, 2), (1, 1, 11), (2, 2, 12), (1, 3, 3), (2, 3, 13);
SELECT expire('pp', 'b = 1'), expire('pc', 'b = 2');
INSERT INTO pp VALUES (1, 1, 'new'), (11, 1, 'new');
DELETE FROM pp WHERE b = 2;
SELECT left(try('DELETE FROM pp WHERE b = 3'), 5) AS error;
SELECT on_disk('pp');
SELECT on_disk('pc');
SELECT expire('pc', 'a = 3'), expire('pp', 'a = 1');
SELECT left(try('INSERT INTO pc VALUES (2, 1, 1)'), 5) AS error;
UPDATE pp SET a = 14 WHERE a = 13;
DELETE FROM pp WHERE a = 3;
UPDATE pp SET a = 1, b = 1, v = 'moved' WHERE a = 14;
SELECT on_disk('pp');
SELECT on_disk('pc');
SELECT orphans();

-- Columns of different types: PostgreSQL looks for another row with the key by the referenced columns' operator.
SET client_min_messages = warning;
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE mood AS ENUM ('1', '2');
CREATE TABLE pairs (n serial, referenced text, referring text);
INSERT INTO pairs (referenced, referring) VALUES
    ('int', 'int'), ('int', 'bigint'), ('bigint', 'smallint'), ('smallint', 'int'), ('numeric', 'bigint'), ('float8', 'int'), ('oid', 'bigint'),
    ('text', 'varchar(9)'), ('varchar(9)', 'text'), ('text', 'char(1)'), ('char(1)', 'varchar(9)'), ('name', 'text'),
    ('positive', 'int'), ('bigint', 'positive'), ('mood', 'mood'), ('int[]', 'int[]');
SELECT format(step, n, referenced, referring, CASE referenced WHEN 'int[]' THEN '{1}' ELSE '1' END)
  FROM pairs CROSS JOIN unnest(ARRAY[
    'CREATE TABLE typed%1$s (k %2$s PRIMARY KEY)',
    'CREATE TABLE heir%1$s (k %3$s REFERENCES typed%1$s ON DELETE CASCADE)',
    'CREATE TABLE goes%1$s (k %3$s REFERENCES typed%1$s)',
    'CREATE TABLE later%1$s (k %3$s REFERENCES typed%1$s DEFERRABLE INITIALLY DEFERRED)',
    'DO $$BEGIN PERFORM ttl.enable(''typed%1$s'', 60), ttl.enable(''goes%1$s'', 60); END$$',
    'INSERT INTO typed%1$s VALUES (''%4$s'')',
    'INSERT INTO heir%1$s VALUES (''%4$s'')',
    'INSERT INTO goes%1$s VALUES (''%4$s'')',
    'DO $$BEGIN PERFORM expire(''goes%1$s''), expire(''typed%1$s''); END$$',
    'BEGIN',
    'INSERT INTO later%1$s VALUES (''%4$s'')',
    'INSERT INTO typed%1$s VALUES (''%4$s'')',
    'INSERT INTO goes%1$s VALUES (''%4$s'')',
    'UPDATE typed%1$s SET k = k',
    'COMMIT',
    'INSERT INTO heir%1$s VALUES (''%4$s''), (NULL)',
    'DO $$BEGIN PERFORM expire(''goes%1$s''); DELETE FROM later%1$s; PERFORM expire(''typed%1$s''); END$$',
    'DO $$BEGIN PERFORM ttl.purge(''typed%1$s''); END$$'
  ]) WITH ORDINALITY AS s (step, nr) ORDER BY n, nr
\set ECHO none
\gexec
\set ECHO all
SELECT format('SELECT %L WHERE EXISTS (SELECT on_disk(''typed%s'')) OR (SELECT count(*) FROM heir%2$s) <> 1', referenced || ', ' || referring, n) FROM pairs ORDER BY n
\set ECHO none
\gexec
\set ECHO all

SET client_min_messages = warning;
DROP SCHEMA free_keys_references CASCADE;
DROP ROLE regress_deleter;
