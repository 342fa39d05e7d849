-- D1: where the override's document may live, and what follows when its columns,
-- its table or its policy change.
CREATE SCHEMA documents_columns;
SET search_path = documents_columns;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', state, message, nullif(detail, ''), nullif(hint, ''));
END $$;
CREATE VIEW policies AS
    SELECT relation, default_ttl, ts_column, ttl_column, document_column, problems
      FROM ttl.tables JOIN pg_class ON oid = relation WHERE relnamespace = 'documents_columns'::regnamespace;
\pset format unaligned
\pset footer off

-- documents that are there already: they count from now, by their own ttl at once
CREATE TABLE docs (id int PRIMARY KEY, body jsonb);
INSERT INTO docs VALUES (1, '{"ttl": 2000}'), (2, '{"ttl": 20.5}'), (3, '{"a": 1}'), (4, NULL);
SELECT ttl.enable('docs', 3600, document_column => 'body');
SELECT id, ttl, _ts > now() - interval '10 s' AS counts_from_now FROM docs ORDER BY id;
SELECT * FROM policies;

-- again: with the same columns, named or not; with others it is refused
SELECT ttl.enable('docs', 600);
SELECT ttl.enable('docs', 700, document_column => 'body');
ALTER TABLE docs ADD COLUMN other jsonb;
SELECT try($$SELECT ttl.enable('docs', 800, document_column => 'other')$$);
SELECT try($$SELECT ttl.enable('docs', 800, ttl_column => NULL)$$);
SELECT * FROM policies;
CREATE TABLE lacking (id int);
SELECT try($$SELECT ttl.enable('lacking', 60, document_column => 'nope')$$);
SELECT try($$SELECT ttl.enable('lacking', 60, document_column => 'id')$$);

-- renamed: the policy follows, and so does the generated column
ALTER TABLE docs RENAME body TO "The ""Body""";
ALTER TABLE docs RENAME ttl TO "order";
ALTER TABLE docs RENAME TO "More docs";
UPDATE "More docs" SET "The ""Body""" = '{"ttl": 3000}' WHERE id = 3 RETURNING "order";
SELECT * FROM policies;
SELECT ttl.enable('"More docs"', 900);
SELECT ttl.enable('"More docs"', 901, document_column => 'The "Body"', ttl_column => 'order');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '"More docs"'::regclass AND adnum = 4;

-- disabled and enabled again: the overrides are kept; without the columns, and with them again
SELECT ttl.disable('"More docs"');
SELECT * FROM policies;
UPDATE "More docs" SET "The ""Body""" = '{"ttl": 4000}' WHERE id = 4;
SELECT ttl.enable('"More docs"', 600);
SELECT id, "order" FROM "More docs" ORDER BY id;
SELECT ttl.disable('"More docs"', drop_columns => true);
SELECT * FROM "More docs" ORDER BY id;
SELECT * FROM policies;
SELECT ttl.enable('"More docs"', 600);
SELECT try($$SELECT ttl.enable('"More docs"', 600, document_column => 'other')$$);
SELECT ttl.disable('"More docs"', drop_columns => true);
SELECT ttl.enable('"More docs"', 600, document_column => 'other');
SELECT * FROM policies;
DROP TABLE "More docs";

-- names that need quotes, from the beginning; reserved words
CREATE TABLE "My docs" (id int, "select" jsonb, "Time To Live" text);
ALTER TABLE "My docs" ADD COLUMN "when" timestamptz NOT NULL DEFAULT ttl.current_ts();
SELECT ttl.enable('"My docs"', 600, ts_column => 'when', document_column => 'select', ttl_column => 'TTL "s"');
INSERT INTO "My docs" VALUES (1, '{"ttl": 2000}') RETURNING "TTL ""s""";
SELECT ttl.enable('"My docs"', 700);
SELECT * FROM policies;
DROP TABLE "My docs";

