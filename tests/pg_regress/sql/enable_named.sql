-- W1, W2, W7, W9: what ttl.enable takes over, keeps, and says.
CREATE SCHEMA enable_named;
SET search_path = enable_named;
\set VERBOSITY default
CREATE VIEW policies AS
    SELECT relation, default_ttl, ts_column, ttl_column, hidden, ttl_internal.policy(relation) - '{added,local,version,rules}'::text[] AS policy FROM ttl.tables
     WHERE relation::text NOT LIKE '%.%';

-- W1: a time of creation.
CREATE TABLE events (id int PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now());
INSERT INTO events SELECT i, now() - i * interval '20 hours' FROM generate_series(0, 9) AS i;
SELECT ttl.enable('events', '7 days', ts_column => 'created_at');
SELECT ttl.expire_after('enable_named.events', 'created_at', 604800);
SELECT count(*) FROM events;
SELECT ttl.disable('events', drop_columns => true);
SELECT ttl.enable('events', '7 days', ts_column => 'created_at', confirm => true);
-- One whose name does not say so, and one without values.
CREATE TABLE sessions (id int PRIMARY KEY, last_seen timestamptz);
INSERT INTO sessions SELECT i, now() - i * interval '20 hours' FROM generate_series(0, 9) AS i;
SELECT ttl.enable('sessions', '7 days', ts_column => 'last_seen', ttl_column => NULL);
SELECT count(*) FROM sessions;
-- as the HINT says: from now on the column keeps its time
SELECT ttl.disable('enable_named.sessions', drop_columns => true, revive_expired => true); SELECT ttl.expire_after('enable_named.sessions', 'last_seen', 604800);
UPDATE sessions SET id = id;
SELECT count(*), max(last_seen) - min(last_seen) AS apart FROM sessions;
CREATE TABLE empty (id int, created_at timestamptz);
SELECT ttl.enable('empty', 60, ts_column => 'created_at');
-- turned off, the column is still overwritten
CREATE TABLE off (id int, at timestamptz);
INSERT INTO off VALUES (1, now());
SELECT ttl.enable('off', 60, ts_column => 'at');
SELECT ttl.disable('off');
SELECT ttl.expire_after('off', 'at', 60);
-- made for that, whatever the settings
SET quote_all_identifiers = on;
CREATE TABLE made (id int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts());
INSERT INTO made VALUES (1);
SELECT ttl.enable('made', 60);
RESET quote_all_identifiers;
-- W9: a typing error.
CREATE TABLE typed (id int, updated_at timestamptz);
SELECT ttl.enable('typed', 60, ts_column => 'udpated_at');
SELECT ttl.enable('typed', 60, ts_column => 'updated_at');

-- W2: a column that happens to be called ttl.
CREATE TABLE dns (name text PRIMARY KEY, ttl int);
INSERT INTO dns SELECT 'host' || i, i * 1800 FROM generate_series(1, 100) AS i;
SELECT ttl.enable('dns', '30 days');
SELECT ttl.enable('enable_named.dns', 2592000, ttl_column => NULL);
SELECT ttl.disable('dns', drop_columns => true);
SELECT ttl.enable('enable_named.dns', 2592000, ttl_column => 'ttl');
-- the other arguments stay
CREATE TABLE seconds (changed timestamptz, ttl int);
INSERT INTO seconds SELECT now(), i FROM generate_series(100, 200) AS i;
SELECT ttl.enable('seconds', 3600, ts_column => 'changed', index => 'none');

-- W7: without seconds; with none that can be read.
CREATE TABLE without (id int);
SELECT ttl.enable('without');
SELECT ttl.enable('without', -1);
SELECT ttl.set_default('without', 'abc');
CREATE TABLE x (id int) WITH (ttl = 60);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 'abc');
ALTER TABLE without SET (ttl = 60);

