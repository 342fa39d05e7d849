-- The rows of all tables, once for all schemas. All times are hours away from
-- the moment at which a row would expire, so the clock does not matter.
CREATE ROLE app;
CREATE SCHEMA src;
-- A date that TTL indexes expire rows by: young, old, in the future, none, and the
-- values that nothing can be computed from (M12).
CREATE FUNCTION src.instant(kind bigint, number bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
SELECT CASE
       WHEN kind % 14 = 0 THEN NULL
       WHEN kind % 14 = 1 THEN (ARRAY['infinity', '-infinity', '1969-07-20 20:17+00', '1950-01-01 00:00+00',
           '2039-01-01 00:00+00', '294276-12-31 23:59:59+00', '4713-01-01 00:00+00 BC'])[1 + number % 7]::timestamptz
       ELSE date_trunc('second', now()) - make_interval(hours => CASE
           WHEN kind % 14 < 4 THEN -30 - number % 400
           WHEN kind % 14 < 9 THEN 2 + number % 98
           ELSE 480 + number % 900 END::integer) END $$;
-- The same of type date, days away from today.
CREATE FUNCTION src.day(kind bigint, number bigint) RETURNS date LANGUAGE sql STABLE AS $$
SELECT CASE
       WHEN kind % 14 = 0 THEN NULL
       WHEN kind % 14 = 1 THEN (ARRAY['infinity', '-infinity', '1969-07-20', '1950-01-01', '2039-01-01',
           '5874897-12-31', '4713-01-01 BC'])[1 + number % 7]::date
       ELSE (now() AT TIME ZONE 'UTC')::date + CASE
           WHEN kind % 14 < 4 THEN 3 + number % 20
           WHEN kind % 14 < 9 THEN -2 - number % 4
           ELSE -20 - number % 30 END::integer END $$;
CREATE TABLE src.rows AS
SELECT salt, id,
       CASE WHEN hash[1] % 11 > 0 THEN (hash[2] % CASE WHEN salt = 4 THEN 660 ELSE 100 END)::integer END AS ref,
       (hash[3] % 10)::integer AS grp,
       CASE WHEN hash[4] % 13 > 0 THEN (hash[5] % 100)::integer - 20 END AS val,
       CASE WHEN hash[6] % 17 > 0
            THEN (ARRAY['ash', 'beech', 'birch', 'cedar', 'elm', 'fir', 'larch', 'oak'])[1 + hash[7] % 8]
                 || hash[8] % 10 END AS txt,
       CASE WHEN hash[9] % 7 > 0
            THEN jsonb_build_object('k', hash[10] % 8, 'tags', jsonb_build_array('t' || hash[11] % 4, 't' || hash[12] % 5))
                 -- The override in the document: what counts, what does not, and none.
                 || coalesce(CASE WHEN salt = 10 THEN (ARRAY[
                        '{"ttl": 3600}', '{"ttl": 3600.0}', '{"ttl": 36e2}', '{"ttl": 720000}',
                        '{"ttl": 7200000}', '{"ttl": -1}', '{"ttl": 20.5}', '{"ttl": 0}', '{"ttl": -7}',
                        '{"ttl": 2147483648}', '{"ttl": "60"}', '{"ttl": true}', '{"ttl": {"ttl": 60}}',
                        '{"ttl": [60]}', '{"ttl": null}', '{"TTL": 60}'])[1 + hash[18] % 20]::jsonb END, '{}')
       END AS doc,
       CASE hash[13] % 3 WHEN 0 THEN true WHEN 1 THEN false END AS flag,
       date_trunc('second', now()) - make_interval(hours => CASE
           WHEN hash[14] % 29 = 0 THEN -30                       -- in the future
           WHEN hash[15] % 2 = 0 THEN 2 + (hash[16] % 98)::integer  -- younger than ten days
           ELSE 480 + (hash[17] % 900)::integer END) AS _ts,
       CASE hash[18] % 8 WHEN 3 THEN -1 WHEN 4 THEN 7200000 WHEN 5 THEN 720000
                      WHEN 6 THEN 3600 WHEN 7 THEN 2147483647 END AS ttl,
       src.instant(hash[19], hash[20]) AS at,
       src.instant(hash[21], hash[22]) AT TIME ZONE 'UTC' AS moment,
       src.day(hash[23], hash[24]) AS day,
       CASE hash[25] % 9 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN '{NULL,NULL}'
            WHEN 3 THEN ARRAY[src.instant(hash[26], hash[27])]
            WHEN 4 THEN ARRAY[ARRAY[src.instant(hash[26], hash[27]), NULL], ARRAY[NULL, src.instant(hash[28], hash[29])]]
            ELSE ARRAY[src.instant(hash[26], hash[27]), NULL, src.instant(hash[28], hash[29])] END AS dates,
       CASE hash[30] % 9 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN '{NULL,NULL}'
            ELSE ARRAY[NULL, src.instant(hash[27], hash[28]), src.instant(hash[29], hash[30])]::timestamptz[] END
            ::text[]::timestamp[] AS moments,
       CASE hash[29] % 9 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN '{NULL,NULL}'
            ELSE ARRAY[src.day(hash[30], hash[26]), src.day(hash[28], hash[27]), NULL] END AS days
  FROM generate_series(1, 21) AS salt,
       LATERAL generate_series(1, CASE WHEN salt = 4 THEN 2000 ELSE 400 END) AS id,
       LATERAL (SELECT array_agg(abs(hashint4((id * 32 + k) * 64 + salt)::bigint) ORDER BY k) AS hash
                  FROM generate_series(1, 30) AS k) AS hashes;
-- What conditions on _ts are compared with: half an hour away from every row.
CREATE TABLE src.base AS SELECT date_trunc('second', now()) - interval '30 minutes' AS base;
GRANT USAGE ON SCHEMA src TO app;
GRANT SELECT ON src.base, src.rows TO app;
