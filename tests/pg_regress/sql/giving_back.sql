-- C11, promise of the README: ttl.disable(…, drop_columns => true): what ttl.enable added goes, what it found stays.
CREATE SCHEMA giving_back;
SET search_path = giving_back;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', state, message, nullif(detail, ''), nullif(hint, ''));
END $$;
-- Columns, DEFAULTs, constraints and indexes of a table.
CREATE FUNCTION shape(rel regclass) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'NOT NULL' END,
                     'DEFAULT ' || pg_get_expr(adbin, adrelid))
      FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
     WHERE attrelid = rel AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = rel AND contype = 'c'
    UNION ALL SELECT indexdef FROM pg_indexes WHERE format('%I.%I', schemaname, tablename)::regclass = rel
$$;
CREATE VIEW added AS SELECT objoid::regclass AS rel, label::jsonb -> 'added' AS added FROM pg_seclabel WHERE provider = 'ttl';
\pset format unaligned
\pset tuples_only on

-- all of it added: all of it goes
CREATE TABLE t (id int);
SELECT ttl.enable('t', 100, index => 'btree');
SELECT added FROM added WHERE rel = 't'::regclass;
SELECT ttl.disable('t', drop_columns => true);
SELECT shape('t');

-- both adopted: given back as they were found
CREATE TABLE a (id int, updated_at timestamptz, lifetime int);
INSERT INTO a VALUES (1, '2020-01-01 00:00:00+00', -1);
SELECT ttl.enable('a', 100, ts_column => 'updated_at', ttl_column => 'lifetime', index => 'btree');
SELECT added FROM added WHERE rel = 'a'::regclass;
SELECT shape('a');
-- renamed meanwhile: columns, index, constraint
ALTER TABLE a RENAME updated_at TO "When";
ALTER TABLE a RENAME lifetime TO "Life";
ALTER INDEX "a_expiry_key_idx" RENAME TO a_first;
ALTER TABLE a_first RENAME TO a_second;
ALTER TABLE a RENAME CONSTRAINT a_lifetime_check TO other_name;
SELECT added FROM added WHERE rel = 'a'::regclass;
SELECT ttl.disable('a', drop_columns => true);
SELECT shape('a');
SELECT id, "When" AT TIME ZONE 'UTC', "Life" FROM a;
SELECT count(*) FROM added WHERE rel = 'a'::regclass;
-- by a word of its own they go as well
SELECT ttl.enable('a', 100, ts_column => 'When', ttl_column => 'Life', index => 'btree');
SELECT try($$SELECT ttl.disable('a', drop_adopted_columns => true)$$);
SELECT try($$SELECT ttl.disable('a', true, false, NULL)$$);
SELECT try($$SELECT ttl.disable('a', NULL)$$);
SELECT try($$SELECT ttl.disable(NULL)$$);
SELECT ttl.disable('a', drop_columns => true, drop_adopted_columns => true);
SELECT shape('a');

-- the user's own DEFAULT, constraint and index stay, also a DEFAULT that came later
CREATE TABLE own (at timestamptz NOT NULL DEFAULT clock_timestamp(), ttl int CHECK (ttl > 0 OR ttl = -1));
CREATE INDEX own_first ON own (ttl.expiry_key(at, ttl));
SELECT ttl.enable('own', 100, ts_column => 'at', index => 'btree');
SELECT added FROM added WHERE rel = 'own'::regclass;
SELECT ttl.disable('own', drop_columns => true);
SELECT shape('own');
CREATE TABLE own_check (at timestamptz DEFAULT ttl.current_ts(), ttl int CHECK (ttl.is_override(ttl)));
SELECT ttl.enable('own_check', 100, ts_column => 'at', index => 'none');
SELECT ttl.disable('own_check', drop_columns => true);
SELECT shape('own_check');
CREATE TABLE later (at timestamptz);
SELECT ttl.enable('later', 100, ts_column => 'at', ttl_column => NULL, index => 'btree');
ALTER TABLE later ALTER at SET DEFAULT now();
SELECT ttl.disable('later', drop_columns => true);
SELECT shape('later');

