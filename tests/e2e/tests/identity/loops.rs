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
