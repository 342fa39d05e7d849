CREATE ROLE clerk LOGIN;
CREATE TABLE item (id integer PRIMARY KEY, amount integer CONSTRAINT positive CHECK (amount > 0),
                   name text NOT NULL DEFAULT 'x', _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
CREATE TABLE entry (id integer UNIQUE DEFERRABLE INITIALLY DEFERRED,
                    item integer CONSTRAINT of_item REFERENCES item,
                    _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
CREATE TABLE parts (id integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE secret (id integer);
CREATE DOMAIN small AS integer CONSTRAINT is_small CHECK (VALUE < 100);
CREATE TABLE sized (size small, many integer[]);
CREATE VIEW items AS SELECT id, amount FROM item WHERE amount < 100 WITH CHECK OPTION;
INSERT INTO item VALUES (1, 10), (2, 20);
INSERT INTO entry VALUES (1, 1);
CREATE FUNCTION divide(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN a / b;
END $$;
CREATE FUNCTION divide_sql(a integer, b integer) RETURNS integer LANGUAGE sql AS 'SELECT $1 / $2 + (SELECT 0 * count(*)::integer FROM item)';
CREATE FUNCTION outermost(n integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE found integer;
BEGIN
    SELECT divide(id, n) INTO found FROM item ORDER BY id;
    RETURN found;
END $$;
CREATE FUNCTION again(n integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM outermost(n);
EXCEPTION WHEN division_by_zero THEN
    INSERT INTO item VALUES (1, 1);
    RETURN 0;
END $$;
CREATE FUNCTION wrong_column() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT nowhere FROM item);
END $$;
CREATE FUNCTION dynamic(query text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE query;
END $$;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'refused %', NEW.size USING ERRCODE = 'P1234', DETAIL = 'because', HINT = 'do not',
        TABLE = 'sized', COLUMN = 'size', CONSTRAINT = 'c', DATATYPE = 'd', SCHEMA = 's';
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON sized FOR EACH ROW WHEN (NEW.size = 42) EXECUTE FUNCTION refuse();
GRANT ALL ON item, entry, parts, parts1, sized, items TO clerk;
GRANT CREATE ON SCHEMA public TO clerk;
