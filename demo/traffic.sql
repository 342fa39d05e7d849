-- What pgbench runs as `app`, five times a second: four guests come and never
-- click again; some of the twenty regulars click, which keeps their sessions.

INSERT INTO sessions (who) SELECT 'guest' FROM generate_series(1, 4);
UPDATE sessions SET clicks = clicks + 1
WHERE id IN (SELECT 1 + floor(random() * 20)::bigint FROM generate_series(1, 12));
