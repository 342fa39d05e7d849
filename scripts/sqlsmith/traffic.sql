-- One round of writes: rows that are expired at once, and rows that live. With the
-- extension _ts is kept as it is given; without, the setting is a name like any other.
SET ttl.preserve_ts = on;
INSERT INTO by_default (id, k, body, _ts)
    SELECT n, n, 'old', now() - interval '2 hours' FROM generate_series(1, 20) AS n ON CONFLICT DO NOTHING;
INSERT INTO by_override (id, body, _ts) SELECT n, 'old', now() - interval '2 hours' FROM generate_series(1, 20) AS n
    ON CONFLICT DO NOTHING;
INSERT INTO by_document (id, doc, _ts) SELECT n, jsonb_build_object('ttl', n), now() - interval '1 minute'
    FROM generate_series(1, 100) AS n ON CONFLICT DO NOTHING;
INSERT INTO seen SELECT n, 'old', now() - interval '2 hours' FROM generate_series(1, 20) AS n ON CONFLICT DO NOTHING;
INSERT INTO unlogged (id, body, _ts) SELECT n, 'old', now() - interval '2 hours' FROM generate_series(1, 20) AS n
    ON CONFLICT DO NOTHING;
INSERT INTO by_index SELECT n, CASE WHEN n % 2 = 0 THEN 'done' END, now() - n * interval '10 s',
        localtimestamp + n * interval '1 minute', current_date + n, ARRAY[now() + n * interval '1 minute']
    FROM generate_series(1, 30) AS n ON CONFLICT DO NOTHING;
INSERT INTO ancestor (id, body, _ts) SELECT n, 'old', now() - interval '2 hours' FROM generate_series(1, 5) AS n;
INSERT INTO heir (id, body, _ts) SELECT n, 'old', now() - interval '2 hours' FROM generate_series(1, 5) AS n;
INSERT INTO audited (id, body, _ts) SELECT n, 'old', now() - interval '2 hours' FROM generate_series(1, 10) AS n
    ON CONFLICT DO NOTHING;
RESET ttl.preserve_ts;
INSERT INTO master (id, body) SELECT n, 'new' FROM generate_series(1, 20) AS n ON CONFLICT DO NOTHING;
INSERT INTO detail (id, master) SELECT n, n FROM generate_series(1, 20) AS n ON CONFLICT DO NOTHING;
INSERT INTO remark (id, master) SELECT n, n FROM generate_series(1, 20) AS n ON CONFLICT (id) DO UPDATE SET master = excluded.master;
SET ttl.preserve_ts = on;
UPDATE master SET _ts = now() - interval '2 hours' WHERE id % 2 = 0;
RESET ttl.preserve_ts;
UPDATE by_override SET ttl = 1 + id % 5 WHERE id > 100;
INSERT INTO by_override (id, body, ttl) SELECT n, 'new', 1 FROM generate_series(101, 140) AS n
    ON CONFLICT (id) DO UPDATE SET ttl = 2;
INSERT INTO parts (id, body) SELECT n, 'new' FROM generate_series(1, 5) AS n;
DELETE FROM trail;
SELECT pg_sleep(0.2);
