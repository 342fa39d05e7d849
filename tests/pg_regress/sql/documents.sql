-- D1-D3: the override inside a document, on tables: the value of every JSON type,
-- the matrix of C2 and C3, and every way of writing a document.
CREATE SCHEMA documents;
SET search_path = documents;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(' | ', state, message, detail);
END $$;

-- D2, D3: any document is accepted and stored. With a default of -1, rows that
-- were last modified in 1950 are gone where the document's ttl counts, and only there.
CREATE TABLE kinds (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body jsonb);
SELECT ttl.enable('kinds', -1, document_column => 'body');
SET ttl.preserve_ts = on;
INSERT INTO kinds (_ts, body) SELECT '1950-01-01', document::jsonb FROM unnest(ARRAY[
    '{"ttl": 20}', '{"ttl": 20.0}', '{"ttl": 20.00000000000000000000}', '{"ttl": 2e1}', '{"ttl": 2E+1}', '{"ttl": 200e-1}', '{"ttl": 0.2e2}',
    '{"ttl": 1}', '{"ttl": 2147483647}', '{"ttl": 2147483647.0}', '{"ttl": -1}', '{"ttl": -1.0}', '{"ttl": -10e-1}',
    '{"ttl": 20.5}', '{"ttl": 20.00000000000000000001}', '{"ttl": 0.5}', '{"ttl": -1.5}', '{"ttl": 1e-400}',
    '{"ttl": 2147483648}', '{"ttl": 2147483649}', '{"ttl": 4294967295}', '{"ttl": 4294967316}', '{"ttl": 18446744073709551636}', '{"ttl": 1e400}', '{"ttl": -1e400}',
    '{"ttl": 0}', '{"ttl": -0}', '{"ttl": 0.0}', '{"ttl": -2}', '{"ttl": -20}', '{"ttl": -2147483648}', '{"ttl": -4294967297}',
    '{"ttl": "20"}', '{"ttl": "-1"}', '{"ttl": ""}', '{"ttl": "NaN"}', '{"ttl": "Infinity"}', '{"ttl": true}', '{"ttl": false}', '{"ttl": null}',
    '{"ttl": {"ttl": 20}}', '{"ttl": {"$numberInt": "20"}}', '{"ttl": {}}', '{"ttl": [20]}', '{"ttl": []}',
    '{}', '{"a": 20}', '{"TTL": 20}', '{"Ttl": 20}', '{" ttl": 20}', '{"ttl ": 20}', '{"_ttl": 20}', '{"": 20}',
    '{"a": {"ttl": 20}}', '{"a": [{"ttl": 20}]}', '{"a": {"ttl": 5}, "ttl": 20}',
    NULL, 'null', '20', '"ttl"', '"20"', 'true', '[]', '["ttl"]', '["ttl", 20]', '[{"ttl": 20}]', '[20]',
    '{"ttl": 5.5, "ttl": 20}', '{"ttl": 20, "ttl": "5"}', '{"ttl": 20, "ttl": null}', '{"\u0074tl": 20}', '{"t\u0074\u006c": 20}', '{"tt\\l": 20}'
    ]) AS document;
RESET ttl.preserve_ts;
CREATE TEMP TABLE seen AS SELECT id FROM kinds;
SET ttl.show_expired = on;
SELECT left(body::text, 32) AS body, ttl, CASE WHEN seen.id IS NULL THEN 'gone' ELSE 'lives' END AS row
  FROM kinds LEFT JOIN seen USING (id) ORDER BY kinds.id;
-- the column is what the function says of the document that is stored
SELECT count(*) FILTER (WHERE ttl IS DISTINCT FROM ttl.document_ttl(body)) AS differ, count(*) FROM kinds;
RESET ttl.show_expired;
-- D3: where it does not count the row inherits: with a default only -1 lives on
SELECT ttl.set_default('kinds', 60);
SELECT body FROM kinds ORDER BY id;
-- M12: no number breaks a write, however many digits it has
INSERT INTO kinds (body) SELECT jsonb_build_object('ttl', n::numeric) FROM unnest(ARRAY['1e131071', '-1e131071', '1e-16383', '9.9e-16382']) AS n;
INSERT INTO kinds (body) SELECT jsonb_build_object('ttl', n) FROM unnest(ARRAY['NaN', 'Infinity', '-Infinity', '20']::float8[]) AS n;
SELECT left(body::text, 20) AS body, ttl FROM kinds WHERE body @? '$.ttl' AND ttl IS DISTINCT FROM -1 ORDER BY id;

