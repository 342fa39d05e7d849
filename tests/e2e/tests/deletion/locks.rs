//! C7, C8, C9: deletion beside locks, concurrent updates and changes of policy.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, PATIENCE, Server, SlowTable};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&SlowTable::SETTINGS))
}

/// A database with tables that have TTL.
fn with_tables(server: &'static Server, name: &str, tables: &[&str]) -> Database<'static> {
    let database = server.database(name);
    for table in tables {
        database.connect().run(&format!(
            "CREATE TABLE {table} (id integer PRIMARY KEY, what text);
             SELECT ttl.enable('{table}', 3600)"
        ));
    }
    database
}

/// A trigger that makes deletion use SQL.
const BY_SQL: &str = "
    CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
    CREATE TRIGGER gone BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION gone()";

/// An AFTER trigger, which is queued.
const QUEUING: &str = "
    CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE TRIGGER gone AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION gone()";

/// Locked rows are skipped, and deleted after the lock is released.
#[test]
fn locked_rows() {
    for (name, more) in [
        ("locked_direct", "SELECT 1"),
        ("locked_queuing", QUEUING),
        ("locked_sql", BY_SQL),
    ] {
        let database = with_tables(server(), name, &["t"]);
        let mut disk = database.disk();
        disk.run(more);
        // Live under the default of an hour, expired under one of ten minutes.
        disk.run_preserving(
            "INSERT INTO t (id, _ts) SELECT n, now() - interval '30 minutes' FROM generate_series(1, 1000) AS n",
        );
        let mut locker = database.disk();
        locker.run("BEGIN");
        let locked = locker.column("SELECT id FROM t WHERE id IN (5, 500, 995) FOR UPDATE");
        assert_eq!(locked.len(), 3);
        // FOR KEY SHARE, the weakest lock, is enough.
        let mut keeper = database.disk();
        keeper.run("BEGIN");
        let locked = keeper.column("SELECT id FROM t WHERE id = 700 FOR KEY SHARE");
        assert_eq!(locked.len(), 1);
        disk.run("SELECT ttl.set_default('t', 600)");
        disk.wait_for_ids("t", "5 500 700 995");
        disk.look_again("t");
        disk.wait_for_ids("t", "5 500 700 995");
        keeper.run("COMMIT");
        disk.wait_for_ids("t", "5 500 995");
        locker.run("ROLLBACK");
        disk.wait_for_none("t");
        // A locked row is no error and does not count as blocked.
        let blocked =
            "SELECT blocked_rows, last_error FROM ttl.stats WHERE relation = 't'::regclass";
        assert_eq!(disk.rows(blocked), [["0", "∅"]]);
    }
}

/// A table lock does not stop deletion in others; the table's rows are deleted later.
#[test]
fn locked_tables() {
    let database = with_tables(server(), "locked_table", &["a", "b", "c"]);
    let mut disk = database.disk();
    let mut locker = database.disk();
    for mode in ["ACCESS EXCLUSIVE", "SHARE"] {
        database.without_workers(|| {
            disk.insert_expired("b", 1, 1000);
            locker.run(&format!("BEGIN; LOCK TABLE b IN {mode} MODE"));
            assert_eq!(locker.count("b"), 1000);
        });
        disk.insert_expired("a", 1, 1000);
        disk.insert_expired("c", 1, 1000);
        disk.wait_for_none("a");
        disk.wait_for_none("c");
        disk.look_again("a");
        disk.look_again("c");
        assert_eq!(locker.count("b"), 1000, "{mode}");
        locker.run("COMMIT");
        disk.wait_for_none("b");
    }
}

/// Deletion checks each row again: rows that were written or got an override meanwhile stay.
#[test]
fn refreshed_rows_live() {
    let database = server().database("refreshed");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    slow.wait_until_begun(&mut disk);
    // C6: a client cannot reach expired rows, but a session that sees them can. Each row that a
    // committed UPDATE reports is live afterwards.
    let mut alive = Vec::new();
    for change in [
        "UPDATE slow SET id = id WHERE id = (SELECT max(id) FROM slow) RETURNING id",
        "UPDATE slow SET ttl = -1 WHERE id = (SELECT max(id) - 1 FROM slow) RETURNING id",
        "UPDATE slow SET ttl = 864000 WHERE id IN (SELECT id FROM slow WHERE id > 0 AND id % 100 = 50) RETURNING id",
    ] {
        alive.extend(disk.column(change));
    }
    assert!(!alive.is_empty(), "the rows were gone too soon");
    alive.push("0".to_owned());
    disk.run("UPDATE pace SET seconds = 0");
    alive.sort_by_key(|id| id.parse::<i32>().expect("an id"));
    disk.wait_until(
        "SELECT count(*) FROM slow",
        &alive.len().to_string(),
        PATIENCE,
    );
    assert_eq!(disk.column("SELECT id FROM slow ORDER BY id"), alive);
}

/// C8: a longer default during deletion. Rows that are live under it stay.
#[test]
fn a_longer_default() {
    let database = server().database("longer");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    slow.wait_until_begun(&mut disk);
    disk.run("SELECT ttl.set_default('slow', 864000, revive_expired => true)");
    let seen = database.connect().value("SELECT count(*) FROM slow");
    let left = disk.count("slow");
    assert_eq!(seen, left.to_string(), "all that is left lives");
    assert!(left > 1, "the rows were gone too soon");
    disk.run("UPDATE pace SET seconds = 0");
    disk.look_again("slow");
    assert_eq!(disk.count("slow"), left);
    // And the shorter default again.
    disk.run("SELECT ttl.set_default('slow', 3600)");
    slow.finish(&mut disk);
}

/// C6, C9: TTL is turned off during deletion. This waits for the running batch and deletes the
/// other expired rows first, so that none is revived.
#[test]
fn nothing_comes_back() {
    let database = server().database("no_revival");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    slow.wait_until_begun(&mut disk);
    disk.run("UPDATE pace SET seconds = 0.001");
    database.connect().run("SELECT ttl.disable('slow')");
    assert_eq!(disk.column("SELECT id FROM slow"), ["0"]);
}

/// C9: after a disable during deletion no further row is deleted, even with an override; a default
/// of -1 goes on deleting rows with an override.
#[test]
fn disabled() {
    let database = with_tables(server(), "disabled", &["sentinel"]);
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    slow.wait_until_begun(&mut disk);
    disk.run("SELECT ttl.disable('slow', revive_expired => true)");
    let left = disk.count("slow");
    assert!(left > 1, "the rows were gone too soon");
    disk.run_preserving(
        "INSERT INTO slow (id, _ts, ttl) VALUES (9001, now() - interval '1 day', 1)",
    );
    disk.run("UPDATE pace SET seconds = 0");
    disk.look_again("sentinel");
    assert_eq!(disk.count("slow"), left + 1);
    disk.run("SELECT ttl.enable('slow', -1)");
    disk.look_again("slow");
    assert_eq!(disk.count("slow"), left);
    disk.run("SELECT ttl.set_default('slow', 3600)");
    slow.finish(&mut disk);
}

/// Tables, columns and indexes change during deletion: the worker continues.
#[test]
fn definitions_that_change() {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(|| Server::start_sweeping(&[]));
    let database = with_tables(server, "ddl", &["t", "sentinel"]);
    let mut disk = database.disk();
    let changes = [
        "ALTER TABLE t ADD COLUMN more text DEFAULT 'x'",
        "ALTER TABLE t ALTER id TYPE bigint",
        "VACUUM FULL t",
        "TRUNCATE t",
        "REINDEX TABLE t",
        "CLUSTER t USING t_pkey",
        "ALTER TABLE t RENAME COLUMN _ts TO changed_at; ALTER TABLE t RENAME COLUMN changed_at TO _ts",
        "ALTER TABLE t RENAME TO t2; ALTER TABLE t2 RENAME TO t",
        "ALTER TABLE t SET UNLOGGED",
        "SELECT ttl.disable('t', drop_columns => true); SELECT ttl.enable('t', 3600)",
        "DROP TABLE t; CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)",
    ];
    for change in changes {
        disk.run("INSERT INTO t (id) VALUES (0)");
        disk.insert_expired("t", 1, 5000);
        for statement in change.split("; ") {
            disk.run(statement);
        }
        disk.insert_expired("t", 10_001, 10_100);
        disk.wait_until("SELECT count(*) FROM t WHERE id > 10000", "0", PATIENCE);
        disk.run("TRUNCATE t");
    }
    disk.look_again("sentinel");
    let errors = server.log_lines(&["ERROR:", "ttl_ext worker"]);
    assert!(errors.is_empty(), "{errors:?}");
}

/// S10: whoever else waits in a circle with a worker, the worker gives way, however short
/// `deadlock_timeout` is.
#[test]
fn a_user_is_never_the_victim_of_a_deadlock() {
    const ROUNDS: u32 = 6;
    // No shorter: on a busy machine a wait of some milliseconds may end late.
    for timeout in ["400ms", "1s"] {
        let server =
            Server::start_sweeping(&[("deadlock_timeout", timeout), ("ttl.lock_timeout", "10s")]);
        let database = server.database("circle");
        let mut disk = database.disk();
        disk.run(
            "CREATE TABLE p (id int PRIMARY KEY, at timestamptz); CREATE INDEX p_at ON p (at);
             CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, what text);
             CREATE INDEX ON c (p); SELECT ttl.expire_index('p_at', 0)",
        );
        let mut user = database.disk();
        let mut waited = 0;
        for round in 1..=ROUNDS {
            disk.run(&format!(
                "INSERT INTO p VALUES ({round}, now() + interval '1 day'); INSERT INTO c VALUES ({round}, {round})"
            ));
            user.run(&format!(
                "BEGIN; UPDATE c SET what = 'locked' WHERE id = {round}"
            ));
            disk.run(&format!(
                "UPDATE p SET at = now() - interval '1 day' WHERE id = {round}"
            ));
            let waits = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker' AND wait_event_type = 'Lock'";
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
            while std::time::Instant::now() < deadline {
                if disk.value(waits) != "0" {
                    waited += 1;
                    break;
                }
            }
            // The circle is closed.
            user.run(&format!(
                "SELECT 1 FROM p WHERE id = {round} FOR UPDATE; COMMIT"
            ));
        }
        assert!(waited > 0, "no worker has waited");
        println!("{timeout}: {waited} of {ROUNDS} times");
        disk.wait_until("SELECT count(*) FROM p", "0", 2 * PATIENCE);
    }
}
