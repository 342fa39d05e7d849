-- C6: the key of an expired row is free, whatever kind of constraint or index it is a key of.
CREATE SCHEMA free_keys_constraints;
SET search_path = free_keys_constraints;
CREATE FUNCTION expire(tab regclass, condition text) RETURNS void LANGUAGE plpgsql
    SET ttl.preserve_ts = on SET ttl.show_expired = on AS $$
BEGIN EXECUTE format('UPDATE %s SET _ts = now() - interval ''1 day'' WHERE %s', tab, condition); END $$;
-- every row on disk without the columns of time to live
CREATE FUNCTION on_disk(tab regclass) RETURNS SETOF text LANGUAGE plpgsql SET ttl.show_expired = on AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT (to_jsonb(t) - ''_ts'' - ''ttl'')::text || CASE WHEN _ts < now() - interval ''1 h'' THEN '' EXPIRED'' ELSE '''' END
           FROM %s t ORDER BY 1', tab);
END $$;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; s text; t text; c text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        s = SCHEMA_NAME, t = TABLE_NAME, c = CONSTRAINT_NAME;
    RETURN concat_ws(' | ', state, message, detail, s, t, c);
END $$;

-- several unique constraints, each hit by another expired row
CREATE TABLE several (id int PRIMARY KEY, a text UNIQUE, b int, c int, v text, CONSTRAINT several_b_c UNIQUE (c, b));
SELECT ttl.enable('several', 3600);
CREATE FUNCTION several_rows() RETURNS void LANGUAGE sql AS $$
    TRUNCATE several;
    INSERT INTO several SELECT i, chr(64 + i), i, i, 'old' FROM generate_series(1, 9) i;
    SELECT expire('several', 'id <= 6');
$$;
SELECT several_rows();
INSERT INTO several VALUES (1, 'B', 3, 3, 'new');
SELECT on_disk('several');
INSERT INTO several VALUES (4, 'E', 6, 6, 'new') ON CONFLICT DO NOTHING RETURNING v;
SELECT on_disk('several');
SELECT several_rows();
INSERT INTO several VALUES (1, 'B', 3, 3, 'new') ON CONFLICT (c, b) DO UPDATE SET v = 'updated' RETURNING id, v;
UPDATE several SET id = 4, a = 'E', (b, c) = (6, 6) WHERE id = 7;
SELECT on_disk('several');
-- one of the keys is a live row's: its error, and all is as it was
SELECT several_rows();
SELECT try('INSERT INTO several VALUES (1, ''G'', 3, 3, ''new'')');
SELECT try('INSERT INTO several VALUES (1, ''B'', 7, 7, ''new'')');
SELECT try('INSERT INTO several VALUES (7, ''B'', 7, 7, ''new'')');
SELECT try('INSERT INTO several VALUES (1, ''G'', 3, 3, ''new'') ON CONFLICT (id) DO NOTHING');
SELECT try('INSERT INTO several VALUES (1, ''G'', 3, 3, ''new'') ON CONFLICT (id) DO UPDATE SET v = ''updated''');
SELECT try('UPDATE several SET id = 1, a = ''G'' WHERE id = 8');
SELECT count(*) FROM on_disk('several');
-- a conflict with the live row: nothing, or its update
INSERT INTO several VALUES (1, 'G', 3, 3, 'new') ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO several VALUES (1, 'G', 3, 3, 'new') ON CONFLICT (a) DO NOTHING RETURNING id;
INSERT INTO several VALUES (1, 'G', 3, 3, 'new') ON CONFLICT (a) DO UPDATE SET v = 'updated' RETURNING id, a, b, c, v;
SELECT id, a, b, c, v FROM several ORDER BY id;

