-- What attacker tries, and what became of it. Each attempt that is done, and not
-- refused, is a success for attacker.
CREATE TABLE evil.log (pid integer DEFAULT pg_backend_pid(), vector text, attempt text, outcome text, me text);

CREATE FUNCTION evil.attempt(vector text, attempt text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE attempt;
        INSERT INTO evil.log VALUES (DEFAULT, vector, attempt, 'done', current_user);
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO evil.log VALUES (DEFAULT, vector, attempt, SQLSTATE, current_user);
    END;
END $$;

CREATE FUNCTION evil.attack(vector text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    attempt text;
BEGIN
    -- Not in attacker's own sessions, but in background processes, which are attacker's, too.
    IF (SELECT backend_type FROM pg_stat_get_activity(pg_backend_pid())) = 'client backend' THEN
        RETURN;
    END IF;
    FOREACH attempt IN ARRAY ARRAY[
        'RESET ROLE', 'SET ROLE NONE', 'SET ROLE postgres', 'SET LOCAL ROLE postgres', 'SET ROLE victim',
        'RESET SESSION AUTHORIZATION', 'SET SESSION AUTHORIZATION DEFAULT',
        'SET SESSION AUTHORIZATION postgres', 'SET LOCAL SESSION AUTHORIZATION postgres',
        $q$SELECT set_config('role', 'none', false)$q$,
        $q$SELECT set_config('role', 'postgres', true)$q$,
        $q$SELECT set_config('session_authorization', 'postgres', false)$q$,
        'ALTER ROLE attacker SUPERUSER', 'CREATE ROLE accomplice SUPERUSER LOGIN',
        'GRANT postgres TO attacker', 'GRANT pg_read_all_data TO attacker',
        'SELECT * FROM public.secret', 'ALTER TABLE public.secret OWNER TO attacker',
        'GRANT SELECT ON public.secret TO attacker', 'SELECT rolpassword FROM pg_authid',
        'SELECT * FROM good.t', 'DELETE FROM good.t', 'LOCK TABLE good.t',
        $q$SELECT ttl.purge('good.t')$q$, $q$SELECT ttl.disable('good.t')$q$,
        'SET ttl.show_expired = on', 'SET LOCAL session_replication_role = replica',
        $q$SELECT pg_read_file('PG_VERSION')$q$, $q$COPY evil.log TO PROGRAM 'cat'$q$,
        'SELECT pg_reload_conf()', 'DISCARD ALL', 'COMMIT'
    ] LOOP
        PERFORM evil.attempt(vector, attempt);
    END LOOP;
END $$;

-- Declared not to do what it does.
CREATE FUNCTION evil.pure(vector text) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evil.attack(vector);
    RETURN 1;
END $$;

CREATE FUNCTION evil.on_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evil.attack(TG_ARGV[0]);
    RETURN OLD;
END $$;

CREATE FUNCTION evil.harmless() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN OLD;
END $$;
