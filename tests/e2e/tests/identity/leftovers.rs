//! S1: what user code leaves in a session is gone before another owner's turn.

use ttl_ext_e2e::{PATIENCE, hostile};

/// Every kind of session state. A `transaction_timeout` (17 and newer) counts from when it is set:
/// a short one would end the worker at once, and leave nothing.
const STAIN: &str = "
CREATE TABLE evil.t (id integer PRIMARY KEY);
SELECT ttl.enable('evil.t', 3600);
CREATE TABLE evil.done (pid integer, stain text);
CREATE FUNCTION evil.stain() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    stain text;
BEGIN
    FOREACH stain IN ARRAY ARRAY[
        'SET search_path = evil, pg_catalog', 'CREATE TEMP TABLE leak (id integer)',
        'CREATE TEMP TABLE seen (state text)',
        'CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS $q$SELECT NULL::timestamptz$q$',
        'PREPARE leak AS SELECT 1', 'DECLARE leak CURSOR WITH HOLD FOR SELECT 1', 'LISTEN leak',
        'SELECT pg_advisory_lock(4711)', 'SELECT set_config(''evil.mark'', ''here'', false)',
        'SET datestyle = ''German, DMY''', 'SET timezone = ''Asia/Kathmandu''', 'SET statement_timeout = 1',
        'SET lock_timeout = 1', 'SET transaction_timeout = 600000', 'SET default_transaction_read_only = on',
        'SET default_transaction_isolation = serializable', 'SET row_security = off',
        'SET enable_indexscan = off', 'SET ttl.preserve_ts = on', 'SET client_min_messages = error',
        'SET application_name = leak', 'SET constraint_exclusion = on', 'SET temp_tablespaces = '''''
    ] LOOP
        BEGIN
            EXECUTE stain;
            INSERT INTO evil.done VALUES (pg_backend_pid(), stain);
        EXCEPTION WHEN OTHERS THEN
            NULL; -- refused: nothing is left behind
        END;
    END LOOP;
END $$;
CREATE FUNCTION evil.on_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.stain(); RETURN OLD; END $$;
CREATE TABLE evil.clients (pid integer);
INSERT INTO evil.clients VALUES (pg_backend_pid());
CREATE FUNCTION evil.pure() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM evil.clients WHERE pid = pg_catalog.pg_backend_pid()) THEN
        PERFORM evil.stain();
    END IF;
    RETURN true;
END $$";

/// When rows are deleted, and when a deletion or a look is planned.
const WAYS: [(&str, &str); 3] = [
    (
        "by_trigger",
        "CREATE TRIGGER stain AFTER DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.on_delete()",
    ),
    (
        "by_predicate",
        "CREATE INDEX ON evil.t (id) WHERE evil.pure()",
    ),
    (
        "by_statistics",
        "CREATE STATISTICS evil.s ON (evil.pure()), (id + 1) FROM evil.t",
    ),
];

/// What the other owner's trigger finds in its session.
const LOOK: &str = "
CREATE TABLE good.seen (state text);
CREATE FUNCTION good.look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO good.seen SELECT pg_catalog.concat_ws(' | ', current_user,
        pg_catalog.current_setting('search_path'), pg_catalog.to_regclass('pg_temp.leak'),
        pg_catalog.to_regclass('leak'), pg_catalog.to_regclass('pg_temp.seen'),
        pg_catalog.to_regprocedure('pg_temp.now()'),
        (SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_statements WHERE name = 'leak'),
        (SELECT pg_catalog.count(*) FROM pg_catalog.pg_cursors WHERE name = 'leak'),
        (SELECT pg_catalog.count(*) FROM pg_catalog.pg_listening_channels()),
        (SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()),
        NULLIF(pg_catalog.current_setting('evil.mark', true), ''), pg_catalog.current_setting('datestyle'),
        pg_catalog.current_setting('timezone'), pg_catalog.current_setting('statement_timeout'),
        pg_catalog.current_setting('lock_timeout'), pg_catalog.current_setting('transaction_timeout', true), pg_catalog.current_setting('default_transaction_read_only'),
        pg_catalog.current_setting('transaction_isolation'), pg_catalog.current_setting('row_security'),
        pg_catalog.current_setting('enable_indexscan'), pg_catalog.current_setting('ttl.preserve_ts'),
        pg_catalog.current_setting('client_min_messages'), pg_catalog.current_setting('application_name'));
    RETURN OLD;
END $$;
CREATE TRIGGER look BEFORE DELETE ON good.t FOR EACH ROW EXECUTE FUNCTION good.look()";

#[test]
fn nothing_is_left_in_the_session() {
    for (name, way) in WAYS {
        nothing_is_left(name, way);
    }
}

fn nothing_is_left(name: &str, way: &str) {
    // Only one worker, so that both owners use the same session.
    let server = hostile::start(&[("ttl.max_workers", "1")]);
    let database = hostile::two_schemas(&server, name);
    let mut victim = hostile::owner(&database, "victim");
    victim.run(LOOK);
    // The state before the attack.
    hostile::assert_served(&database);
    let before = victim.column("SELECT DISTINCT state FROM good.seen");
    assert_eq!(before.len(), 1, "{before:#?}");
    assert!(before[0].starts_with("victim | "), "{before:?}");

    let mut attacker = hostile::owner(&database, "attacker");
    attacker.run(STAIN);
    attacker.run(way);
    for _ in 0..5 {
        attacker.insert_expired("evil.t", 1, 2);
        hostile::assert_served(&database);
        attacker.wait_until("SELECT count(*) FROM evil.t", "0", PATIENCE);
        hostile::assert_served(&database);
    }
    let after = victim.column("SELECT DISTINCT state FROM good.seen");
    assert_eq!(after, before, "{name}");
    // The attack ran, and its visible effects are gone.
    let done =
        attacker.value("SELECT count(DISTINCT stain) FROM evil.done WHERE pid <> pg_backend_pid()");
    assert!(
        done.parse::<u32>().expect("a count") > 5,
        "{name}: only {done} stains"
    );
    for trace in [
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
        "SELECT count(*) FROM pg_class WHERE relname = 'leak'",
        "SELECT count(*) FROM pg_proc WHERE pronamespace::regnamespace::text LIKE 'pg_temp%'",
    ] {
        attacker.wait_until(trace, "0", PATIENCE);
    }
}

/// Nor does it stay in the owner's own process while that goes on: an advisory lock would stop others.
#[test]
fn a_process_that_goes_on_keeps_nothing() {
    let server = hostile::start(&[]);
    for (name, way) in WAYS {
        let database = hostile::two_schemas(&server, name);
        let mut attacker = hostile::owner(&database, "attacker");
        attacker.run(STAIN);
        attacker.run(way);
        let freed = "SELECT count(*) > 0 FROM pg_stat_activity AS a
                      WHERE backend_type = 'ttl_ext worker' AND pid IN (SELECT pid FROM evil.done WHERE stain LIKE '%advisory%')
                        AND NOT EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = a.pid AND locktype = 'advisory')";
        let begun = std::time::Instant::now();
        // Rows go on expiring, so that the worker stays.
        let mut id = 1;
        while attacker.value(freed) != "t" {
            assert!(
                begun.elapsed().as_secs() < PATIENCE,
                "{name}: the lock stays"
            );
            attacker.insert_expired("evil.t", id, id + 1);
            id += 2;
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}
