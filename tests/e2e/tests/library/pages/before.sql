-- What the pages below docs take for granted: see pages.rs.

-- page: archive.md
CREATE TABLE orders (id bigint PRIMARY KEY, what text);
CREATE TABLE sessions (id bigint PRIMARY KEY);
SELECT ttl.enable('orders', 3600), ttl.enable('sessions', 3600);

-- page: archive.md, at: A partitioned archive
CREATE TABLE orders (id bigint PRIMARY KEY, what text);
SELECT ttl.enable('orders', 3600);

-- page: archive.md, at: Another server
CREATE ROLE orders_owner LOGIN;
GRANT CREATE ON SCHEMA public TO orders_owner;
CREATE TABLE orders (id bigint PRIMARY KEY, what text);
ALTER TABLE orders OWNER TO orders_owner;
SELECT ttl.enable('orders', 3600);

-- page: archive.md, at: Parquet
CREATE TABLE orders_archive (id bigint, what text);

-- page: deletion.md
CREATE TABLE orders (id bigint PRIMARY KEY, _ts timestamptz);
INSERT INTO orders SELECT n, '2024-01-01 00:00+00' FROM generate_series(1, 123) AS n;
INSERT INTO orders VALUES (124, now());
SELECT ttl.enable('orders', '90 days');

-- page: expiry-columns.md
CREATE TABLE events (created_at timestamptz);
CREATE TABLE session (expire timestamp);
CREATE TABLE cache (expires bigint);
INSERT INTO events SELECT CASE WHEN n > 250 THEN now() ELSE '2024-01-01 00:00+00' END FROM generate_series(1, 1000) AS n;
INSERT INTO session VALUES (now() + interval '2 days'), ('2024-01-15 12:00');
INSERT INTO cache VALUES (4000000000), (1700000000);

-- page: from-cosmos.md, at: Cosmos DB's API for MongoDB
CREATE TABLE sessions (id text PRIMARY KEY, body jsonb NOT NULL);
INSERT INTO sessions VALUES ('a', '{"who": "ada", "ttl": 3600}');
CREATE TABLE exported AS
    SELECT jsonb_build_object('id', 'b', 'who', 'bob', '_ts', extract(epoch FROM now())::bigint, '_etag', 'x') AS item;

-- page: installing.md
DROP EXTENSION ttl_ext;

-- page: managed.md
DROP EXTENSION ttl_ext;
CREATE ROLE backup LOGIN;

-- page: migrations.md
CREATE TABLE made_here (id bigint PRIMARY KEY);
SELECT ttl.enable('made_here', 3600);
CREATE TABLE orders (LIKE made_here INCLUDING ALL);

-- page: monitoring.md
CREATE TABLE orders (id bigint PRIMARY KEY);
SELECT ttl.enable('orders', 3600);

-- page: restore.md
CREATE TABLE orders (id bigint PRIMARY KEY);
CREATE TABLE sessions (id bigint PRIMARY KEY);
SELECT ttl.enable('orders', 3600), ttl.enable('sessions', 3600);
-- As a dump does it.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('SECURITY LABEL FOR ttl ON TABLE %s IS %L', objoid::regclass, label)
          FROM pg_seclabel WHERE classoid = 'pg_class'::regclass
    LOOP
        EXECUTE command;
    END LOOP;
END $$;

-- page: turning-off.md
CREATE TABLE orders (id bigint PRIMARY KEY);
SELECT ttl.enable('orders', 3600);

-- page: turning-on.md
CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, created_at timestamptz, _ts timestamptz, ttl integer);
INSERT INTO orders SELECT n, abs(n - 41) + 7, at, at FROM generate_series(1, 1000) AS n,
    LATERAL (SELECT CASE WHEN n > 250 THEN now() ELSE '2024-01-01 00:00+00' END) AS row (at);

-- page: turning-on.md, at: A big table, step by step
CREATE TABLE orders (id bigint PRIMARY KEY);

-- page: turning-on.md, at: Indexes built in the background
CREATE TABLE orders (id bigint PRIMARY KEY);

-- page: tools/drizzle.md
CREATE TABLE cart (id integer PRIMARY KEY);

-- page: tools/jdbc.md
CREATE TABLE cart (id integer PRIMARY KEY);

-- page: tools/logical-replication.md, at: The subscriber

-- page: tools/pgbouncer.md
CREATE TABLE cart (id integer PRIMARY KEY);
SELECT ttl.enable('cart', '30 days');

-- page: tools/prisma.md
CREATE TABLE cart (id integer PRIMARY KEY);

-- page: text
CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, created_at timestamptz, expires_at timestamptz);
CREATE INDEX orders_expires_idx ON orders (expires_at);
SELECT ttl.enable('orders', 3600), ttl.expire_index('orders_expires_idx', 0);
CREATE TABLE orders_archive (LIKE orders);
CREATE TABLE sessions (id bigint PRIMARY KEY, updated_at timestamptz);
CREATE INDEX index_sessions_on_updated_at ON sessions (updated_at);
SELECT ttl.enable('sessions', 3600);
CREATE TABLE token (expires_at timestamptz);
CREATE INDEX token_expires_idx ON token (expires_at);
CREATE INDEX token_expires_at_idx ON token (expires_at);
CREATE TABLE docs (id integer PRIMARY KEY);
SELECT ttl.enable('docs', '30 days');

CREATE SCHEMA "from-cosmos.md"
    CREATE TABLE sessions (id text PRIMARY KEY, body jsonb NOT NULL)
    CREATE TABLE t (id text PRIMARY KEY);
SELECT ttl.enable('"from-cosmos.md".sessions', 3600, document_column => 'body'), ttl.enable('"from-cosmos.md".t', 3600);

CREATE SCHEMA "from-mongodb.md"
    CREATE TABLE t (a timestamptz)
    CREATE INDEX t_a_idx ON t (a);
SELECT ttl.expire_index('"from-mongodb.md".t_a_idx', 60);
