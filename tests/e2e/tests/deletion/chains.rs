//! C6, C7: expired rows that refer to each other go however long the chain is, in a user's statement and
//! in the worker, as PostgreSQL's own DELETE of all of them would; a live row keeps those above it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ttl_ext_e2e::{PATIENCE, Server, Session, SqlState};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// More links than fit on the stack, if each is a call.
const LINKS: u32 = 2000;

/// A table `s` whose row n refers to row n - 1; a TTL index by `at`, which is to come.
fn chain(session: &mut Session, action: &str) {
    session.run(&format!(
        "CREATE TABLE s (id int PRIMARY KEY, prev int REFERENCES s {action}, at timestamptz);
         CREATE INDEX ON s (prev); CREATE INDEX s_at ON s (at);
         INSERT INTO s SELECT i, nullif(i - 1, 0), now() + interval '1 day' FROM generate_series(1, {LINKS}) AS i;
         SELECT ttl.expire_index('s_at', 0, confirm => true)"
    ));
}

const ACTIONS: [&str; 4] = [
    "",
    "ON DELETE RESTRICT",
    "ON DELETE CASCADE",
    "DEFERRABLE INITIALLY DEFERRED",
];

#[test]
fn a_chain_is_deleted() {
    for (number, action) in ACTIONS.into_iter().enumerate() {
        let database = server().database(&format!("chain_{number}"));
        let mut disk = database.disk();
        chain(&mut disk, action);
        disk.run("UPDATE s SET at = now() - interval '1 day'");
        disk.wait_until("SELECT count(*) FROM s", "0", 4 * PATIENCE);
        let stats = "SELECT blocked_rows FROM ttl.stats WHERE relation = 's'::regclass";
        assert_eq!(disk.value(stats), "0", "{action}");
    }
}

/// A user deletes the live row to which the first of them refers.
#[test]
fn a_chain_is_not_in_the_way_of_a_user() {
    for (number, action) in ACTIONS.into_iter().enumerate() {
        let database = server().database(&format!("user_{number}"));
        let mut disk = database.disk();
        chain(&mut disk, action);
        disk.run("SELECT ttl.pause('s')");
        disk.run("UPDATE s SET at = now() - interval '1 day' WHERE id > 1");
        // With a live end it stays whole.
        if !action.contains("CASCADE") {
            disk.run(&format!(
                "INSERT INTO s VALUES (0, {LINKS}, now() + interval '1 day')"
            ));
            // Else expired rows count.
            disk.run("SET ttl.show_expired = off");
            let error = disk.error("DELETE FROM s WHERE id = 1");
            // From 18 on RESTRICT has a code of its own.
            let codes = [
                SqlState::FOREIGN_KEY_VIOLATION,
                SqlState::RESTRICT_VIOLATION,
            ];
            assert!(codes.contains(error.code()), "{action}: {error}");
            disk.run("SET ttl.show_expired = on");
            assert_eq!(
                disk.value("SELECT count(*) FROM s"),
                (LINKS + 1).to_string()
            );
            disk.run("SET ttl.show_expired = off; DELETE FROM s WHERE id = 0");
        }
        for statement in [
            "SET ttl.show_expired = off",
            "DELETE FROM s WHERE id = 1",
            "SET ttl.show_expired = on",
        ] {
            disk.run(statement);
        }
        assert_eq!(disk.value("SELECT count(*) FROM s"), "0", "{action}");
    }
}

