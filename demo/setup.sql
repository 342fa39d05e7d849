-- The tables of the demo. `app` is the ordinary user that the clients are.

CREATE EXTENSION ttl_ext;
CREATE ROLE app LOGIN;

-- Sessions end 8 seconds after the last click.
CREATE TABLE sessions (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, who text, clicks int DEFAULT 0);
SELECT ttl.enable('sessions', 8);

-- An order stays, unless it says otherwise: -1 turns TTL on without a default,
-- and the column `ttl`, which enable() adds, holds a time for a single row.
CREATE TABLE orders (id bigint PRIMARY KEY, state text);
SELECT ttl.enable('orders', -1);

-- A log is only appended to. It has no key, and keeps 6 seconds.
CREATE TABLE log (level text, message text);
SELECT ttl.enable('log', 6);

GRANT SELECT, INSERT, UPDATE ON sessions, orders, log TO app;

INSERT INTO sessions (who) SELECT 'regular ' || i FROM generate_series(1, 20) AS i;
INSERT INTO orders (id, state, ttl)
SELECT i,
       CASE WHEN i <= 60 THEN 'paid' ELSE 'basket' END,
       CASE WHEN i <= 60 THEN NULL WHEN i <= 90 THEN 5 ELSE 14 END
FROM generate_series(1, 120) AS i;
