//! Deletion in a table without an index, which is read by ranges of blocks: what it reads, and that it deletes all that is
//! expired and nothing else, whatever is written between two passes.

use std::thread::sleep;
use std::time::Duration;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

/// So many rows expire together, each of which has a block of its own: those of a range.
const TOGETHER: i64 = 256;

/// After this time a process has reported what it has read.
const REPORTED: Duration = Duration::from_secs(2);

/// All of a table is read for no more than 1 % of the time, which may be long on a busy machine.
const LONG: u64 = 3 * PATIENCE;

/// A table of so many rows, each in a block of its own.
fn load(database: &Database<'_>, rows: i64, columns: &str, ts: &str, ttl: &str) -> Session {
    let mut disk = database.disk();
    disk.run(&format!(
        "CREATE TABLE t (id integer, filling text, _ts timestamptz NOT NULL DEFAULT now(){columns});
         ALTER TABLE t ALTER filling SET STORAGE PLAIN;
         INSERT INTO t SELECT n, repeat('x', 6000), {ts}{ttl} FROM generate_series(1, {rows}) AS n;
         SELECT pg_stat_force_next_flush()"
    ));
    disk
}

/// Blocks that were read, from the disk or not, by all sessions that have ended or are idle.
fn blocks_read(disk: &mut Session) -> i64 {
    let read =
        "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 't'";
    disk.value(read).parse().expect("a number")
}

/// One range after the other expires, every three seconds: a pass reads those that are due. To read the table once
/// takes twice its blocks.
#[test]
fn ranges_that_are_not_due_are_not_read() {
    const RANGES: i64 = 8;
    const ROWS: i64 = 6000;
    let server = Server::start_sweeping(&[("autovacuum", "off"), ("ttl.naptime", "1d")]);
    let database = server.database("ranges_due");
    let ts = format!(
        "now() - interval '1 hour' + CASE WHEN n <= {} THEN 6 + (n - 1) / {TOGETHER} * 3 ELSE 1800 END * interval '1 s'",
        RANGES * TOGETHER
    );
    let mut disk = load(&database, ROWS, "", &ts, "");
    disk.run("SELECT ttl.enable('t', 3600, ttl_column => NULL)");
    let mut before = 0;
    for range in 1..=RANGES {
        // Without a look at the table itself.
        let gone = format!(
            "SELECT rows_deleted >= {} FROM ttl.stats WHERE relation = 't'::regclass",
            range * TOGETHER
        );
        disk.wait_until(&gone, "t", PATIENCE);
        if range == 1 {
            sleep(REPORTED);
            before = blocks_read(&mut disk);
        }
    }
    sleep(REPORTED);
    let read = blocks_read(&mut disk) - before;
    assert!(read < 2 * ROWS, "{read} blocks read of {ROWS}");
    assert_eq!(disk.value("SELECT count(*) FROM t WHERE id <= 2048"), "0");
    let live = ROWS - RANGES * TOGETHER;
    assert_eq!(disk.value("SELECT count(*) FROM t"), live.to_string());
}

/// Rows of which the summaries do not tell: with an override shorter than all others, with an earlier `_ts`, in ranges that
/// were emptied, while a pass goes on, by a transaction that takes long, in a table that VACUUM has made shorter.
#[test]
fn whatever_is_written() {
    let server = Server::start_sweeping(&[("autovacuum", "off")]);
    let database = server.database("ranges_right");
    let mut disk = load(
        &database,
        4000,
        ", ttl integer",
        "now() - interval '10 hours' + n * interval '9 s'",
        ", CASE WHEN n % 10 = 0 THEN 864000 END",
    );
    disk.run("SELECT ttl.enable('t', 28800)");
    let none_is_expired = "SELECT count(*) = 0 FROM t WHERE NOT ttl.live(_ts, ttl, 28800)";
    disk.wait_until(none_is_expired, "t", LONG);
    let insert = |ids: std::ops::Range<i32>, age: &str, ttl: &str| {
        format!(
            "INSERT INTO t (id, filling, _ts, ttl)
             SELECT n, repeat('y', 6000), now() - interval '{age}', {ttl}
               FROM generate_series({}, {}) AS n",
            ids.start,
            ids.end - 1
        )
    };
    // Into ranges that are empty now.
    disk.run("VACUUM t");
    let some = "CASE n % 3 WHEN 0 THEN 60 WHEN 1 THEN 864000 END";
    disk.run_preserving(&insert(100_001..100_601, "2 hours", some));
    disk.wait_until(none_is_expired, "t", LONG);
    let added = "SELECT count(*) FROM t WHERE id > 100000";
    assert_eq!(disk.value(added), "400");
    // By an override that is shorter than all others, without a `_ts` of the statement's own.
    disk.run("UPDATE t SET ttl = 1 WHERE id > 100000 AND id % 3 = 1");
    disk.wait_until(added, "200", LONG);
    // By an earlier time.
    disk.run_preserving(
        "UPDATE t SET _ts = now() - interval '1 day' WHERE id % 7 = 0 AND ttl IS NULL",
    );
    disk.wait_until(none_is_expired, "t", LONG);
    // By a transaction that was there before several passes.
    let mut long = database.disk();
    long.run("BEGIN; INSERT INTO t (id, filling, ttl) SELECT n, repeat('z', 6000), 2 FROM generate_series(300001, 300100) AS n");
    // While passes go on.
    let mut others: Vec<Session> = (0..3).map(|_| database.disk()).collect();
    for n in 0..60 {
        let from = 200_001 + n * 10;
        let written = insert(
            from..from + 10,
            "9 hours",
            "CASE n % 2 WHEN 0 THEN 864000 END",
        );
        others[n as usize % 3].run_preserving(&written);
    }
    disk.wait_until("SELECT count(*) FROM t WHERE id > 200000", "300", LONG);
    long.run("COMMIT");
    disk.wait_until("SELECT count(*) FROM t WHERE id > 300000", "0", LONG);
    disk.wait_until(none_is_expired, "t", LONG);
    disk.run("DELETE FROM t WHERE id < 200000");
    disk.run("VACUUM t");
    disk.run(&insert(400_001..403_001, "0 s", "NULL"));
    disk.run_preserving("UPDATE t SET _ts = now() - interval '20 days'");
    disk.wait_until("SELECT count(*) FROM t", "0", LONG);
}
