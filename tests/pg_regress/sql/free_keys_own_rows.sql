-- C6 and foreign keys: rows that this very transaction has made refer to an expired row are
-- not deleted or changed with it, whoever removes it. Without the expired row, the check
-- of those rows would find no parent when it comes.
CREATE SCHEMA free_keys_own_rows;
SET search_path = free_keys_own_rows;
CREATE FUNCTION expire(tab regclass, condition text) RETURNS void LANGUAGE plpgsql
    SET ttl.preserve_ts = on SET ttl.show_expired = on AS $$
BEGIN EXECUTE format('UPDATE %s SET _ts = now() - interval ''1 day'' WHERE %s', tab, condition); END $$;
-- the statement's error, in the transaction that goes on
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', state || ' ' || message, nullif(detail, ''), nullif(hint, ''));
END $$;

-- what a check meets: the case that was found ------------------------------
CREATE TABLE p (id int PRIMARY KEY, val int, up int) PARTITION BY RANGE (id);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (4);
CREATE TABLE p_2 PARTITION OF p DEFAULT;
SELECT ttl.enable('p', 3600);
ALTER TABLE p ADD CONSTRAINT p_up FOREIGN KEY (up) REFERENCES p ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED;
INSERT INTO p VALUES (5, 5, 5), (6, 6, 5);
SELECT expire('p', 'id = 6');
BEGIN;
UPDATE p SET id = 7, up = NULL WHERE id = 5;
INSERT INTO p VALUES (3, 3, 6);
-- the DETAIL names a clone of the constraint, whose name depends on the version
\set VERBOSITY terse
COMMIT;
\set VERBOSITY default
SELECT id, val, up FROM p ORDER BY id;
-- the row refers to another in time
BEGIN;
UPDATE p SET id = 7, up = NULL WHERE id = 5;
INSERT INTO p VALUES (3, 3, 6);
UPDATE p SET up = 7 WHERE id = 3;
COMMIT;
SELECT id, val, up FROM p ORDER BY id;
DROP TABLE p;