-- one adopted, one added; turned off for a time and on again, the default changed
CREATE TABLE mixed (id int, at timestamptz);
SELECT ttl.enable('mixed', 100, ts_column => 'at', index => 'btree');
SELECT ttl.disable('mixed');
SELECT ttl.enable('mixed', 200, index => 'btree');
SELECT ttl.set_default('mixed', NULL);
SELECT ttl.set_default('mixed', 300);
SELECT added FROM added WHERE rel = 'mixed'::regclass;
SELECT ttl.disable('mixed', drop_columns => true);
SELECT shape('mixed');

-- a column that was added, was dropped while TTL was off, and is there again as the user's
CREATE TABLE again (id int);
SELECT ttl.enable('again', 100, index => 'btree');
SELECT ttl.disable('again');
ALTER TABLE again DROP COLUMN _ts, ADD COLUMN _ts timestamptz;
ALTER TABLE again DROP COLUMN ttl;
SELECT added FROM added WHERE rel = 'again'::regclass;
SELECT ttl.enable('again', 100, index => 'btree');
SELECT added FROM added WHERE rel = 'again'::regclass;
SELECT ttl.disable('again', drop_columns => true);
SELECT shape('again');
-- a statement that fails forgets nothing
CREATE TABLE fails (id int);
SELECT ttl.enable('fails', 100, index => 'btree');
SELECT ttl.disable('fails');
SELECT try('ALTER TABLE fails DROP COLUMN _ts, DROP COLUMN nosuch');
SELECT added FROM added WHERE rel = 'fails'::regclass;

-- adopted after it had been added before, without the policy
CREATE TABLE adopts (id int);
SELECT ttl.enable('adopts', 100, index => 'btree');
SECURITY LABEL FOR ttl ON TABLE adopts IS NULL;
SELECT ttl.enable('adopts', 100, index => 'btree');
SELECT added FROM added WHERE rel = 'adopts'::regclass;
SELECT ttl.disable('adopts', drop_columns => true);
SELECT shape('adopts');
-- a label that says nothing of it (by hand, or of an earlier build): as if adopted
SECURITY LABEL FOR ttl ON TABLE adopts IS '{"default_ttl": 100}';
SELECT ttl.disable('adopts', drop_columns => true);
SELECT shape('adopts');
SELECT try($$SECURITY LABEL FOR ttl ON TABLE adopts IS '{"added": [["_ts"]]}'$$);
-- names of columns that are not the clock's are not believed
SECURITY LABEL FOR ttl ON TABLE adopts IS '{"added": {"columns": ["id", "_ts"]}}';
SELECT ttl.disable('adopts', drop_columns => true);
SELECT shape('adopts');

-- documents: the generated column was added, or written by the user
CREATE TABLE docs (id int, body jsonb);
SELECT ttl.enable('docs', 100, document_column => 'body', index => 'btree');
SELECT added FROM added WHERE rel = 'docs'::regclass;
SELECT ttl.disable('docs');
ALTER TABLE docs DROP COLUMN body CASCADE;
SELECT added FROM added WHERE rel = 'docs'::regclass;
CREATE TABLE docs_own (id int, body jsonb, ttl int GENERATED ALWAYS AS (ttl.document_ttl(body)) STORED);
SELECT ttl.enable('docs_own', 100, document_column => 'body', index => 'btree');
SELECT ttl.disable('docs_own', drop_columns => true);
SELECT shape('docs_own');

-- partitions and heirs: a DEFAULT of a partition's own stays
CREATE TABLE p (id int, at timestamptz, ttl int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
SELECT ttl.enable('p', 100, ts_column => 'at', index => 'btree');
CREATE TABLE p2 PARTITION OF p (at DEFAULT now()) FOR VALUES FROM (10) TO (20);
SELECT ttl.disable('p', drop_columns => true);
SELECT shape('p');
SELECT shape('p1');
SELECT shape('p2');

-- beside TTL indexes
CREATE TABLE dated (id int, at timestamptz, ends timestamptz);
CREATE INDEX dated_ends ON dated (ends);
SELECT ttl.expire_index('dated_ends', 0);
SELECT ttl.enable('dated', 100, ts_column => 'at', index => 'btree');
SELECT added FROM added WHERE rel = 'dated'::regclass;
SELECT ttl.disable('dated', drop_columns => true);
SELECT shape('dated');

SET client_min_messages = warning;
DROP SCHEMA giving_back CASCADE;
