//! S5: what all owners share has room for each of them: places for tables, and for rows set aside.

use ttl_ext_e2e::{PATIENCE, Server, Session, hostile, until};

/// The most tables that a server can be set to have fewest of.
const TABLES: &str = "100";

/// A partitioned table with so many partitions, by TTL index.
fn make_partitions(owner: &mut Session, count: u32) {
    owner.run(
        "SET client_min_messages = error;
         CREATE TABLE many (d timestamptz) PARTITION BY RANGE (d); CREATE INDEX many_d ON many (d);
         SELECT ttl.expire_index('many_d', 0)",
    );
    for first in (0..count).step_by(500) {
        let last = count.min(first + 500) - 1;
        owner.run(&format!(
            "DO $$ BEGIN FOR n IN {first} .. {last} LOOP
                EXECUTE format('CREATE TABLE many%s PARTITION OF many FOR VALUES FROM (%L) TO (%L)', n,
                               timestamptz '2800-01-01' + n * interval '1 day',
                               timestamptz '2800-01-01' + (n + 1) * interval '1 day');
             END LOOP; END $$"
        ));
    }
    owner.run("RESET client_min_messages");
}

/// The bytes of shared memory that nobody has asked for by name, from which a hash table would grow.
fn unnamed_memory(session: &mut Session) -> String {
    session.value("SELECT sum(allocated_size) FROM pg_shmem_allocations WHERE name IS NULL")
}

/// A6: one owner's 600 partitions take three quarters of the places, no byte more of shared memory,
/// and others find room.
#[test]
fn partitions_leave_places_to_others() {
    let server = hostile::start(&[
        ("ttl.max_tables", TABLES),
        ("max_locks_per_transaction", "128"),
    ]);
    let database = hostile::armed_database(&server);
    let mut admin = database.connect();
    let before = unnamed_memory(&mut admin);
    let mut attacker = database.connect_as("attacker");
    make_partitions(&mut attacker, 600);
    // Others find room, and are served at once.
    let mut victim = hostile::owner(&database, "victim");
    for n in 0..10 {
        victim.run(&format!(
            "CREATE TABLE mine{n} (id integer PRIMARY KEY); SELECT ttl.enable('mine{n}', 3600)"
        ));
        victim.insert_expired(&format!("mine{n}"), 1, 10);
    }
    for n in 0..10 {
        victim.wait_for_none(&format!("mine{n}"));
        let problems = victim.value(&format!("SELECT ttl.problems('mine{n}')"));
        assert_eq!(problems, "{}");
    }
    // Whoever has read the victim's policies has read the attacker's.
    assert_eq!(unnamed_memory(&mut admin), before, "shared memory");
    let problem = "SELECT p FROM unnest(ttl.problems('many')) AS p WHERE p LIKE 'no room%'";
    attacker.wait_until(
        &format!(
            "SELECT ({problem}) LIKE '% and 524 more (525 of 600 tables): role attacker has 75 of 100 places %'"
        ),
        "t",
        PATIENCE,
    );
    // The attacker does not, in any database.
    let refused =
        attacker.error("CREATE TABLE one (id int PRIMARY KEY); SELECT ttl.enable('one', 5)");
    assert_eq!(refused.code().code(), "53400");
    assert!(
        refused
            .hint()
            .is_some_and(|hint| hint.contains("ttl.max_tables")),
        "{refused:?}"
    );
    let elsewhere = hostile::armed_database(&server);
    let mut there = elsewhere.connect_as("attacker");
    let refused = there.error("CREATE TABLE one (id int PRIMARY KEY); SELECT ttl.enable('one', 5)");
    assert_eq!(refused.code().code(), "53400");
    // Places that are given back can be had again.
    attacker.run("DROP TABLE many");
    let again = "CREATE TABLE one (id int PRIMARY KEY); SELECT ttl.enable('one', 3600)";
    until("a place", PATIENCE, || there.try_run(again).ok());
}