-- W9: what is not named stays.
CREATE TABLE kept (id int, at timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (at);
SELECT ttl.enable('kept', 3600, ts_column => 'at', ttl_column => NULL, index => 'none', drop_partitions => true, hidden => false, ts_granularity => 60);
SELECT * FROM policies WHERE relation = 'kept'::regclass;
SELECT ttl.enable('kept');
SELECT ttl.enable('kept', concurrently => true);
SELECT ttl.enable('kept', 7200);
SELECT ttl.enable('kept', ts_granularity => 120);
SELECT * FROM policies WHERE relation = 'kept'::regclass;
SELECT indexdef FROM pg_indexes WHERE tablename = 'kept';
SELECT ttl.enable('kept', index => 'btree', drop_partitions => false, hidden => true);
SELECT * FROM policies WHERE relation = 'kept'::regclass;
SELECT indexdef FROM pg_indexes WHERE tablename = 'kept';
SELECT ttl.enable('kept', ttl_column => 'ttl');
SELECT ttl.enable('kept', document_column => NULL);
-- W6: columns of the usual names that are of another kind
CREATE TABLE other_ttl (id int PRIMARY KEY, ttl bigint);
SELECT ttl.enable('other_ttl', 3600);
SELECT ttl.enable('enable_named.other_ttl', 3600, ttl_column => NULL);
CREATE TABLE other_ts (id int PRIMARY KEY, _ts timestamp);
SELECT ttl.enable('other_ts', 3600);
CREATE TABLE other_epoch (id int PRIMARY KEY, _ts bigint);
SELECT ttl.enable('other_epoch', 3600);
CREATE TABLE generated_ts (id int PRIMARY KEY, _ts timestamptz GENERATED ALWAYS AS ('2020-01-01 00:00:00+00'::timestamptz) STORED);
SELECT ttl.enable('generated_ts', 3600);
-- a stamp is no key
CREATE TABLE key_ts (id int PRIMARY KEY, _ts timestamptz UNIQUE);
SELECT ttl.enable('key_ts', 3600);
CREATE TABLE part_ts (id int, _ts timestamptz DEFAULT now(), PRIMARY KEY (id, _ts)) PARTITION BY RANGE (_ts);
SELECT ttl.enable('part_ts', 3600);
-- what an earlier time to live has left is taken up without a word
CREATE TABLE again (id int PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now());
SELECT ttl.enable('again', 3600);
INSERT INTO again VALUES (1);
SELECT ttl.disable('again');
SECURITY LABEL FOR ttl ON TABLE again IS NULL;
SELECT ttl.enable('again', 3600);

-- a column that a child has, and that ADD COLUMN would make one with the new one
CREATE TABLE kin (id int); CREATE TABLE kin_1 (ttl int) INHERITS (kin); INSERT INTO kin_1 VALUES (1, 300);
SELECT ttl.enable('kin', 3600);
SELECT ttl.enable('kin', 3600, ttl_column => NULL);
CREATE TABLE elder (id int); CREATE TABLE younger (_ts timestamptz) INHERITS (elder);
SELECT ttl.enable('elder', 3600);
SELECT ttl.enable('elder', 3600, confirm => true);

-- what needs a column that is to be dropped
CREATE TABLE held (id int); SELECT ttl.enable('held', 3600);
CREATE POLICY young ON held USING (_ts > now());
SELECT ttl.disable('held', drop_columns => true);

-- a copy of a table without keys and overrides
CREATE TABLE twin (LIKE kin INCLUDING DEFAULTS);
SELECT problem, to_do FROM ttl.check() WHERE relation = 'twin'::regclass;
DROP TABLE twin;

-- a foreign table gets the columns here, and not where its rows are
CREATE FOREIGN DATA WRAPPER regress_far; CREATE SERVER regress_far FOREIGN DATA WRAPPER regress_far;
CREATE TABLE mixed (id int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE mixed_far PARTITION OF mixed FOR VALUES IN (1) SERVER regress_far;
SELECT ttl.enable('mixed', 3600);
DROP TABLE mixed; DROP FOREIGN DATA WRAPPER regress_far CASCADE;

-- ttl.check() of tables that have lost their labels: one row a family, and a statement that can be run
CREATE TABLE family (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
CREATE TABLE family_1 PARTITION OF family FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
SELECT ttl.enable('family', 3600);
CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child () INHERITS (parent);
SELECT ttl.enable('parent', 3600);
CREATE TABLE codes (id int PRIMARY KEY, ends timestamptz);
SELECT ttl.expire_after('codes', 'ends', 0);
SECURITY LABEL FOR ttl ON TABLE family IS NULL;
SECURITY LABEL FOR ttl ON TABLE parent IS NULL;
SECURITY LABEL FOR ttl ON TABLE codes IS NULL;
CREATE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT OR UPDATE ON codes FOR EACH ROW EXECUTE FUNCTION ttl.free_expired_keys();
SELECT relation, to_do FROM ttl.check() WHERE problem LIKE 'no row expires: the table has %';

SET client_min_messages = warning;
-- W1: a time that is NULL until something happens to the row
CREATE TABLE soft (id int, deleted_at timestamptz);
SELECT ttl.enable('soft', '7 days', ts_column => 'deleted_at', ttl_column => NULL);
SELECT ttl.disable('soft', drop_columns => true);
INSERT INTO soft VALUES (1, NULL);
SELECT ttl.enable('soft', '7 days', ts_column => 'deleted_at', ttl_column => NULL);
SELECT ttl.enable('soft', '7 days', ts_column => 'deleted_at', ttl_column => NULL, confirm => true);

-- W2: values that are no overrides
CREATE TABLE off_limits (id int, ttl int);
INSERT INTO off_limits VALUES (1, 5), (2, -1), (3, 0), (4, NULL);
SELECT ttl.enable('off_limits', 100, ttl_column => 'ttl');
UPDATE off_limits SET ttl = NULL WHERE NOT ttl.is_override(ttl);
SELECT ttl.enable('off_limits', 100, ttl_column => 'ttl');
SELECT id, ttl FROM off_limits ORDER BY id;

DROP SCHEMA enable_named CASCADE;
-- W7: in a database without the extension.
SELECT current_database() AS db \gset
CREATE DATABASE regress_without;
\c regress_without
CREATE TABLE t (id int) WITH (ttl.default_ttl = 5);
\c :db
DROP DATABASE regress_without;