-- what a document may not be
CREATE DOMAIN document AS jsonb;
CREATE TABLE wrong_docs (id int, j json, t text, a jsonb[], d document, b bytea,
    g jsonb GENERATED ALWAYS AS ('{"ttl": 5}'::jsonb || '{}') STORED, gone jsonb, body jsonb);
ALTER TABLE wrong_docs DROP COLUMN gone;
SELECT c AS document_column, try(format('SELECT ttl.enable(''wrong_docs'', 600, document_column => %L)', c))
  FROM unnest(ARRAY['j', 't', 'a', 'd', 'b', 'id', 'g', 'gone', 'nosuch', 'BODY', 'xmin', '........pg.dropped.8........', '_ts', 'ttl']) AS c;
SELECT try($$SELECT ttl.enable('wrong_docs', 600, document_column => 'body', ttl_column => NULL)$$);
SELECT try($$SELECT ttl.enable('wrong_docs', 600, document_column => 'body', ttl_column => 'body')$$);
SELECT try($$SELECT ttl.enable('wrong_docs', 600, document_column => 'body', ts_column => 'body')$$);
-- nothing of all that is left behind
SELECT attname FROM pg_attribute WHERE attrelid = 'wrong_docs'::regclass AND attname IN ('ttl', '_ts');
SELECT * FROM policies;

-- a column ttl that exists: only if it is generated from this document
CREATE TABLE docs (id int, body jsonb, other jsonb, ttl int);
SELECT try($$SELECT ttl.enable('docs', 600, document_column => 'body')$$);
ALTER TABLE docs DROP COLUMN ttl, ADD COLUMN ttl int GENERATED ALWAYS AS ((body ->> 'ttl')::int) STORED;
SELECT try($$SELECT ttl.enable('docs', 600, document_column => 'body')$$);
ALTER TABLE docs DROP COLUMN ttl, ADD COLUMN ttl int GENERATED ALWAYS AS (ttl.document_ttl(other)) STORED;
SELECT try($$SELECT ttl.enable('docs', 600, document_column => 'body')$$);
ALTER TABLE docs DROP COLUMN ttl, ADD COLUMN ttl bigint GENERATED ALWAYS AS (ttl.document_ttl(body)) STORED;
SELECT try($$SELECT ttl.enable('docs', 600, document_column => 'body')$$);
ALTER TABLE docs DROP COLUMN ttl, ADD COLUMN ttl int GENERATED ALWAYS AS (ttl.document_ttl(body)) STORED;
SELECT try($$SELECT ttl.enable('docs', 600)$$);
SET search_path = documents_columns, ttl;
SELECT ttl.enable('docs', 600, document_column => 'body');
SET search_path = documents_columns;
-- beside an ordinary column of that name the override has another
CREATE TABLE docs_named (id int, body jsonb, ttl int);
SELECT ttl.enable('docs_named', 600, document_column => 'body', ttl_column => 'document_ttl');
INSERT INTO docs_named (id, body, ttl) VALUES (1, '{"ttl": 2000}', 0) RETURNING document_ttl, ttl;
SELECT * FROM policies ORDER BY relation::text;
DROP TABLE docs, docs_named;

-- partitions whose columns are in another order; attached, moved to, written to directly
CREATE TABLE docs (id int, region text, body jsonb, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE docs_a PARTITION OF docs FOR VALUES IN ('a');
SELECT ttl.enable('docs', 3600, document_column => 'body');
CREATE TABLE docs_b (ttl int GENERATED ALWAYS AS (ttl.document_ttl(body)) STORED, body jsonb, x int,
    _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), region text NOT NULL, id int NOT NULL);
ALTER TABLE docs_b DROP COLUMN x;
SET ttl.preserve_ts = on;
INSERT INTO docs_b (id, region, body, _ts) VALUES (5, 'b', '{"ttl": 20}', now() - interval '45 s');
ALTER TABLE docs ATTACH PARTITION docs_b FOR VALUES IN ('b');
INSERT INTO docs (id, region, body, _ts) SELECT n, r, b, now() - interval '45 s'
  FROM (VALUES (1, '{"ttl": 20}'::jsonb), (2, '{"ttl": 2000}'), (3, '{"ttl": "20"}')) AS v (n, b), unnest('{a,b}'::text[]) AS r;
