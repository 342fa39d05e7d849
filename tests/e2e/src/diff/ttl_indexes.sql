-- Tables of the differential test whose rows expire by TTL indexes (M1 to M5).
-- `pg_temp.expire` makes a rule: an index with a time to live in one schema, a DELETE in
-- the others; `pg_temp.finish_indexes` is called when the rows are there.

CREATE TABLE i_at (id integer PRIMARY KEY, ref integer, grp integer NOT NULL, val integer,
                   txt text, doc jsonb, flag boolean, _ts timestamptz NOT NULL DEFAULT now(),
                   at timestamptz, moment timestamp, day date,
                   dates timestamptz[], moments timestamp[], days date[]);
SELECT pg_temp.expire('i_at', 'at', 864000);
CREATE INDEX ON i_at (ref);
CREATE INDEX ON i_at USING gin (doc);

-- Two partial ones, on columns of two types.
CREATE TABLE i_moment (LIKE i_at INCLUDING CONSTRAINTS INCLUDING DEFAULTS, PRIMARY KEY (id));
SELECT pg_temp.expire('i_moment', 'moment', 864000, 'val > 20 OR txt LIKE ''b%'' OR flag IS NULL'),
       pg_temp.expire('i_moment', 'at', 0, 'grp IN (1, 2, 3) AND val IS NOT NULL');
CREATE INDEX ON i_moment (txt text_pattern_ops);

-- Two on one column.
CREATE TABLE i_day (LIKE i_at INCLUDING CONSTRAINTS INCLUDING DEFAULTS, PRIMARY KEY (id));
SELECT pg_temp.expire('i_day', 'day', 864000),
       pg_temp.expire('i_day', 'day', 0, 'txt IS NULL OR ref < 40 AND NOT flag');
CREATE INDEX ON i_day (val, ref);

CREATE TABLE i_array (LIKE i_at INCLUDING CONSTRAINTS INCLUDING DEFAULTS, PRIMARY KEY (id));
SELECT pg_temp.expire('i_array', 'dates', 864000),
       pg_temp.expire('i_array', 'moments', 0, 'val BETWEEN 0 AND 50'),
       pg_temp.expire('i_array', 'days', 864000, 'lower(txt) > ''c''');

-- Beside a default with overrides.
CREATE TABLE i_clock (LIKE i_at INCLUDING CONSTRAINTS INCLUDING DEFAULTS, PRIMARY KEY (id));
SELECT pg_temp.enable('i_clock', 864000, true);
SELECT pg_temp.expire('i_clock', 'at', 0, 'flag'),
       pg_temp.expire('i_clock', 'moment', 2147483647);
CREATE INDEX ON i_clock (ref);

-- Columns in another order, and dropped ones, on both levels, in the predicates, too.
CREATE TABLE i_parts (gone date, LIKE i_at INCLUDING DEFAULTS) PARTITION BY LIST (grp);
ALTER TABLE i_parts DROP COLUMN gone;
CREATE TABLE i_p1 PARTITION OF i_parts FOR VALUES IN (0, 1, 2);
SELECT pg_temp.expire('i_parts', 'at', 864000, 'txt >= ''c'' AND val IS DISTINCT FROM 7 OR ref % 3 = 0'),
       pg_temp.expire('i_parts', 'day', 0, 'flag IS NOT TRUE'),
       pg_temp.expire('i_parts', 'dates', 0, 'grp = 4 AND doc IS NOT NULL');
CREATE UNIQUE INDEX ON i_p1 (id);
CREATE INDEX ON i_p1 (ref);
CREATE TABLE i_p2 (days date[], flag boolean, junk text, day date, at timestamptz, doc jsonb,
                   ref integer, moments timestamp[], id integer NOT NULL, val integer,
                   _ts timestamptz NOT NULL DEFAULT now(), grp integer NOT NULL,
                   dates timestamptz[], txt text, moment timestamp) PARTITION BY RANGE (ref);
