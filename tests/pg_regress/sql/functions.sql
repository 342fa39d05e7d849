-- ttl.expires_at (C3, C5, M12), ttl.document_ttl (D1-D3), ttl.preview, ttl.purge.
CREATE SCHEMA functions;
SET search_path = functions;
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT ttl.expires_at('2026-01-01', NULL, 60), ttl.expires_at('2026-01-01', 30, 60), ttl.expires_at('2026-01-01', -1, 60);
SELECT ttl.expires_at('2026-01-01', NULL, -1), ttl.expires_at('2026-01-01', NULL, NULL), ttl.expires_at('2026-01-01', 30, NULL), ttl.expires_at(NULL, 30, 30);
-- M12 extremes are computed right, or never
SELECT ts, ttl.expires_at(ts::timestamptz, 2147483647, NULL) FROM unnest(ARRAY['-infinity', '4714-11-24 BC', '1969-12-31 23:59:59', '2038-01-19 03:14:08', '9999-12-31', '294200-01-01', '294276-12-31 23:59:59.999999', 'infinity']) ts;
SELECT ttl.expires_at('294276-12-31 23:59:59.999999', 1, NULL);
-- values that the rules refuse make a row live
SELECT ttl.expires_at('2026-01-01', 0, 60), ttl.expires_at('2026-01-01', -5, 60);
SELECT ttl.expires_at('2026-01-01', NULL, 0);
SELECT ttl.expires_at('2026-01-01', NULL, -2147483648);
SELECT ttl.live('2026-01-01', NULL), ttl.live(NULL::timestamptz, 1), ttl.live('infinity', 1), ttl.live('-infinity', 2147483647), ttl.live('2020-01-01', -1), ttl.live('2020-01-01', 1, 2147483647), ttl.live('2020-01-01', -1, 1);
SELECT ttl.cutoff(100) = statement_timestamp() - interval '100 s' AS cutoff;

-- D1-D3
SELECT doc, ttl.document_ttl(doc::jsonb) FROM unnest(ARRAY[
    '{"ttl": 20}', '{"ttl": 20.0}', '{"ttl": 2e1}', '{"ttl": -1}', '{"ttl": -1.0}', '{"ttl": 2147483647}', '{"ttl": 1}',
    '{"ttl": 20.5}', '{"ttl": 2147483648}', '{"ttl": 2147483649}', '{"ttl": -2147483649}', '{"ttl": 9223372036854775808}', '{"ttl": 1e400}', '{"ttl": 1e-400}',
    '{"ttl": 0}', '{"ttl": -2}', '{"ttl": "20"}', '{"ttl": true}', '{"ttl": null}', '{"ttl": {"ttl": 20}}', '{"ttl": [20]}',
    '{"TTL": 20}', '{"a": {"ttl": 20}}', '{}', '[{"ttl": 20}]', '["ttl"]', '"ttl"', '20', 'null', '{"ttl": 20, "ttl": 30}']) doc;
SELECT ttl.document_ttl(NULL);

-- preview: what a default would expire at once, and what is expired
CREATE TABLE t (id int);
SELECT ttl.enable('t');
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts, ttl) VALUES (1, '2020-01-01', NULL), (2, '2021-01-01', NULL), (3, '2022-01-01', -1), (4, '2023-01-01', 60), (5, now(), NULL), (6, 'infinity', NULL);
RESET ttl.preserve_ts;
SELECT * FROM ttl.preview('t');
SELECT * FROM ttl.preview('t', 3600);
SELECT * FROM ttl.preview('t', 2147483647);
SELECT * FROM ttl.preview('t', -1);
SELECT * FROM ttl.preview('t', 0);
SELECT * FROM ttl.preview(NULL);
SELECT * FROM ttl.preview('pg_class');
CREATE TABLE none (id int);
SELECT * FROM ttl.preview('none');
SELECT count(*) FROM t;

-- purge: deletes what is expired, once; nothing else
SELECT ttl.purge('t');
SELECT ttl.purge('t');
SELECT ttl.set_default('t', 3600);
SELECT ttl.purge('t');
SET ttl.show_expired = on;
SELECT id FROM t ORDER BY id;
RESET ttl.show_expired;
SELECT ttl.set_default('t', NULL);
SELECT ttl.purge('t');
SELECT * FROM ttl.preview('t');
SELECT ttl.purge('none');
SELECT ttl.purge(NULL);
-- rules of the table see the rows as OLD, as triggers do
CREATE TABLE ruled (id int);
SELECT ttl.enable('ruled', 60);
CREATE TABLE archive (id int);
CREATE RULE archive AS ON DELETE TO ruled DO ALSO INSERT INTO archive VALUES (OLD.id);
SET ttl.preserve_ts = on;
INSERT INTO ruled (id, _ts) VALUES (1, now()), (2, '2020-01-01'), (3, '2020-01-01');
RESET ttl.preserve_ts;
SELECT ttl.purge('ruled');
SELECT id FROM archive ORDER BY id;
SELECT count(*) FROM ruled;
SET ttl.show_expired = on;
SELECT id FROM ruled;
RESET ttl.show_expired;
BEGIN READ ONLY;
SELECT ttl.set_default('t', 1);
ROLLBACK;
SELECT ttl.set_default('t', 1);
SELECT ttl.set_default('none', 1);
SELECT ttl.set_default(NULL, 1);
SELECT ttl.disable('none');
SELECT ttl.problems('none'), ttl.problems('pg_class');

SET client_min_messages = warning;
DROP SCHEMA functions CASCADE;
