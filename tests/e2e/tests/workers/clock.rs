//! C24: the server's clock is set, forward and back: no row is lost by it, and deletion goes on.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use ttl_ext_e2e::{PATIENCE, Server, Session, Stop};

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;
/// How far somebody sets the clock: a bit more than what counts as a jump, or much more.
const STEPS: [i64; 5] = [2, MINUTE + 1, 60 * MINUTE, DAY, 366 * DAY];

const PROBLEMS: &str =
    "SELECT array_to_string(problems, '; ') FROM ttl.tables WHERE relation = 't'::regclass";

fn seed() -> u64 {
    std::env::var("TTL_SEED").map_or(1, |text| text.parse().expect("TTL_SEED is a number"))
}

/// Rows that expired two days ago by the clock as it is now, beside one that never expires.
fn fill(session: &mut Session, table: &str, first: i64) {
    session.run(&format!(
        "BEGIN; SET LOCAL ttl.preserve_ts = on;
         INSERT INTO {table} (id, _ts, ttl) SELECT n, now() - interval '2 days', NULL
           FROM generate_series({first} + 1, {first} + 999) AS n;
         INSERT INTO {table} (id, ttl) VALUES ({first}, -1); COMMIT"
    ));
}

/// Whatever the clock has done: all that has expired goes, a new index is built, nothing else is lost.
#[test]
fn deletion_goes_on() {
    let seed = seed();
    println!("TTL_SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (server, mut clock) = Server::start_with_clock(&[("ttl.change_delay", "1s")]);
    let database = server.database("test");
    let mut session = database.disk();
    session.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 86400)");
    for step in 1..=10_i64 {
        let by = STEPS[random.random_range(0..STEPS.len())] * [1, -1][random.random_range(0..2)];
        println!("step {step}: {by} s");
        let mut set = || clock.step(by);
        // Before the rows are there, or between two batches of them, or while an index is built.
        let when = random.random_range(0..3);
        if when == 0 {
            set();
        }
        fill(&mut session, "t", step * 1000);
        if when == 1 {
            set();
            fill(&mut session, "t", -step * 1000);
        }
        session.run(&format!(
            "CREATE TABLE built_{step} (id integer PRIMARY KEY)"
        ));
        session.run(&format!(
            "SELECT ttl.enable('built_{step}', 86400, index => 'btree', concurrently => true)"
        ));
        if when == 2 {
            set();
        }
        fill(&mut session, &format!("built_{step}"), 0);
        // Where the clock was set back, the first batch has not expired any more.
        let expired = "SELECT count(*) FROM t WHERE ttl IS NULL AND _ts < now() - interval '1 day'";
        session.wait_until(expired, "0", PATIENCE);
        session.wait_until(&format!("SELECT count(*) FROM built_{step}"), "1", PATIENCE);
        let live = session.value("SELECT count(*) FROM t WHERE id > 0");
        assert_eq!(live, step.to_string(), "rows that never expire");
    }
    session.wait_until(PROBLEMS, "", PATIENCE);
}

/// What seems to have expired, since the clock was set forward, is hidden, but on disk for
/// `ttl.change_delay`: as soon as the clock is right again, it is seen again.
#[test]
fn a_wrong_clock_deletes_nothing() {
    let (server, mut clock) = Server::start_with_clock(&[("ttl.change_delay", "1h")]);
    let database = server.database("test");
    let (mut session, mut disk) = (database.connect(), database.disk());
    session.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         INSERT INTO t SELECT generate_series(1, 100);
         CREATE TABLE days (id integer, at timestamptz); CREATE INDEX days_at ON days (at);
         SELECT ttl.expire_index('days_at', 0);
         INSERT INTO days SELECT n, now() + interval '1 hour' FROM generate_series(1, 100) AS n",
    );
    for by in [2 * 60 * MINUTE, DAY, 366 * DAY] {
        clock.step(by);
        disk.wait_until(
            &format!("SELECT ({PROBLEMS}) LIKE '%system clock was set%'"),
            "t",
            PATIENCE,
        );
        let both = "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM days)";
        assert_eq!(session.rows(both), [["0", "0"]], "hidden at once");
        // Time in which a worker would come by.
        disk.launcher_looks_again();
        disk.launcher_looks_again();
        assert_eq!(disk.rows(both), [["100", "100"]], "on disk");
        clock.step(-by);
        assert_eq!(session.rows(both), [["100", "100"]], "seen again");
    }
    server.wait_for_log(&["WARNING", "the system clock was set by"], 1, PATIENCE);
}