/// `ttl.max_tables` is exact: of 101 tables of a superuser the last is refused, whatever made it one,
/// and a transaction that is rolled back takes no place.
#[test]
fn number_101_of_100() {
    let server = Server::start(&[("ttl.max_tables", TABLES)]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(
        "DO $$ BEGIN FOR n IN 1 .. 200 LOOP EXECUTE format('CREATE TABLE t%s (id int, d timestamptz)', n); END LOOP; END $$;
         CREATE INDEX t150_d ON t150 (d)",
    );
    let enable = |from: u32, to: u32| {
        format!(
            "DO $$ BEGIN FOR n IN {from} .. {to} LOOP PERFORM ttl.enable(('t' || n)::regclass, 3600); END LOOP; END $$"
        )
    };
    session.run(&enable(1, 60));
    session.run(&format!("BEGIN; {}; ROLLBACK", enable(61, 100)));
    session.run(&format!("BEGIN; {}; COMMIT", enable(61, 99)));
    // Two at once: the second sees that the first is about to take the last place.
    let mut other = database.connect();
    other.run("BEGIN; SELECT ttl.enable('t100', 3600)");
    for last in [
        "SELECT ttl.enable('t101', 3600)",
        "SELECT ttl.expire_index('t150_d', 0)",
        "CREATE TABLE with_options (id int) WITH (ttl.default_ttl = 60)",
    ] {
        let refused = session.error(last);
        assert_eq!(refused.code().code(), "53400", "{last}");
        assert!(
            refused
                .hint()
                .is_some_and(|hint| hint.contains("ttl.max_tables")),
            "{refused:?}"
        );
    }
    other.run("ROLLBACK");
    session.run("SELECT ttl.enable('t101', 3600)");
    assert_eq!(
        session
            .error("SELECT ttl.enable('t102', 3600)")
            .code()
            .code(),
        "53400"
    );
    // What has a place keeps it, and a plain statement is never refused.
    session.run("SELECT ttl.set_default('t101', 60)");
    session.run("CREATE TABLE child () INHERITS (t1)");
    assert_eq!(session.value("SELECT to_regclass('child') IS NULL"), "f");
    // A place is free again once its table is gone, though no worker has been there.
    session.run("DROP TABLE t5; SELECT ttl.enable('t103', 3600)");
    session.run("SELECT ttl.disable('t6'); SELECT ttl.enable('t104', 3600)");
    assert_eq!(
        session
            .error("SELECT ttl.enable('t105', 3600)")
            .code()
            .code(),
        "53400"
    );
}

/// The attacker's rows that are set aside.
const SET_ASIDE: &str = "SELECT sum(blocked_rows) FROM ttl.stats WHERE relation::text LIKE 'kept%'";

/// A8: tables whose trigger keeps thousands of rows leave places for other owners' rows that cannot
/// be deleted. Beside such a row all others go, those of its very time, too.
#[test]
fn rows_set_aside_leave_places_to_others() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut attacker = hostile::owner(&database, "attacker");
    attacker
        .run("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
    for n in 0..10 {
        attacker.run(&format!(
            "CREATE TABLE kept{n} (id integer PRIMARY KEY);
             CREATE TRIGGER keep BEFORE DELETE ON kept{n} FOR EACH ROW EXECUTE FUNCTION keep();
             SELECT ttl.enable('kept{n}', 3600)"
        ));
        attacker.insert_expired(&format!("kept{n}"), 1, 1500);
    }
    let mut seen = String::new();
    until("no row more is set aside", PATIENCE, || {
        std::thread::sleep(std::time::Duration::from_secs(2));
        let now = attacker.value(SET_ASIDE);
        let same = now == std::mem::replace(&mut seen, now.clone());
        (same && now.parse().is_ok_and(|rows: u32| rows >= 6144)).then_some(())
    });
    let mut victim = hostile::owner(&database, "victim");
    victim.run(
        "CREATE TABLE mine (id integer PRIMARY KEY); SELECT ttl.enable('mine', 3600);
         CREATE TABLE child (id integer REFERENCES mine)",
    );
    victim.run_preserving(
        "INSERT INTO mine (id, _ts) SELECT n, now() FROM generate_series(1, 100) AS n;
         INSERT INTO child VALUES (50);
         UPDATE mine SET _ts = now() - interval '1 day'",
    );
    victim.wait_for_ids("mine", "50");
    victim.wait_until(
        "SELECT blocked_rows FROM ttl.stats WHERE relation = 'mine'::regclass",
        "1",
        PATIENCE,
    );
    let problems = victim.value("SELECT ttl.problems('mine')");
    assert!(
        problems.contains("1 expired rows of public.mine cannot be deleted"),
        "{problems}"
    );
    assert!(!problems.contains("set aside"), "{problems}");
    // Three quarters of 8,192.
    assert_eq!(attacker.value(SET_ASIDE), "6144");
    attacker.wait_until(
        "SELECT bool_and(ttl.problems(relation)::text LIKE '%than there is room to set aside%')
           FROM ttl.stats WHERE relation::text LIKE 'kept%'",
        "t",
        PATIENCE,
    );
    // The attacker's own table with such a row goes on, too, though no row of it can be set aside.
    attacker.run(
        "CREATE TABLE more (id integer PRIMARY KEY); SELECT ttl.enable('more', 3600);
         CREATE TABLE more_child (id integer REFERENCES more)",
    );
    attacker.run_preserving(
        "INSERT INTO more (id, _ts) SELECT n, now() FROM generate_series(1, 100) AS n;
         INSERT INTO more_child VALUES (50);
         UPDATE more SET _ts = now() - interval '1 day'",
    );
    // Without an index it rests in between, for a hundred times what its attempts have taken.
    let mut disk = database.disk();
    disk.wait_until(
        "SELECT string_agg(id::text, ' ') FROM more",
        "50",
        4 * PATIENCE,
    );
}