-- each of the ways, and each of the actions --------------------------------
-- a live one, top; below it an expired one, mid; and low, where this transaction writes
CREATE TABLE top (id int PRIMARY KEY);
CREATE TABLE mid (id int PRIMARY KEY, top int);
CREATE TABLE low (id int PRIMARY KEY, v int, mid int DEFAULT 0);
SELECT ttl.enable('mid', 3600);
CREATE FUNCTION build(mid_action text, low_action text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL client_min_messages = error;
    SET LOCAL ttl.show_expired = on;
    ALTER TABLE mid DROP CONSTRAINT IF EXISTS mid_top;
    ALTER TABLE low DROP CONSTRAINT IF EXISTS low_mid;
    DELETE FROM low; DELETE FROM mid; DELETE FROM top;
    INSERT INTO top VALUES (1), (2);
    INSERT INTO mid VALUES (0, NULL), (10, 1), (20, 1), (30, 2);
    INSERT INTO low VALUES (1, 0, 10), (2, 0, 10), (3, 0, 30), (4, 0, 30);
    EXECUTE 'ALTER TABLE mid ADD CONSTRAINT mid_top FOREIGN KEY (top) REFERENCES top ' || mid_action;
    EXECUTE 'ALTER TABLE low ADD CONSTRAINT low_mid FOREIGN KEY (mid) REFERENCES mid ' || low_action || ' DEFERRABLE INITIALLY DEFERRED';
    PERFORM expire('mid', 'id IN (10, 20)');
END $$;
-- what the transaction does to low, and then to mid or top
CREATE PROCEDURE test(mid_action text, low_action text, own text[], statement text[]) LANGUAGE plpgsql AS $$
DECLARE o text; s text; answer text;
BEGIN
    FOREACH o IN ARRAY own LOOP
        FOREACH s IN ARRAY statement LOOP
            PERFORM build(mid_action, low_action);
            COMMIT;
            EXECUTE o;
            answer := try(s);
            RAISE INFO '%', concat_ws(E'\n', o, s, answer,
                'low: ' || (SELECT string_agg(concat_ws('|', id, v, coalesce(mid::text, 'null')), '  ' ORDER BY id) FROM low));
            ROLLBACK;
        END LOOP;
    END LOOP;
END $$;
\set came '{"INSERT INTO low VALUES (9, 9, 20)"}'
\set deletion '{"DELETE FROM top WHERE id = 1"}'
\set change '{"UPDATE top SET id = 5 WHERE id = 1"}'
-- a row that came, by each action
CALL test('ON DELETE NO ACTION', 'ON DELETE CASCADE', :'came', :'deletion');
CALL test('ON DELETE NO ACTION', 'ON DELETE SET NULL', :'came', :'deletion');
CALL test('ON DELETE NO ACTION', 'ON DELETE SET DEFAULT', :'came', :'deletion');
-- by each statement on the referencing side
CALL test('ON DELETE RESTRICT', 'ON DELETE CASCADE', :'came', :'deletion');
CALL test('ON DELETE SET NULL', 'ON DELETE CASCADE', :'came', :'deletion');
CALL test('ON DELETE CASCADE', 'ON DELETE CASCADE', :'came', :'deletion');
CALL test('ON UPDATE CASCADE', 'ON DELETE CASCADE', :'came', :'change');
CALL test('ON UPDATE SET NULL', 'ON DELETE CASCADE', :'came', :'change');
-- by the extension
CALL test('', 'ON DELETE CASCADE', :'came', ARRAY['INSERT INTO mid VALUES (20)', 'UPDATE mid SET id = 20 WHERE id = 30',
    'SELECT ttl.purge(''mid'')', 'SELECT ttl.disable(''mid'')', 'SELECT ttl.set_default(''mid'', NULL)']);
-- a row that was there, and has been made refer to it; one that came and has changed since;
-- in subtransactions
CALL test('', 'ON DELETE SET NULL', ARRAY['UPDATE low SET mid = 20 WHERE id = 3', 'UPDATE low SET mid = 20 WHERE id = 3; UPDATE low SET v = 7 WHERE id = 3',
    'INSERT INTO low VALUES (9, 9, 20); UPDATE low SET v = 7 WHERE id = 9', 'SELECT try(''INSERT INTO low VALUES (9, 9, 20)'')',
    'UPDATE low SET mid = 20 WHERE id = 3; SELECT try(''UPDATE low SET v = 1/0 WHERE id = 3'')'],
    ARRAY['DELETE FROM top WHERE id = 1', 'SELECT ttl.purge(''mid'')', 'INSERT INTO mid VALUES (20)']);

-- not: rows that have referred to it all along, even if they have changed otherwise, and rows
-- that refer to another
CALL test('', 'ON DELETE CASCADE', ARRAY['UPDATE low SET v = 7 WHERE id = 1', 'UPDATE low SET v = 7 WHERE id = 1; SELECT try(''UPDATE low SET v = 1/0 WHERE id = 1''); UPDATE low SET v = 8 WHERE id = 1',
    'UPDATE low SET mid = 30 WHERE id = 1; INSERT INTO low VALUES (9, 9, 30)', 'DELETE FROM low WHERE id = 2'],
    ARRAY['DELETE FROM top WHERE id = 1', 'SELECT ttl.purge(''mid'')', 'INSERT INTO mid VALUES (10)']);
CALL test('ON DELETE CASCADE', 'ON DELETE CASCADE', ARRAY['UPDATE low SET v = 7 WHERE id = 1; INSERT INTO low VALUES (9, 9, 30)'], :'deletion');
-- with NO ACTION, which does nothing to them: they are left to their own check
CALL test('', '', :'came', :'deletion');
-- the referenced row comes first: nothing is in the way
CALL test('', 'ON DELETE CASCADE', '{"INSERT INTO mid VALUES (20, 2); INSERT INTO low VALUES (9, 9, 20)"}', :'deletion');

-- one statement does both
SELECT build('', 'ON DELETE SET NULL');
BEGIN;
WITH low AS (INSERT INTO low VALUES (9, 9, 20) RETURNING mid) INSERT INTO mid SELECT mid FROM low;
ROLLBACK;
-- DDL that reads all rows leaves what it cannot delete
SELECT build('', 'ON DELETE CASCADE');
BEGIN;
INSERT INTO low VALUES (9, 9, 20);
CREATE UNIQUE INDEX mid_unique ON mid ((id / 10));
SET ttl.show_expired = on;
SELECT id FROM mid ORDER BY id;
SELECT id, v, mid FROM low ORDER BY id;
ROLLBACK;

SELECT ttl_internal.live_or_unneeded('mid'::regclass, '(0,1)', false);
SELECT ttl_internal.written_here('low'::regclass, '(0,1)');
SET client_min_messages = warning;
DROP SCHEMA free_keys_own_rows CASCADE;