-- the matrix of C2 and C3, 30 seconds after the last write (C4: off, and on again)
CREATE TABLE matrix (id int, body jsonb);
SELECT ttl.enable('matrix', -1, document_column => 'body');
SET ttl.preserve_ts = on;
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO matrix (id, body, _ts) SELECT n, d, ttl.now() - interval '30 s'
  FROM unnest('{"{\"name\": \"absent\"}", "{\"ttl\": -1}", "{\"ttl\": 30}", "{\"ttl\": 31}"}'::jsonb[]) WITH ORDINALITY AS u (d, n);
CREATE FUNCTION living() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(coalesce(body ->> 'ttl', 'absent'), ' ' ORDER BY id) FROM matrix $$;
SELECT living() AS "default -1";
SELECT ttl.set_default('matrix', 30);
SELECT living() AS "default 30";
SELECT ttl.set_default('matrix', 31, revive_expired => true);
SELECT living() AS "default 31";
SELECT ttl.disable('matrix', revive_expired => true);
SELECT living() AS "off";
SELECT ttl.enable('matrix', -1);
SELECT living() AS "default -1";
COMMIT;
RESET ttl.preserve_ts;
-- C4: what is written while TTL is off counts when it is on again
SELECT ttl.disable('matrix', revive_expired => true);
SET ttl.preserve_ts = on;
UPDATE matrix SET body = '{"ttl": 29}' WHERE id = 1;
RESET ttl.preserve_ts;
SELECT id, body, ttl FROM matrix WHERE id = 1;
SELECT ttl.enable('matrix', 3600);
SELECT id FROM matrix WHERE id < 3;

-- C10: replaced, patched, without the property; 45 s after the last write
CREATE TABLE docs (id int PRIMARY KEY, body jsonb, what text);
SELECT ttl.enable('docs', 3600, document_column => 'body');
SET ttl.preserve_ts = on;
INSERT INTO docs (id, _ts, body) SELECT n, now() - interval '45 s', '{"a": {"ttl": 5}, "ttl": 1000}' FROM generate_series(1, 15) AS n;
UPDATE docs SET what = 'replaced', body = '{"ttl": 10}' WHERE id = 1;
UPDATE docs SET what = 'replaced, without it', body = '{"a": 1}' WHERE id = 2;
UPDATE docs SET what = 'replaced by NULL', body = NULL WHERE id = 3;
UPDATE docs SET what = 'replaced by an array', body = '["ttl"]' WHERE id = 4;
UPDATE docs SET what = '||, another', body = body || '{"b": 1}' WHERE id = 5;
UPDATE docs SET what = '|| ttl', body = body || '{"ttl": 10}' WHERE id = 6;
UPDATE docs SET what = 'jsonb_set', body = jsonb_set(body, '{ttl}', '10') WHERE id = 7;
UPDATE docs SET what = 'jsonb_set nested', body = jsonb_set(body, '{a,ttl}', '10') WHERE id = 8;
UPDATE docs SET what = 'jsonb_set null', body = jsonb_set(body, '{ttl}', 'null') WHERE id = 9;
UPDATE docs SET what = 'subscript', body['ttl'] = '10' WHERE id = 10;
UPDATE docs SET what = 'subscript nested', body['a']['ttl'] = '10' WHERE id = 11;
UPDATE docs SET what = '- ttl', body = body - 'ttl' WHERE id = 12;
UPDATE docs SET what = '#- {ttl}', body = body #- '{ttl}' WHERE id = 13;
UPDATE docs SET what = 'never', body = body || '{"ttl": -1}' WHERE id = 14;
UPDATE docs SET what = 'another column' WHERE id = 15;
RESET ttl.preserve_ts;
TRUNCATE seen;
INSERT INTO seen SELECT id FROM docs;
SET ttl.show_expired = on;
SELECT what, body, ttl, CASE WHEN seen.id IS NULL THEN 'gone' ELSE 'lives' END AS row FROM docs LEFT JOIN seen USING (id) ORDER BY id;
RESET ttl.show_expired;
-- and comes back to the property, or gets it for the first time
UPDATE docs SET body = body || '{"ttl": 200}' WHERE id IN (2, 12);
SELECT id, body, ttl FROM docs WHERE id IN (2, 12) ORDER BY id;
-- C1: each of these starts the countdown again
SELECT id, _ts > now() - interval '10 s' AS restarted FROM docs WHERE id IN (2, 5, 12) ORDER BY id;

