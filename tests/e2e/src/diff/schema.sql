-- One schema of the differential test. `pg_temp.enable`, `pg_temp.enable_document`,
-- `pg_temp.disable`, `pg_temp.load` and `pg_temp.finish` are defined by the caller: they give the
-- tables TTL in one schema, and delete the expired rows in the others.
-- `pg_temp.adopt` gives a child the CHECK constraints it needs to become one.

CREATE TABLE d (id integer PRIMARY KEY, ref integer, grp integer NOT NULL,
                val integer, txt text, doc jsonb, flag boolean);
SELECT pg_temp.enable('d', 864000, false);
CREATE INDEX ON d (ref);
CREATE INDEX ON d (txt text_pattern_ops);
CREATE INDEX ON d USING gin (doc);
CREATE INDEX ON d (val) WHERE grp < 5;
CREATE INDEX ON d (_ts, id);

CREATE TABLE o (LIKE d INCLUDING ALL);
ALTER TABLE o DROP COLUMN _ts;
SELECT pg_temp.enable('o', 864000, true);
CREATE INDEX ON o (val);
CREATE INDEX ON o ((lower(txt)), grp);

CREATE TABLE n (junk text, flag boolean, doc jsonb, txt text, val integer,
                grp integer NOT NULL, ref integer, id integer PRIMARY KEY);
ALTER TABLE n DROP COLUMN junk;
SELECT pg_temp.enable('n', -1, true);
CREATE INDEX ON n (ref, val);
CREATE INDEX ON n USING gin (doc jsonb_path_ops);

-- Its columns are there before TTL is turned on, and are adopted.
CREATE TABLE w (_ts timestamptz NOT NULL DEFAULT now(), ttl integer,
                id integer PRIMARY KEY, ref integer, grp integer NOT NULL,
                val integer, txt text, doc jsonb, flag boolean);
SELECT pg_temp.enable('w', 864000, true);
CREATE INDEX ON w (ref);
CREATE INDEX ON w USING brin (id);
CREATE INDEX ON w USING hash (txt);

-- No TTL, and TTL that was turned off: nothing expires in these.
CREATE TABLE x (LIKE w INCLUDING ALL);
CREATE TABLE z (LIKE d INCLUDING ALL);
ALTER TABLE z DROP COLUMN _ts;
SELECT pg_temp.enable('z', 864000, true);
SELECT pg_temp.disable('z');

-- Two levels of partitions whose columns stand in different orders; some are
-- attached after TTL was turned on.
CREATE TABLE p (id integer, ref integer, grp integer NOT NULL, val integer,
                txt text, doc jsonb, flag boolean) PARTITION BY LIST (grp);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (0, 1, 2);
SELECT pg_temp.enable('p', 864000, true);
CREATE TABLE p2 (junk text, flag boolean, ttl integer, doc jsonb, ref integer,
                 id integer, _ts timestamptz NOT NULL DEFAULT now(), val integer,
                 grp integer NOT NULL, txt text) PARTITION BY RANGE (ref);
ALTER TABLE p2 DROP COLUMN junk;
SELECT pg_temp.adopt('p', 'p2');
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (3, 4, 5, 6);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES FROM (0) TO (50);
CREATE TABLE p2b (txt text, gone integer, id integer, val integer, flag boolean,
                  grp integer NOT NULL, ttl integer, doc jsonb, ref integer,
                  _ts timestamptz NOT NULL DEFAULT now());
ALTER TABLE p2b DROP COLUMN gone;
SELECT pg_temp.adopt('p2', 'p2b');
ALTER TABLE p2 ATTACH PARTITION p2b FOR VALUES FROM (50) TO (80);
CREATE TABLE p2c PARTITION OF p2 DEFAULT;
CREATE TABLE p3 (gone1 text, _ts timestamptz NOT NULL DEFAULT now(), gone2 integer,
                 ttl integer, id integer, ref integer, grp integer NOT NULL,
                 val integer, txt text, doc jsonb, flag boolean);
ALTER TABLE p3 DROP COLUMN gone1, DROP COLUMN gone2;
SELECT pg_temp.adopt('p', 'p3');
ALTER TABLE p ATTACH PARTITION p3 DEFAULT;
CREATE INDEX ON p (id);
CREATE INDEX ON p (ref, val);

-- Partitioned by _ts, without overrides: the planner prunes by the time to live.
CREATE TABLE e (LIKE d INCLUDING DEFAULTS) PARTITION BY RANGE (_ts);
CREATE TABLE e1 PARTITION OF e DEFAULT;
DO $$
DECLARE middle timestamptz := (SELECT base FROM src.base);
BEGIN
    EXECUTE format('CREATE TABLE e2 PARTITION OF e FOR VALUES FROM (MINVALUE) TO (%L)', middle - interval '30 days');
    EXECUTE format('CREATE TABLE e3 PARTITION OF e FOR VALUES FROM (%L) TO (%L)',
                   middle - interval '30 days', middle - interval '2 days');
END $$;
SELECT pg_temp.enable('e', 864000, false);
CREATE INDEX ON e (id);
CREATE INDEX ON e1 (ref);

-- The override is a property of a document.
CREATE TABLE j (id integer PRIMARY KEY, ref integer, grp integer NOT NULL,
                val integer, txt text, doc jsonb, flag boolean);
SELECT pg_temp.enable_document('j', 864000);

