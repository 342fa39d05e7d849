-- Statements that fail, a paragraph each.
CREATE TABLE fresh (id integer, kind nosuchtype)

CREATE TABLE item (id integer)

CREATE TABLE fresh (id integer, id text)

CREATE TABLE fresh (id integer CHECK (nowhere > 0))

CREATE TABLE fresh AS SELECT 1 / 0 AS x

CREATE VIEW fresh AS SELECT nowhere FROM item

CREATE INDEX ON item (nowhere)

CREATE FUNCTION fresh() RETURNS integer LANGUAGE sql AS 'SELECT nowhere FROM item'

CREATE FUNCTION fresh() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1 END'

ALTER TABLE item ADD COLUMN more nosuchtype

ALTER TABLE nosuchtable ADD COLUMN more integer

ALTER TABLE secret ADD COLUMN more integer

DROP TABLE nosuchtable

DROP TABLE item

TRUNCATE secret

VACUUM nosuchtable

SELECT nowhere FROM item

SELECT item.nowhere FROM item AS i JOIN entry ON true

SELECT * FROM nosuchview

SELECT nosuchfunction(id) FROM item

SELECT FROM WHERE

SELECT 'unfinished

SELECT 'abc'::integer FROM item

SELECT 1 + 'abc' FROM item

SELECT '2020-13-45'::timestamptz

SELECT '{"a": }'::jsonb FROM item

SELECT id, count(*) FROM item

SELECT id FROM item UNION SELECT 'abc'

SELECT 1 / (id - id) FROM item

SELECT amount FROM item WHERE 1 / (id - 1) > 0

SELECT (SELECT id FROM item)

SELECT divide(1, 0)

SELECT divide_sql(1, 0)

SELECT outermost(0)

SELECT again(0)

SELECT wrong_column()

SELECT dynamic('SELECT nowhere FROM item')

SELECT dynamic('INSERT INTO item VALUES (1, 1)')

SELECT dynamic('CREATE TABLE fresh (kind nosuchtype)')

SELECT * FROM secret

COPY secret TO STDOUT

COPY item TO '/nowhere/file'

COPY (SELECT nowhere FROM item) TO STDOUT

COPY nosuchtable TO STDOUT

COPY item (nowhere) TO STDOUT

COPY items TO STDOUT

COPY parts TO STDOUT

COPY item TO STDOUT (FORMAT nosuchformat)

COPY item (id, amount) FROM STDIN
7	7
1	1

COPY item (id, amount) FROM STDIN
8	-1

COPY item (id, amount) FROM STDIN
9	abc

COPY item (id, amount) FROM STDIN
9

COPY item (id, nowhere) FROM STDIN
9	1

COPY entry (id, item) FROM STDIN
5	77

COPY parts (id) FROM STDIN
3
4000

INSERT INTO item VALUES (1, 5)

INSERT INTO item VALUES (5, -5)

INSERT INTO item (id, amount, name) VALUES (5, 5, NULL)

INSERT INTO item (id, nowhere) VALUES (5, 5)

INSERT INTO item VALUES (5, 'abc')

INSERT INTO item SELECT id, amount, name, _ts, ttl, 1 FROM item

INSERT INTO item VALUES (1, 5) ON CONFLICT (amount) DO NOTHING

INSERT INTO item VALUES (7, 5), (7, 6) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount

INSERT INTO entry VALUES (2, 77)

INSERT INTO parts VALUES (4000)

INSERT INTO items VALUES (9, 900)

INSERT INTO sized VALUES (42)

INSERT INTO sized VALUES (500)

INSERT INTO sized VALUES (1, '{1,x}')

UPDATE item SET id = 1

UPDATE item SET amount = -amount

UPDATE item SET nowhere = 1

UPDATE item SET amount = 'abc' WHERE id = 1

UPDATE item SET (amount, name) = (SELECT 1)

UPDATE parts1 SET id = 4000 WHERE id = nowhere

UPDATE secret SET id = 1

DELETE FROM item WHERE id = 1

DELETE FROM item WHERE nowhere = 1

DELETE FROM secret

MERGE INTO item USING entry ON item.id = entry.item WHEN MATCHED THEN UPDATE SET amount = -1

MERGE INTO item USING (VALUES (1), (1)) AS v (id) ON item.id = v.id WHEN MATCHED THEN UPDATE SET amount = 1

MERGE INTO item USING entry ON item.id = entry.item WHEN MATCHED THEN UPDATE SET nowhere = -1

WITH gone AS (DELETE FROM item WHERE id = 1 RETURNING id) SELECT id FROM gone

DO $x$ BEGIN INSERT INTO item VALUES (1, 1); END $x$

DO $x$ BEGIN RAISE EXCEPTION 'by hand' USING HINT = 'a hint', DETAIL = 'a detail'; END $x$

DO $x$ DECLARE r record; BEGIN FOR r IN SELECT 1 / (id - 2) FROM item ORDER BY id LOOP NULL; END LOOP; END $x$

DO $x$ BEGIN ASSERT (SELECT count(*) FROM item) = 99, 'not 99'; END $x$

PREPARE one (integer) AS SELECT nowhere FROM item WHERE id = $1

EXECUTE nosuchstatement

DECLARE c CURSOR FOR SELECT nowhere FROM item

FETCH FROM nosuchcursor

EXPLAIN SELECT nowhere FROM item

EXPLAIN (ANALYZE) SELECT 1 / (id - 1) FROM item

SET nosuchsetting.x.y = 1; SET work_mem = 'abc'

SET ROLE postgres

LOCK TABLE secret

SECURITY LABEL FOR nosuchprovider ON TABLE item IS 'x'

GRANT SELECT ON secret TO clerk
