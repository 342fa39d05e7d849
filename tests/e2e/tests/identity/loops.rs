//! S5: user code that never ends is stopped by `ttl.statement_timeout`, or by other means if it
//! catches the error; other owners' rows are deleted meanwhile.

use std::time::Duration;

use ttl_ext_e2e::{PATIENCE, Server, Session, Stop, hostile};

/// Loops in every session but `attacker`'s own.
const HANG: &str = "
CREATE TABLE evil.clients (pid integer);
INSERT INTO evil.clients VALUES (pg_backend_pid());
CREATE TABLE evil.t (id integer PRIMARY KEY);
SELECT ttl.enable('evil.t', 3600);
CREATE FUNCTION evil.hang() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT EXISTS (SELECT FROM evil.clients WHERE pid = pg_catalog.pg_backend_pid()) LOOP
        {body}
    END LOOP;
END $$;
CREATE FUNCTION evil.on_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.hang(); RETURN OLD; END $$;
CREATE FUNCTION evil.nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE FUNCTION evil.pure() RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.hang(); RETURN 1; END $$";

const BUSY: &str = "NULL;";
// These sleeps are the endless code; the test does not wait for them.
const ASLEEP: &str = "PERFORM pg_catalog.pg_sleep(3600);";
const STUBBORN: &str =
    "BEGIN PERFORM pg_catalog.pg_sleep(1); EXCEPTION WHEN query_canceled THEN NULL; END;";

const TRAPS: [(&str, &str); 3] = [
    (
        "row",
        "CREATE TRIGGER evil BEFORE DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.on_delete()",
    ),
    (
        "deferred",
        "CREATE CONSTRAINT TRIGGER evil AFTER DELETE ON evil.t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION evil.on_delete()",
    ),
    (
        "planning",
        "CREATE TRIGGER harmless BEFORE DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.nothing();
         CREATE INDEX ON evil.t ((id + evil.pure()))",
    ),
];

fn start() -> Server {
    hostile::start(&[("ttl.statement_timeout", "2s")])
}

/// Set the trap; `attacker`'s session and the table are ready.
fn set_trap(server: &Server, name: &str, trap: &str, body: &str) -> Session {
    let database = hostile::two_schemas(server, name);
    let mut attacker = hostile::owner(&database, "attacker");
    attacker.run(&HANG.replace("{body}", body));
    attacker.run(trap);
    attacker.insert_expired("evil.t", 1, 4);
    attacker
}

#[test]
fn stopped_by_the_timeout() {
    for body in [BUSY, ASLEEP] {
        let server = start();
        for (name, trap) in TRAPS {
            let mut attacker = set_trap(&server, name, trap, body);
            let database = server.existing_database(name);
            for _ in 0..3 {
                hostile::assert_served(&database);
            }
            attacker.wait_until(
                "SELECT last_error LIKE '%statement timeout%' FROM ttl.stats WHERE relation = 'evil.t'::regclass",
                "t",
                PATIENCE,
            );
            assert_eq!(attacker.count("evil.t"), 4);
        }
        let took = server.stop(Stop::Fast);
        assert!(took < Duration::from_secs(PATIENCE), "{took:?}");
    }
}

/// A loop that catches its cancellation is not ended by a timeout. Others must not wait for it.
#[test]
fn that_catches_its_cancellation() {
    for (name, trap) in TRAPS {
        let server = start();
        let attacker = set_trap(&server, name, trap, STUBBORN);
        let database = server.existing_database(name);
        for _ in 0..3 {
            hostile::assert_served(&database);
        }
        // Another database and the shutdown are not delayed either.
        let other = hostile::two_schemas(&server, "other");
        hostile::assert_served(&other);
        drop(attacker);
        let took = server.stop(Stop::Fast);
        assert!(took < Duration::from_secs(PATIENCE), "{took:?}");
    }
}

/// Temporary objects that code leaves behind are dropped, for which another session may have locked them: nothing waits for it.
#[test]
fn no_lock_on_what_is_left_behind_stops_a_worker() {
    let server = hostile::start(&[]);
    let database = hostile::two_schemas(&server, "left_behind");
    let mut boss = database.disk();
    let mut attacker = hostile::owner(&database, "attacker");
    attacker.run(
        "CREATE TABLE evil.t (id serial PRIMARY KEY); SELECT ttl.enable('evil.t', 3600);
         CREATE FUNCTION evil.leave() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN CREATE TEMP SEQUENCE left_behind; PERFORM pg_catalog.pg_sleep(0.4); RETURN OLD; END $$;
         CREATE TRIGGER evil BEFORE DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.leave()",
    );
    for _ in 0..3 {
        attacker.run_preserving("INSERT INTO evil.t (_ts) VALUES (now() - interval '1 day')");
        // The sequence's lock is there before the sequence is. That of nextval() stays until the end of the transaction, also where it fails.
        attacker.run(
            "BEGIN;
             DO $$DECLARE sequence regclass; BEGIN
                 WHILE sequence IS NULL LOOP
                     PERFORM pg_catalog.pg_sleep(0.01);
                     SELECT relation INTO sequence FROM pg_locks
                      WHERE mode = 'AccessExclusiveLock' AND relation IS NOT NULL AND pid <> pg_backend_pid()
                        AND NOT EXISTS (SELECT FROM pg_class WHERE oid = relation);
                     EXIT WHEN NOT EXISTS (SELECT FROM ttl.expired(NULL::evil.t));
                 END LOOP;
                 BEGIN PERFORM nextval(sequence); EXCEPTION WHEN OTHERS THEN NULL; END;
             END $$",
        );
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(100));
            let waiting = boss.value(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'",
            );
            assert_eq!(waiting, "0");
        }
        attacker.run("COMMIT");
        boss.wait_until("SELECT count(*) FROM evil.t", "0", PATIENCE);
    }
}