ALTER TABLE i_p2 DROP COLUMN junk;
ALTER TABLE i_parts ATTACH PARTITION i_p2 FOR VALUES IN (3, 4, 5, 6);
CREATE TABLE i_p2a PARTITION OF i_p2 FOR VALUES FROM (0) TO (50);
CREATE TABLE i_p2b (moment timestamp, txt text, gone integer, id integer NOT NULL, at timestamptz,
                    val integer, flag boolean, grp integer NOT NULL, dates timestamptz[], day date,
                    doc jsonb, ref integer, days date[], moments timestamp[],
                    _ts timestamptz NOT NULL DEFAULT now());
ALTER TABLE i_p2b DROP COLUMN gone;
ALTER TABLE i_p2 ATTACH PARTITION i_p2b FOR VALUES FROM (50) TO (80);
CREATE TABLE i_p2c PARTITION OF i_p2 DEFAULT;
CREATE TABLE i_p3 PARTITION OF i_parts DEFAULT;

-- Partitioned by the date itself.
CREATE TABLE i_range (LIKE i_at INCLUDING DEFAULTS) PARTITION BY RANGE (at);
CREATE TABLE i_range1 PARTITION OF i_range DEFAULT;
DO $$
DECLARE middle timestamptz := (SELECT base FROM src.base);
BEGIN
    EXECUTE format('CREATE TABLE i_range2 PARTITION OF i_range FOR VALUES FROM (MINVALUE) TO (%L)', middle - interval '30 days');
    EXECUTE format('CREATE TABLE i_range3 PARTITION OF i_range FOR VALUES FROM (%L) TO (%L)',
                   middle - interval '30 days', middle - interval '2 days');
END $$;
SELECT pg_temp.expire('i_range', 'at', 864000);
CREATE INDEX ON i_range (id);

-- The children have no index of their own; one comes later, with other columns.
CREATE TABLE i_heirs (LIKE i_at INCLUDING DEFAULTS);
CREATE TABLE i_h1 () INHERITS (i_heirs);
SELECT pg_temp.expire('i_heirs', 'moment', 864000),
       pg_temp.expire('i_heirs', 'at', 864000, 'NOT flag OR txt IN (''oak1'', ''elm2'', ''fir3'', ''ash4'') OR val < 0');
CREATE TABLE i_h2 (more text, moment timestamp, gone integer, flag boolean, at timestamptz, doc jsonb,
                   txt text, _ts timestamptz NOT NULL DEFAULT now(), val integer, days date[],
                   grp integer NOT NULL, ref integer, id integer, day date, dates timestamptz[],
                   moments timestamp[]);
ALTER TABLE i_h2 DROP COLUMN gone;
ALTER TABLE i_h2 ALTER id SET NOT NULL;
ALTER TABLE i_h2 INHERIT i_heirs;
CREATE INDEX ON i_h2 (ref);

