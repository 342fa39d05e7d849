BEGIN;
SET LOCAL ttl.preserve_ts = on;
INSERT INTO cart (id, _ts) VALUES (1, '2030-01-01');
COMMIT;