-- Inheritance; one child comes later and has a column more.
CREATE TABLE h (LIKE d INCLUDING ALL);
ALTER TABLE h DROP COLUMN _ts;
CREATE TABLE h1 () INHERITS (h);
SELECT pg_temp.enable('h', 864000, true);
CREATE TABLE h2 (more text, ttl integer, _ts timestamptz NOT NULL DEFAULT now(),
                 flag boolean, doc jsonb, txt text, val integer,
                 grp integer NOT NULL, ref integer, id integer NOT NULL);
SELECT pg_temp.adopt('h', 'h2');
ALTER TABLE h2 INHERIT h;
CREATE TABLE h11 () INHERITS (h1);
CREATE INDEX ON h1 (id);
CREATE INDEX ON h2 (ref);

-- Row-level security beside TTL.
CREATE TABLE r (LIKE d INCLUDING ALL);
ALTER TABLE r DROP COLUMN _ts;
SELECT pg_temp.enable('r', 864000, true);
ALTER TABLE r ENABLE ROW LEVEL SECURITY;
CREATE POLICY by_group ON r TO app USING (grp % 3 <> 1) WITH CHECK (true);

SELECT pg_temp.load('d', 1, 1, 300), pg_temp.load('o', 2, 1, 300),
       pg_temp.load('n', 3, 1, 300), pg_temp.load('w', 4, 1, 2000),
       pg_temp.load('x', 5, 1, 200), pg_temp.load('z', 6, 1, 200),
       pg_temp.load('p', 7, 1, 400), pg_temp.load('h', 8, 1, 120),
       pg_temp.load('h1', 8, 121, 200), pg_temp.load('h2', 8, 201, 280),
       pg_temp.load('h11', 8, 281, 320), pg_temp.load('r', 9, 1, 250),
       pg_temp.load('j', 10, 1, 300), pg_temp.load('e', 11, 1, 300);
SELECT pg_temp.finish('d', 864000), pg_temp.finish('o', 864000),
       pg_temp.finish('n', -1), pg_temp.finish('w', 864000),
       pg_temp.finish('p', 864000), pg_temp.finish('h', 864000),
       pg_temp.finish('r', 864000), pg_temp.finish('j', 864000),
       pg_temp.finish('e', 864000);

CREATE VIEW v_plain AS
    SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM o WHERE val IS NOT NULL;
CREATE VIEW v_join AS
    SELECT d.id, n.ref, d.grp, n.val, d.txt, n.doc, d.flag, n._ts, n.ttl
      FROM d JOIN n ON d.id = n.ref;
CREATE VIEW v_union AS
    SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM o
    UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM p
    UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM x;
CREATE VIEW v_mixed AS
    SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM n WHERE grp > 2
    UNION ALL (SELECT id, ref, 0, val, txt, doc, true, _ts, NULL::integer FROM d
               UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM ONLY h)
    UNION ALL SELECT id, ref, grp, val, upper(txt), doc, flag, _ts, ttl FROM p2b
    UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, NULL FROM e;
CREATE VIEW v_barrier WITH (security_barrier) AS
    SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM n WHERE val < 60;
CREATE VIEW v_group AS
    SELECT grp AS id, max(ref) AS ref, grp, count(*)::integer AS val, min(txt) AS txt,
           NULL::jsonb AS doc, bool_or(flag) AS flag, max(_ts) AS _ts, min(ttl) AS ttl
      FROM w GROUP BY grp;
CREATE VIEW v_invoker WITH (security_invoker) AS
    SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM r WHERE id > 5;
CREATE VIEW v_nested AS
    SELECT v.id, v.ref, b.grp, b.val, v.txt, b.doc, v.flag, v._ts, v.ttl
      FROM v_plain v LEFT JOIN v_barrier b ON b.ref = v.ref;
CREATE MATERIALIZED VIEW mv AS
    SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM p;
CREATE INDEX ON mv (id);

CREATE FUNCTION f_inline(integer) RETURNS TABLE (id integer, ref integer,
    grp integer, val integer, txt text, doc jsonb, flag boolean, _ts timestamptz, ttl integer)
    LANGUAGE sql STABLE PARALLEL SAFE AS
    'SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM o WHERE grp = $1';
CREATE FUNCTION f_atomic(integer) RETURNS TABLE (id integer, ref integer,
    grp integer, val integer, txt text, doc jsonb, flag boolean, _ts timestamptz, ttl integer)
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT p.id, p.ref, p.grp, p.val, p.txt, p.doc, p.flag, p._ts, p.ttl FROM p
         WHERE p.grp = $1;
    END;
CREATE FUNCTION f_plpgsql(integer) RETURNS TABLE (id integer, ref integer,
    grp integer, val integer, txt text, doc jsonb, flag boolean, _ts timestamptz, ttl integer)
    LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
    #variable_conflict use_column
    BEGIN
        RETURN QUERY SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl FROM w WHERE grp = $1;
    END $$;
-- Called once for a row, perhaps: they must not start parallel workers each time.
CREATE FUNCTION f_max(integer) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
    SET max_parallel_workers_per_gather = 0 AS
    'SELECT max(val) FROM d WHERE ref = $1';
CREATE FUNCTION f_count(integer) RETURNS integer LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET max_parallel_workers_per_gather = 0 AS $$
    DECLARE n integer := 0; found record;
    BEGIN
        FOR found IN SELECT id FROM h WHERE ref = $1 LOOP n := n + 1; END LOOP;
        RETURN n + (SELECT count(*) FROM n WHERE ref = $1);
    END $$;