/// Nor do sessions delete what only the clock has expired: by loads, DDL and changes of the policy.
#[test]
fn sessions_hold_back_too() {
    let (server, mut clock) = Server::start_with_clock(&[("ttl.change_delay", "1h")]);
    let database = server.database("test");
    let (mut session, mut disk) = (database.connect(), database.disk());
    let tables = ["loaded", "altered", "disabled", "prolonged"];
    for table in tables {
        session.run(&format!(
            "CREATE TABLE {table} (id integer PRIMARY KEY, note integer); SELECT ttl.enable('{table}', 3600);
             INSERT INTO {table} SELECT generate_series(1, 1000)"
        ));
    }
    session.run(
        "CREATE TABLE days (id integer, at timestamptz); SELECT ttl.expire_after('days', 'at', 0);
         INSERT INTO days SELECT n, now() + interval '1 hour' FROM generate_series(1, 1000) AS n",
    );
    clock.step(DAY);
    session.run("INSERT INTO loaded SELECT generate_series(10001, 15000)");
    session.run("CREATE UNIQUE INDEX ON altered (note); ALTER TABLE altered ADD CHECK (id > 0)");
    for change in [
        "SELECT ttl.disable('disabled')",
        "SELECT ttl.set_default('prolonged', 86400 * 30)",
        "SELECT ttl.expire_index('days_at_idx', 86400 * 30)",
        "DROP INDEX days_at_idx",
    ] {
        let error = session.error(change);
        let is_refused = error.message().contains("can still be brought back");
        assert!(is_refused, "{change}: {error}");
    }
    // What is asked for by name.
    session.run("INSERT INTO prolonged VALUES (1)");
    assert_eq!(disk.value("SELECT count(*) FROM days"), "1000");
    clock.step(-DAY);
    for table in tables {
        let seen = session.value(&format!("SELECT count(*) FROM {table} WHERE id <= 1000"));
        assert_eq!(seen, "1000", "{table}");
    }
    assert_eq!(session.value("SELECT count(*) FROM days"), "1000");
}

/// A server that starts with a wrong clock, after a stop or a crash, deletes nothing for the same time.
#[test]
fn nor_does_a_server_that_starts_with_one() {
    let (server, mut clock) = Server::start_with_clock(&[("ttl.change_delay", "1h")]);
    let database = server.database("test");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         INSERT INTO t SELECT generate_series(1, 100)",
    );
    drop(session);
    for crashes in [false, true] {
        server.stop(if crashes { Stop::Immediate } else { Stop::Fast });
        clock.step(DAY);
        clock.launch(&server);
        let (mut session, mut disk) = (database.connect(), database.disk());
        assert_eq!(session.value("SELECT count(*) FROM t"), "0", "hidden");
        disk.wait_until(
            &format!("SELECT ({PROBLEMS}) LIKE '%system clock was set%'"),
            "t",
            PATIENCE,
        );
        disk.launcher_looks_again();
        disk.launcher_looks_again();
        assert_eq!(disk.value("SELECT count(*) FROM t"), "100", "on disk");
        drop((session, disk));
        server.stop(Stop::Fast);
        clock.step(-DAY);
        clock.launch(&server);
        let mut session = database.connect();
        assert_eq!(session.value("SELECT count(*) FROM t"), "100", "seen again");
        // The time that a start with the right clock is compared with.
        let stored = "SELECT (pg_read_file('pg_stat/ttl_ext.clock')::bigint / 1e6) BETWEEN extract(epoch FROM now() - timestamptz '2000-01-01 00:00:00+00') - 60 AND extract(epoch FROM now() - timestamptz '2000-01-01 00:00:00+00') + 60";
        session.wait_until(stored, "t", PATIENCE);
    }
}