/// Two tables that refer to each other in turn, by different actions.
#[test]
fn a_chain_between_tables() {
    for (number, (of_a, of_b)) in [
        ("", ""),
        ("ON DELETE CASCADE", ""),
        ("", "ON DELETE RESTRICT"),
        ("DEFERRABLE INITIALLY DEFERRED", "ON DELETE CASCADE"),
    ]
    .into_iter()
    .enumerate()
    {
        let database = server().database(&format!("between_{number}"));
        let mut disk = database.disk();
        disk.run(&format!(
            "CREATE TABLE a (id int PRIMARY KEY, b int); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a {of_b});
             ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b {of_a}; CREATE INDEX ON a (b); CREATE INDEX ON b (a);
             SELECT ttl.enable('a', 3600), ttl.enable('b', 3600), ttl.pause('a'), ttl.pause('b');
             ALTER TABLE a DISABLE TRIGGER ALL; ALTER TABLE b DISABLE TRIGGER ALL;
             SET ttl.preserve_ts = on;
             INSERT INTO a (id, b, _ts) SELECT i, nullif(i - 1, 0), '2000-01-01' FROM generate_series(1, {LINKS}) AS i;
             INSERT INTO b (id, a, _ts) SELECT i, i, '2000-01-01' FROM generate_series(1, {LINKS}) AS i;
             UPDATE a SET _ts = now() WHERE id = 1; RESET ttl.preserve_ts;
             ALTER TABLE a ENABLE TRIGGER ALL; ALTER TABLE b ENABLE TRIGGER ALL;
             SET ttl.show_expired = off"
        ));
        // Deferred checks come with the commit.
        disk.run("DELETE FROM a WHERE id = 1");
        disk.run("SET ttl.show_expired = on");
        let left = "SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM b)";
        assert_eq!(disk.value(left), "0", "{of_a} {of_b}");
    }
}

/// PostgreSQL frees a foreign key's plan that is invalid when it is asked for again, also while it
/// runs: the plans of a chain are invalidated all the time. With a trigger of a user's, what is set off fires at once,
/// and a user may be asked to try again; without, nobody is.
#[test]
fn plans_are_invalidated_while_a_chain_goes() {
    for (name, trigger) in [
        ("quiet", ""),
        (
            "with_trigger",
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
               -- Looks into a catalog, and so hears of what others have changed.
               PERFORM to_regclass('none' || OLD.id); RETURN NULL; END$$;
             CREATE TRIGGER note AFTER DELETE ON s FOR EACH ROW EXECUTE FUNCTION note()",
        ),
    ] {
        let database = server().database(&format!("invalidated_{name}"));
        let mut disk = database.disk();
        chain(&mut disk, "");
        disk.run(trigger);
        disk.run("SELECT ttl.pause('s')");
        disk.run("UPDATE s SET at = now() - interval '1 day' WHERE id > 1");
        disk.run("SET ttl.show_expired = off");
        let is_over = AtomicBool::new(false);
        let failures = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = database.connect();
                while !is_over.load(Ordering::Relaxed) {
                    // All plans of all sessions.
                    other.run("CREATE SCHEMA other; DROP SCHEMA other");
                }
            });
            let mut failures = 0;
            let deadline = Instant::now() + Duration::from_secs(PATIENCE);
            while let Err(error) = disk.try_run("DELETE FROM s WHERE id = 1") {
                let code = error.code().cloned();
                assert_eq!(code, Some(SqlState::T_R_SERIALIZATION_FAILURE), "{error}");
                failures += 1;
                is_over.store(Instant::now() > deadline, Ordering::Relaxed);
            }
            is_over.store(true, Ordering::Relaxed);
            failures
        });
        println!("{name}: {failures} times tried again");
        assert!(failures == 0 || !trigger.is_empty());
        disk.run("SET ttl.show_expired = on");
        assert_eq!(disk.value("SELECT count(*) FROM s"), "0");
    }
}

/// What can go goes, in the worker, beside what a live row keeps.
#[test]
fn a_live_end_keeps_its_chain_only() {
    let database = server().database("live_end");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE s (id int PRIMARY KEY, prev int REFERENCES s); CREATE INDEX ON s (prev);
         SELECT ttl.enable('s', 3600), ttl.pause('s');
         SET ttl.preserve_ts = on;
         INSERT INTO s (id, prev, _ts) SELECT i, CASE WHEN i % 20 > 0 THEN i - 1 END, '2000-01-01'
           FROM generate_series(20, 219) AS i;
         UPDATE s SET _ts = now() WHERE id = 119; RESET ttl.preserve_ts; SELECT ttl.resume('s')",
    );
    disk.wait_until(
        "SELECT count(*), min(id), max(id) FROM s",
        "20|100|119",
        4 * PATIENCE,
    );
    disk.run("DELETE FROM s WHERE id = 119; SELECT ttl.purge('s')");
    assert_eq!(disk.value("SELECT count(*) FROM s"), "0");
}