-- upsert and MERGE: a live document is patched, an expired one is not there (C6)
CREATE FUNCTION again() RETURNS void LANGUAGE sql SET ttl.preserve_ts = on AS $$
    TRUNCATE docs;
    INSERT INTO docs (id, body, _ts) VALUES (1, '{"old": 1, "ttl": 1000}', now() - interval '45 s'), (2, '{"old": 2, "ttl": 45}', now() - interval '45 s') $$;
CREATE FUNCTION patched() RETURNS SETOF docs LANGUAGE sql AS $$ SELECT * FROM docs ORDER BY id $$;
SELECT again();
INSERT INTO docs (id, body) VALUES (1, '{"ttl": 300}'), (2, '{"new": 2}'), (3, '{"ttl": 300}')
    ON CONFLICT (id) DO UPDATE SET body = docs.body || excluded.body;
SELECT id, body, ttl FROM patched();
SELECT again();
INSERT INTO docs (id, body) VALUES (1, '{"ttl": 300}'), (2, '{"new": 2}') ON CONFLICT DO NOTHING;
SELECT id, body, ttl FROM patched();
SELECT again();
MERGE INTO docs USING (VALUES (1, jsonb '{"ttl": 300}'), (2, '{"new": 2}'), (3, '{"ttl": 300}')) AS s (id, body) ON docs.id = s.id
    WHEN MATCHED THEN UPDATE SET body = docs.body || s.body
    WHEN NOT MATCHED THEN INSERT (id, body) VALUES (s.id, s.body);
SELECT id, body, ttl FROM patched();
-- a document is found by its properties only while it lives
SELECT again();
CREATE INDEX ON docs USING gin (body);
SET enable_seqscan = off;
SELECT id FROM docs WHERE body @> '{"old": 2}';
SELECT id FROM docs WHERE body @> '{"old": 1}';
RESET enable_seqscan;
UPDATE docs SET body = body || '{"x": 1}' WHERE body ? 'old' RETURNING id, body, ttl;
DELETE FROM docs WHERE body ? 'old' RETURNING id;

-- COPY: with and without the clock; the generated column is no part of it
COPY docs (id, body) FROM stdin;
11	{"ttl": 2000, "a": 1}
12	{"ttl": "20"}
13	\N
\.
COPY docs (id, body, _ts) FROM stdin;
14	{"ttl": 20}	2020-01-01 00:00:00+00
15	{"ttl": -1}	2020-01-01 00:00:00+00
16	{"ttl": 20.5}	2020-01-01 00:00:00+00
\.
COPY docs (id, body, what) TO stdout;
SELECT id, body, ttl FROM docs WHERE id > 10 ORDER BY id;
SELECT ttl.purge('docs') AS purged;

-- the override is written by way of the document only: PostgreSQL's own errors
SELECT try('UPDATE docs SET ttl = 5');
SELECT try('UPDATE docs SET ttl = NULL WHERE id = 11');
SELECT try('INSERT INTO docs (id, body, ttl) VALUES (21, ''{}'', 5)');
SELECT try('INSERT INTO docs (id, ttl) SELECT 21, 5');
SELECT try('MERGE INTO docs USING (VALUES (11)) AS s (id) ON docs.id = s.id WHEN MATCHED THEN UPDATE SET ttl = 5');
SELECT try('COPY docs (id, body, ttl) FROM ''/dev/null''');
INSERT INTO docs (id, body, ttl) VALUES (21, '{"ttl": 2000}', DEFAULT);
UPDATE docs SET ttl = DEFAULT WHERE id = 21 RETURNING ttl;

-- triggers have the last word on the document, with the override that follows from it
CREATE FUNCTION one_hour() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.body = coalesce(NEW.body, '{}') || '{"ttl": 3600}';
    RETURN NEW;
END $$;
CREATE TRIGGER one_hour BEFORE INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION one_hour();
INSERT INTO docs (id, body) VALUES (31, '{"ttl": 20}'), (32, NULL) RETURNING id, body, ttl;
UPDATE docs SET what = 'another column' WHERE id = 11 RETURNING id, body, ttl;
DROP TRIGGER one_hour ON docs;

-- nobody needs a privilege on the schema ttl to write documents
CREATE ROLE regress_documents;
GRANT USAGE ON SCHEMA documents TO regress_documents;
GRANT SELECT, INSERT, UPDATE ON docs TO regress_documents;
SET ROLE regress_documents;
INSERT INTO docs (id, body) VALUES (41, '{"ttl": 2000}') RETURNING ttl;
UPDATE docs SET body = '{"ttl": 3000}' WHERE id = 41 RETURNING ttl;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA documents CASCADE;
DROP TABLE seen;
DROP ROLE regress_documents;