INSERT INTO docs_a (id, region, body, _ts) VALUES (4, 'a', '{"ttl": 20}', now() - interval '45 s');
RESET ttl.preserve_ts;
SELECT tableoid::regclass, id, ttl FROM docs ORDER BY 1, 2;
UPDATE docs SET region = 'b', id = 4, body = body || '{"ttl": 3000}' WHERE region = 'a' AND id = 2 RETURNING tableoid::regclass, id, ttl;
SELECT id FROM docs_a ORDER BY id;
SELECT id FROM docs_b ORDER BY id;
SELECT ttl.purge('docs');
CREATE TABLE docs_c (id int NOT NULL, region text NOT NULL, body jsonb, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ttl int);
SELECT try($$ALTER TABLE docs ATTACH PARTITION docs_c FOR VALUES IN ('c')$$);
SELECT ttl.disable('docs', drop_columns => true);
SELECT attrelid::regclass, attname FROM pg_attribute WHERE attrelid::regclass IN ('docs', 'docs_a', 'docs_b') AND attname IN ('ttl', '_ts');
DROP TABLE docs, docs_c;

-- heirs
CREATE TABLE docs (id int, body jsonb);
CREATE TABLE docs_heir (extra int) INHERITS (docs);
SELECT ttl.enable('docs', 3600, document_column => 'body');
INSERT INTO docs_heir (id, body) VALUES (1, '{"ttl": 2000}') RETURNING ttl;
DROP TABLE docs CASCADE;

-- documents of a megabyte, compressed and not: their bytes and their override
CREATE TABLE docs (id int PRIMARY KEY, body jsonb);
INSERT INTO docs SELECT n, jsonb_build_object('a', repeat('x', 1000000), 'ttl', n * 1000, 'z', repeat('y', 100)) FROM generate_series(1, 2) AS n;
ALTER TABLE docs ALTER body SET STORAGE EXTERNAL;
INSERT INTO docs SELECT n, jsonb_build_object('a', repeat('x', 1000000), 'ttl', n * 1000, 'z', repeat('y', 100)) FROM generate_series(3, 4) AS n;
SELECT md5(string_agg(body::text, '' ORDER BY id)) AS before FROM docs \gset
SELECT ttl.enable('docs', 3600, document_column => 'body');
CREATE FUNCTION toast_size() RETURNS bigint LANGUAGE sql AS
    $$ SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'docs'::regclass $$;
SELECT toast_size() AS toasted \gset
SELECT id, ttl, pg_column_size(body) > 1000000 AS uncompressed, length(body ->> 'a') FROM docs ORDER BY id;
-- an UPDATE that leaves the document alone does not write it again
UPDATE docs SET id = id + 10;
SELECT md5(string_agg(body::text, '' ORDER BY id)) = :'before' AS same, toast_size() = :toasted AS not_written FROM docs;
UPDATE docs SET body = body - 'ttl' WHERE id IN (11, 13);
UPDATE docs SET body = body || '{"ttl": 5000}' WHERE id IN (12, 14);
SELECT id, ttl, length(body ->> 'a') AS a, length(body ->> 'z') AS z FROM docs ORDER BY id;
-- a property of its own that is large and no number
INSERT INTO docs SELECT 20, jsonb_build_object('ttl', jsonb_agg(n)) FROM generate_series(1, 100000) AS n;
INSERT INTO docs SELECT 21, jsonb_build_object('ttl', repeat('1', 1000000));
INSERT INTO docs SELECT 22, jsonb_object_agg('ttl' || n, n) || '{"ttl": 6000}' FROM generate_series(1, 10000) AS n;
SELECT id, ttl FROM docs WHERE id >= 20 ORDER BY id;

\pset format aligned
\pset footer on
SET client_min_messages = warning;
DROP SCHEMA documents_columns CASCADE;
