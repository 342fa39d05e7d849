-- Tables of all kinds, owned by smith; the same with the extension and without.
CREATE TABLE by_default (id integer PRIMARY KEY, k integer UNIQUE, body text, _ts timestamptz NOT NULL DEFAULT now());
CREATE TABLE by_override (id integer PRIMARY KEY, body text, ttl integer, _ts timestamptz NOT NULL DEFAULT now(),
    EXCLUDE USING gist (int4range(id, id + 1) WITH &&));
CREATE TABLE by_document (id integer PRIMARY KEY, doc jsonb, _ts timestamptz NOT NULL DEFAULT now());
CREATE TABLE seen (id integer PRIMARY KEY, body text, _ts timestamptz NOT NULL DEFAULT now());
CREATE UNLOGGED TABLE unlogged (id integer PRIMARY KEY, body text, _ts timestamptz NOT NULL DEFAULT now());
CREATE TABLE by_index (id integer PRIMARY KEY, state text, at timestamptz, plain timestamp, day date, many timestamptz[]);
CREATE INDEX by_index_at ON by_index (at) WHERE state = 'done';
CREATE INDEX by_index_plain ON by_index (plain);
CREATE INDEX by_index_day ON by_index (day);
CREATE TABLE parts (id integer, body text, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
CREATE TABLE ancestor (id integer, body text, _ts timestamptz NOT NULL DEFAULT now());
CREATE TABLE heir (more text) INHERITS (ancestor);
CREATE TABLE master (id integer PRIMARY KEY, body text, _ts timestamptz NOT NULL DEFAULT now());
CREATE TABLE detail (id integer PRIMARY KEY, master integer REFERENCES master ON DELETE CASCADE,
    _ts timestamptz NOT NULL DEFAULT now());
CREATE TABLE remark (id integer PRIMARY KEY, master integer REFERENCES master ON DELETE SET NULL, body text);
CREATE TABLE kept (id integer PRIMARY KEY, detail integer REFERENCES detail);
CREATE TABLE audited (id integer PRIMARY KEY, body text, _ts timestamptz NOT NULL DEFAULT now());
CREATE TABLE trail (what text, at timestamptz DEFAULT now());
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.trail (what) VALUES (TG_OP || TG_WHEN); RETURN COALESCE(NEW, OLD); END $$;
CREATE TRIGGER note_before BEFORE DELETE ON audited FOR EACH ROW EXECUTE FUNCTION note();
CREATE CONSTRAINT TRIGGER note_after AFTER DELETE ON audited DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION note();
CREATE VIEW all_of_them AS SELECT id, body, _ts FROM by_default UNION ALL SELECT id, body, _ts FROM audited;
GRANT ALL ON ALL TABLES IN SCHEMA public TO writer;