/// Rows of a table with a trigger for statements: that fires where a row goes, and not each time that a
/// foreign key asks.
#[test]
fn a_trigger_for_statements_fires_where_a_row_goes() {
    let database = server().database("statement_trigger");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (p int REFERENCES p); CREATE TABLE fired (n int);
         SELECT ttl.enable('c', 3600), ttl.pause('c');
         CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.fired VALUES (1); RETURN NULL; END';
         CREATE TRIGGER f AFTER DELETE ON c FOR EACH STATEMENT EXECUTE FUNCTION fire();
         INSERT INTO p VALUES (1), (2), (3); DELETE FROM p WHERE id = 3",
    );
    assert_eq!(disk.value("SELECT count(*) FROM fired"), "0");
    disk.run(
        "INSERT INTO c VALUES (1), (1); SET ttl.preserve_ts = on; UPDATE c SET _ts = '2000-01-01'; RESET ttl.preserve_ts;
         SET ttl.show_expired = off; DELETE FROM p",
    );
    assert_eq!(disk.value("SELECT count(*) FROM fired"), "1");
}

/// What a foreign key changes is no modification by a user: `_ts` stays.
#[test]
fn an_action_of_a_foreign_key_does_not_renew() {
    let database = server().database("no_renewal");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (0), (1), (2), (3);
         CREATE TABLE c (id int PRIMARY KEY, n int REFERENCES p ON DELETE SET NULL, d int DEFAULT 0 REFERENCES p ON DELETE SET DEFAULT,
                         u int REFERENCES p ON UPDATE CASCADE);
         SELECT ttl.enable('c', 86400); SET ttl.preserve_ts = on;
         INSERT INTO c (id, n, d, u, _ts) VALUES (1, 1, 2, 3, now() - interval '1 hour'); RESET ttl.preserve_ts;
         DELETE FROM p WHERE id IN (1, 2); UPDATE p SET id = 4 WHERE id = 3",
    );
    let row = "SELECT n, d, u, _ts < now() - interval '59 minutes' FROM c";
    assert_eq!(disk.rows(row), [["∅", "0", "4", "t"]]);
}

/// More foreign keys than a session keeps queries for, in one statement and again in others.
#[test]
fn queries_of_many_foreign_keys_are_freed() {
    const TABLES: u32 = 1_100;
    let server = Server::start(&[("max_locks_per_transaction", "1024")]);
    let database = server.database("many");
    let (mut disk, mut user) = (database.disk(), database.connect());
    disk.run("CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1), (2), (3)");
    disk.run(&format!(
        "DO $$BEGIN FOR n IN 1..{TABLES} LOOP
           EXECUTE format('CREATE TABLE c%s (pid int REFERENCES p, at timestamptz)', n);
           EXECUTE format('CREATE INDEX c%s_at ON c%s (at)', n, n);
           PERFORM ttl.expire_index(format('c%s_at', n), 0);
           EXECUTE format('INSERT INTO c%s SELECT id, now() - interval ''1 day'' FROM p', n);
         END LOOP; END$$"
    ));
    for id in 1..=3 {
        user.run(&format!("DELETE FROM p WHERE id = {id}"));
        let left = disk.value(&format!("SELECT count(*) FROM c{TABLES}"));
        assert_eq!(left, (3 - id).to_string());
    }
    // Prepared again, and run: the kept ones are those of the last statement at most.
    user.run("INSERT INTO p VALUES (4); INSERT INTO c1 VALUES (4, now() - interval '1 day'); DELETE FROM p WHERE id = 4");
    assert_eq!(disk.value("SELECT count(*) FROM c1"), "0");
}
