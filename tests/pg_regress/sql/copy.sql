-- C6: COPY does not pass through the planner, and hides expired rows all the same.
CREATE SCHEMA copy;
SET search_path = copy;
CREATE TABLE "odd ""name" (id int, "Col,umn" text, gone int, gen int GENERATED ALWAYS AS (id + 1) STORED);
ALTER TABLE "odd ""name" DROP COLUMN gone;
ALTER TABLE "odd ""name" ADD COLUMN "Changed at" timestamptz NOT NULL DEFAULT ttl.current_ts();
SELECT ttl.enable('"odd ""name"', 3600, ts_column => 'Changed at', ttl_column => 'time to live');
SET ttl.preserve_ts = on;
INSERT INTO "odd ""name" (id, "Col,umn", "Changed at", "time to live") VALUES
    (1, 'expired', '2020-01-01 00:00:00+00', NULL), (2, 'never', '2020-01-01 00:00:00+00', -1);
RESET ttl.preserve_ts;

SET timezone = 'UTC';
SET datestyle = 'ISO';
COPY "odd ""name" TO STDOUT;
COPY "odd ""name" ("Col,umn", id) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE ("Col,umn"));
COPY (SELECT id FROM "odd ""name") TO STDOUT;
SET ttl.show_expired = on;
COPY "odd ""name" (id) TO STDOUT;
RESET ttl.show_expired;

-- errors are COPY's own
COPY "odd ""name" (id, nosuch) TO STDOUT;
COPY "odd ""name" (id, id) TO STDOUT;
COPY "odd ""name" (gen) TO STDOUT;
COPY nosuch TO STDOUT;
CREATE ROLE regress_copier;
GRANT USAGE ON SCHEMA copy TO regress_copier;
GRANT SELECT (id) ON "odd ""name" TO regress_copier;
SET ROLE regress_copier;
COPY "odd ""name" TO STDOUT;
COPY "odd ""name" (id) TO STDOUT;
RESET ROLE;

-- inheriting tables: COPY writes the rows of the one table only
CREATE TABLE heir () INHERITS ("odd ""name");
INSERT INTO heir (id) VALUES (7);
COPY "odd ""name" (id) TO STDOUT;
COPY heir (id) TO STDOUT;
CREATE TABLE p (id int) PARTITION BY LIST (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
SELECT ttl.enable('p', 10);
SET ttl.preserve_ts = on;
INSERT INTO p VALUES (1, now() - interval '1 min');
RESET ttl.preserve_ts;
INSERT INTO p VALUES (1);
COPY p1 (id) TO STDOUT;

-- COPY FROM: the column's default is the clock; what is given is kept
COPY p (id) FROM STDIN;
1
\.
SELECT count(*), bool_and(_ts > now() - interval '10 s') AS stamped FROM p;
COPY "odd ""name" (id, "Changed at", "time to live") FROM STDIN;
3	2021-01-01 00:00:00+00	-1
\.
SELECT id, "Changed at" FROM "odd ""name" WHERE id = 3;

SET client_min_messages = warning;
DROP SCHEMA copy CASCADE;
DROP ROLE regress_copier;