-- NULLs: distinct by default, and rows without a key stay where they are
CREATE TABLE nulls (id int, a int UNIQUE, b int, c int, UNIQUE NULLS NOT DISTINCT (b, c));
SELECT ttl.enable('nulls', 3600);
INSERT INTO nulls VALUES (1, NULL, NULL, 1), (2, NULL, 2, 2), (3, NULL, NULL, NULL);
SELECT expire('nulls', 'true');
INSERT INTO nulls VALUES (11, NULL, NULL, 1);
SELECT on_disk('nulls');
INSERT INTO nulls VALUES (12, NULL, NULL, NULL) ON CONFLICT (b, c) DO UPDATE SET id = 0 RETURNING id;
SELECT try('INSERT INTO nulls VALUES (13, NULL, NULL, 1)');
SELECT on_disk('nulls');

-- partial indexes: a row outside of the predicate has no key
CREATE TABLE partial (id int, a int, active boolean);
CREATE UNIQUE INDEX partial_active ON partial (a) WHERE active;
SELECT ttl.enable('partial', 3600);
INSERT INTO partial VALUES (1, 1, true), (2, 1, false), (3, 2, true), (4, 3, true);
SELECT expire('partial', 'true');
INSERT INTO partial VALUES (11, 1, false);
SELECT on_disk('partial');
INSERT INTO partial VALUES (12, 1, true), (13, 2, true) ON CONFLICT (a) WHERE active DO UPDATE SET a = 0 RETURNING id, a;
-- an UPDATE that only changes what the predicate looks at
INSERT INTO partial VALUES (14, 3, false);
UPDATE partial SET active = true WHERE id = 14;
SELECT on_disk('partial');
SELECT try('UPDATE partial SET active = true WHERE id = 11');

-- expressions, operator classes, INCLUDE; equal keys that are not the same
CREATE TABLE expressions (id int, name text, n numeric(9, 3), x text, extra int);
CREATE UNIQUE INDEX ON expressions (lower(name) text_pattern_ops DESC, (id % 10)) INCLUDE (extra);
CREATE UNIQUE INDEX ON expressions (n) INCLUDE (extra, x);
SELECT ttl.enable('expressions', 3600);
INSERT INTO expressions VALUES (1, 'Ann', 1.0, 'x', 1), (2, 'Bob', 2.0, 'x', 2), (3, 'Cid', 3.0, 'x', 3);
SELECT expire('expressions', 'true');
INSERT INTO expressions VALUES (11, 'aNN', 2, 'y', 11);
INSERT INTO expressions VALUES (13, 'CID', 13, 'y', 13) ON CONFLICT (lower(name) text_pattern_ops, (id % 10)) DO UPDATE SET x = 'updated' RETURNING id, x;
UPDATE expressions SET name = 'ANN' WHERE id = 11;
SELECT on_disk('expressions');
SELECT try('INSERT INTO expressions VALUES (21, ''ann'', 5)');
SELECT try('INSERT INTO expressions VALUES (5, ''eve'', 2.0000)');

-- generated columns are computed after the triggers
CREATE TABLE generated (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED UNIQUE);
CREATE UNIQUE INDEX ON generated ((twice + 1)) WHERE twice > 0;
SELECT ttl.enable('generated', 3600);
INSERT INTO generated (id, a) VALUES (1, 1), (2, 2), (3, -3);
SELECT expire('generated', 'true');
INSERT INTO generated (id, a) VALUES (11, 1), (13, -3);
UPDATE generated SET a = 2 WHERE id = 11;
INSERT INTO generated (id, a) VALUES (14, 2) ON CONFLICT (twice) DO UPDATE SET id = 15 RETURNING id, a, twice;
SELECT on_disk('generated');
SELECT try('INSERT INTO generated (id, a) VALUES (16, -3)');