-- By expressions (M14): the conditions of the last argument are written again, in other terms. The second
-- fails for rows that its predicate leaves out.
CREATE TABLE i_expr (LIKE i_at INCLUDING CONSTRAINTS INCLUDING DEFAULTS, PRIMARY KEY (id));
SELECT pg_temp.expire_by('i_expr', 'ttl.add_seconds(at, val::bigint * 3600)', 864000, NULL, 'true',
           'isfinite(at) AND extract(epoch FROM at) + val::numeric * 3600 BETWEEN -210866803200 AND extract(epoch FROM now()) - 864000'),
       pg_temp.expire_by('i_expr', 'ttl.from_epoch(substr(txt, 4)::bigint)', 0, NULL, 'txt ~ ''^(elm|oak)[0-9]$'' AND grp < 4', 'true'),
       pg_temp.expire_by('i_expr', '(CASE WHEN flag THEN COALESCE(dates[1], at) ELSE GREATEST(at, dates[1]) END) DESC', 864000, NULL, 'ref > 50',
           'isfinite(CASE WHEN flag THEN COALESCE(dates[1], at) ELSE GREATEST(at, dates[1]) END)
            AND CASE WHEN flag THEN COALESCE(dates[1], at) ELSE GREATEST(at, dates[1]) END <= now() - interval ''864000 s'''),
       pg_temp.expire_by('i_expr', 'ttl.from_iso8601(doc->''tags''->>0)', 0, NULL, 'true', 'false');
CREATE INDEX ON i_expr (val);

-- In time zones (M13), beside an expression of local time.
CREATE TABLE i_zone (LIKE i_at INCLUDING CONSTRAINTS INCLUDING DEFAULTS, PRIMARY KEY (id));
SELECT pg_temp.expire_by('i_zone', 'moment', 864000, 'America/New_York', 'val > 10 OR flag',
           'isfinite(moment) AND moment < ''2100-01-01'' AND timezone(''America/New_York'', moment) <= now() - interval ''864000 s'''),
       pg_temp.expire_by('i_zone', 'day', 864000, 'Asia/Tokyo', 'ref < 70',
           'isfinite(day) AND day < ''2100-01-01'' AND timezone(''Asia/Tokyo'', day::timestamp) <= now() - interval ''864000 s'''),
       pg_temp.expire_by('i_zone', 'ttl.earliest(moments)', 0, 'Pacific/Apia', 'grp > 6',
           'EXISTS (SELECT FROM (SELECT min(d) AS d FROM unnest(moments) AS d) AS m
                     WHERE isfinite(d) AND d < ''2100-01-01'' AND timezone(''Pacific/Apia'', d) <= now())'),
       pg_temp.expire_by('i_zone', 'ttl.add_seconds(moment, ref)', 864000, 'Europe/Lisbon', 'grp IN (1, 2)',
           'isfinite(moment) AND moment < ''2100-01-01''
            AND timezone(''Europe/Lisbon'', moment + ref * interval ''1 s'') <= now() - interval ''864000 s''');
CREATE INDEX ON i_zone (ref);
SELECT pg_temp.expire_by('i_parts', 'ttl.add_seconds(day, val::bigint * 60)', 0, 'Asia/Tokyo', 'grp = 5',
           'isfinite(day) AND day < ''2100-01-01''
            AND timezone(''Asia/Tokyo'', day::timestamp + val * interval ''1 minute'') <= now()');

SELECT pg_temp.load('i_expr', 20, 1, 300), pg_temp.load('i_zone', 21, 1, 300);
SELECT pg_temp.load('i_at', 12, 1, 300), pg_temp.load('i_moment', 13, 1, 300),
       pg_temp.load('i_day', 14, 1, 300), pg_temp.load('i_array', 15, 1, 300),
       pg_temp.load('i_clock', 16, 1, 300), pg_temp.load('i_heirs', 17, 1, 120),
       pg_temp.load('i_h1', 17, 121, 200), pg_temp.load('i_h2', 17, 201, 300),
       pg_temp.load('i_parts', 18, 1, 400), pg_temp.load('i_range', 19, 1, 300);
SELECT pg_temp.finish('i_clock', 864000);
SELECT pg_temp.finish_indexes();

CREATE VIEW i_view AS SELECT * FROM i_at WHERE val IS DISTINCT FROM 3;
CREATE VIEW v_dates AS
    SELECT id, ref, grp, val, txt, doc, flag, _ts, NULL::integer AS ttl, at, moment, day, dates, moments, days FROM i_at
    UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, NULL::integer, at, moment, day, dates, moments, days FROM i_parts
    UNION ALL (SELECT id, ref, 0, val, txt, doc, true, _ts, NULL::integer, at, moment, day, dates, moments, days FROM i_day
               UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, NULL::integer, at, moment, day, dates, moments, days FROM ONLY i_heirs)
    UNION ALL SELECT id, ref, grp, val, upper(txt), doc, flag, _ts, NULL::integer, at, moment, day, dates, moments, days FROM i_p2b
    UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, ttl, at, moment, day, dates, moments, days FROM i_clock WHERE grp > 1
    UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, NULL::integer, at, moment, day, dates, moments, days FROM i_array WHERE val < 60
    UNION ALL SELECT id, ref, grp, val, txt, doc, flag, _ts, NULL::integer, at, moment, day, dates, moments, days FROM i_range;