-- deferrable constraints: checked at the end of the statement, or at commit
CREATE TABLE later (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, a int UNIQUE DEFERRABLE, v text);
SELECT ttl.enable('later', 3600);
INSERT INTO later SELECT i, i, 'old' FROM generate_series(1, 9) i;
SELECT expire('later', 'id <= 4');
INSERT INTO later VALUES (1, 2, 'new');
BEGIN;
INSERT INTO later VALUES (3, 3, 'new');
SET CONSTRAINTS ALL IMMEDIATE;
COMMIT;
SELECT on_disk('later');
-- live keys may be there twice for a while, an expired row in their way or not
BEGIN;
INSERT INTO later VALUES (4, 10, 'one'), (4, 11, 'two');
INSERT INTO later VALUES (5, 12, 'three');
DELETE FROM later WHERE v IN ('old', 'two') AND id IN (4, 5);
COMMIT;
SELECT on_disk('later');
UPDATE later SET a = 15 - a WHERE id > 5;
BEGIN;
UPDATE later SET id = 13 - id WHERE id IN (6, 7);
COMMIT;
SELECT id, a FROM later WHERE id > 5 ORDER BY id;
BEGIN;
INSERT INTO later VALUES (9, 20, 'twice');
COMMIT;
SELECT try('INSERT INTO later VALUES (30, 10, ''twice'')');
SELECT expire('later', 'id = 9');
BEGIN;
INSERT INTO later VALUES (9, 21, 'one'), (9, 22, 'two');
COMMIT;
BEGIN;
SAVEPOINT s;
INSERT INTO later VALUES (9, 21, 'one');
ROLLBACK TO s;
COMMIT;
SELECT v, id FROM later WHERE id = 9;
INSERT INTO later VALUES (9, 21, 'one') ON CONFLICT DO NOTHING RETURNING id, v;
SELECT on_disk('later');

-- exclusion constraints
CREATE TABLE booking (id int PRIMARY KEY, r int4range, active boolean DEFAULT true,
    EXCLUDE USING gist (r WITH &&) WHERE (active), EXCLUDE USING btree ((id % 100) WITH =));
SELECT ttl.enable('booking', 3600);
INSERT INTO booking VALUES (1, '[1,10)'), (2, '[10,20)'), (3, '[20,30)'), (4, '[30,40)'), (5, '[40,50)');
INSERT INTO booking VALUES (6, '[50,60)', false);
SELECT expire('booking', 'id <> 4');
-- one row in the way of which are three
INSERT INTO booking VALUES (11, '[5,25)');
SELECT on_disk('booking');
-- one expired, one live
SELECT try('INSERT INTO booking VALUES (12, ''[35,45)'')');
SELECT count(*) FROM on_disk('booking');
INSERT INTO booking VALUES (13, '[35,45)') ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO booking VALUES (14, '[45,55)') ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO booking VALUES (106, '[100,101)');
UPDATE booking SET r = '[55,65)' WHERE id = 14;
SELECT try('UPDATE booking SET r = ''[30,31)'' WHERE id = 14');
SELECT on_disk('booking');
-- deferred, and one row against itself
CREATE TABLE slots (id int, r int4range, EXCLUDE USING gist (r WITH &&) DEFERRABLE INITIALLY DEFERRED);
SELECT ttl.enable('slots', 3600);
INSERT INTO slots VALUES (1, '[1,10)'), (2, '[10,20)'), (3, '[20,30)'), (4, 'empty');
SELECT expire('slots', 'id <> 3');
BEGIN;
INSERT INTO slots VALUES (11, '[5,25)');
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
BEGIN;
INSERT INTO slots VALUES (11, '[5,25)');
UPDATE slots SET r = '[5,15)' WHERE id = 11;
COMMIT;
SELECT on_disk('slots');

-- indexes that cannot tell alone whether keys conflict
CREATE TABLE shapes (id int, c circle, a int, EXCLUDE USING gist (c WITH &&), EXCLUDE USING hash (a WITH =));
SELECT ttl.enable('shapes', 3600);
INSERT INTO shapes VALUES (1, '((0,0),1)', 1), (2, '((0,10),1)', 2), (3, '((10,0),1)', 3), (4, '((20,20),2)', 4);
SELECT expire('shapes', 'id < 4');
INSERT INTO shapes VALUES (11, '((10,10),9.1)', 1);
SELECT try('INSERT INTO shapes VALUES (12, ''((22,22),2)'', 2)');
SELECT try('INSERT INTO shapes VALUES (13, NULL, 4)');
INSERT INTO shapes VALUES (14, NULL, NULL), (15, NULL, NULL);
SELECT on_disk('shapes');

-- a row that another constraint refuses takes nothing away
CREATE TABLE refused (id int PRIMARY KEY CHECK (id < 5), a int NOT NULL UNIQUE);
SELECT ttl.enable('refused', 3600);
INSERT INTO refused VALUES (1, 1), (2, 2);
SELECT expire('refused', 'true');
SELECT split_part(try('INSERT INTO refused VALUES ' || v), ' | ', 1) FROM unnest('{"(1, NULL)","(6, 1)","(1, 1), (2, NULL)"}'::text[]) v;
SELECT on_disk('refused');

-- quoted names, dropped and added columns
CREATE TABLE "odd ""name" (gone int, "a b" text, gone_too text, "C" int, PRIMARY KEY ("C", "a b"));
ALTER TABLE "odd ""name" DROP COLUMN gone, DROP COLUMN gone_too;
ALTER TABLE "odd ""name" ADD COLUMN "Changed at" timestamptz NOT NULL DEFAULT ttl.current_ts();
SELECT ttl.enable('"odd ""name"', 3600, ts_column => 'Changed at', ttl_column => 'time to live');
ALTER TABLE "odd ""name" ADD COLUMN added int DEFAULT 7 UNIQUE;
SET ttl.preserve_ts = on;
INSERT INTO "odd ""name" VALUES ('k', 1, '2020-01-01');
RESET ttl.preserve_ts;
INSERT INTO "odd ""name" VALUES ('k', 1) RETURNING "a b", "C", "time to live", added;
INSERT INTO "odd ""name" VALUES ('k', 1);
CREATE TABLE widened (a int);
INSERT INTO widened VALUES (1);
ALTER TABLE widened ADD COLUMN k int DEFAULT 5;
SELECT ttl.enable('widened', 3600);
ALTER TABLE widened ADD UNIQUE (k);
SELECT expire('widened', 'true');
INSERT INTO widened VALUES (2);
SELECT on_disk('widened');

-- temporary and unlogged tables; an override, or one in a document
CREATE TEMP TABLE temporary (id int PRIMARY KEY, v text) ON COMMIT DELETE ROWS;
SELECT ttl.enable('temporary', 3600);
BEGIN;
INSERT INTO temporary VALUES (1, 'old');
SELECT expire('temporary', 'true');
INSERT INTO temporary VALUES (1, 'new') RETURNING v;
COMMIT;
CREATE UNLOGGED TABLE documents (id int PRIMARY KEY, body jsonb);
SELECT ttl.enable('documents', 3600, document_column => 'body');
INSERT INTO documents VALUES (1, '{"ttl": 10}'), (2, '{"ttl": -1}'), (3, NULL);
SELECT expire('documents', 'true');
INSERT INTO documents VALUES (1, '{"new": 1}'), (3, '{"new": 3}');
SELECT try('INSERT INTO documents VALUES (2)');
SELECT on_disk('documents');

-- long keys, and keys of many types
CREATE TABLE types (a uuid, b timestamptz, c bytea, d int[], e char(4), f float8, g bool, h text, PRIMARY KEY (a, b, c, d, e, f, g, h));
SELECT ttl.enable('types', 3600);
CREATE FUNCTION type_row(f float8) RETURNS void LANGUAGE sql AS $$
    INSERT INTO types VALUES ('00000000-0000-0000-0000-000000000001', '2020-01-01', '\x00ff', '{1,NULL,3}', 'ab', f, false, repeat('long ', 400)) $$;
SELECT type_row(0);
SELECT expire('types', 'true');
SELECT type_row('-0');
\set VERBOSITY sqlstate
SELECT type_row('-0');
\set VERBOSITY default
SELECT count(*) FROM on_disk('types');

SET client_min_messages = warning;
DROP SCHEMA free_keys_constraints CASCADE;
