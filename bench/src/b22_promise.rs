//! B22: the promise with `index => 'auto'` under load: how old the oldest expired row on disk is,
//! looked at five times a second, in tables of 1 MB to 10 GB, with no writes, 1,000 and 10,000 INSERTs
//! a second, whose rows expire in the order of the table (by its default), at random (by overrides of 1
//! to 20 seconds), or half and half. The p99 of that age is above the p99 of the rows' own delays. And in a table of 900 MB
//! that lives for a day, whose rows expire in the order in which they lie, 1,000 a second.
//!
//! Also: the share of the rows on disk that are expired, and the time that workers spend on the table. At 10,000 a second
//! two processors are all used: deletion takes what is left over, at least 1 % of a worker's time.

use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ttl_ext_e2e::{Database, Server, Session};

use crate::context::Context;
use crate::fixtures::{drop_databases, number, wait};
use crate::numbers::{quantile, show};
use crate::options::Size;
use crate::results::{Benchmark, Target};

/// The default of the tables, in seconds, and the longest override, in a full run.
const LONGEST: u64 = 20;

/// A larger table gets an index, in MB (`ttl.auto_index_min_size`).
const READ: u64 = 1_000;

/// What the age is to be below: where an index leads to the rows; in a table that is read, for 1 % of the time or once a
/// minute, beside others who work; and where ranges lead to them.
fn target(megabytes: u64) -> Target {
    match megabytes {
        ..=100 => Target::ValueAtMost(30.0),
        101..=READ => Target::ValueAtMost(120.0),
        _ => Target::ValueAtMost(1.5),
    }
}
const BY_RANGES: Target = Target::ValueAtMost(10.0);

/// How often the table is looked at.
const STEP: Duration = Duration::from_millis(200);

#[derive(Clone, Copy)]
struct Case {
    megabytes: u64,
    /// INSERTs a second.
    writes: u64,
    /// How many of them expire by an override: of ten.
    scattered: u64,
    /// The default in seconds, and the longest override.
    longest: u64,
}

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    context.stop_server();
    let server = context.own_server(&[
        ("synchronous_commit", "on"),
        ("autovacuum", "on"),
        ("ttl.enabled", "on"),
        ("max_wal_size", "16GB"),
    ]);
    bench.settings_of("own", &server);
    let database = server.database("b22");
    let is_full = context.options.size == Size::Full;
    let longest = context.options.pick(LONGEST, 3);
    let sizes: &[u64] = if is_full {
        &[1, 100, 900, 10_000]
    } else {
        &[1, 10]
    };
    let rates: &[u64] = if is_full {
        &[0, 1_000, 10_000]
    } else {
        &[0, 1_000]
    };
    let time = Duration::from_secs(context.options.pick(45, 5));
    in_order(&database, context, bench);
    for &megabytes in sizes {
        // Some passes at least.
        let time = if megabytes == 900 { 4 * time } else { time };
        let mut session = database.connect();
        fill(&mut session, megabytes, longest);
        for &writes in rates {
            for scattered in kinds(megabytes, writes) {
                let case = Case {
                    megabytes,
                    writes,
                    scattered: *scattered,
                    longest,
                };
                measure(&server, &mut session, case, time, bench);
            }
        }
        session.run("DROP TABLE load");
    }
    drop_databases(&server, &["b22"]);
}

/// All three kinds in one place; elsewhere half and half.
fn kinds(megabytes: u64, writes: u64) -> &'static [u64] {
    match (megabytes, writes) {
        (100, 1_000) => &[0, 5, 10],
        _ => &[5],
    }
}

/// A table of live rows, whose index is there if it is to have one.
fn fill(session: &mut Session, megabytes: u64, longest: u64) {
    // Small rows where the table is read; larger ones, so that the others are soon there.
    let (width, rows) = match megabytes {
        ..=READ => (60, megabytes * 9_000),
        _ => (950, megabytes * 1_000),
    };
    session.run(&format!(
        "CREATE TABLE load (filling text, due timestamptz);
         CREATE INDEX ON load (due) WHERE due IS NOT NULL;
         SELECT ttl.enable('load', {longest});
         INSERT INTO load (filling, ttl) SELECT repeat('x', {width}), -1 FROM generate_series(1, {rows})"
    ));
    session.run("VACUUM ANALYZE load");
    let state = "SELECT index_state FROM ttl.tables WHERE relation = 'load'::regclass";
    // It is noticed in a turn.
    let expected = match megabytes {
        ..=READ => "not needed",
        _ => {
            session.run(
                "INSERT INTO load (filling, ttl, due) VALUES ('x', 1, now() + interval '1 s')",
            );
            "ready"
        }
    };
    wait(session, state, expected, 100, 600);
}

fn measure(
    server: &Server,
    session: &mut Session,
    case: Case,
    time: Duration,
    bench: &mut Benchmark,
) {
    let Case {
        megabytes,
        writes,
        scattered,
        longest,
    } = case;
    let settled = Duration::from_secs(longest + 5);
    let mut pgbench = None;
    if writes == 0 {
        // Written at once, due one after the other.
        let rows = 1_000 * time.as_secs();
        let all = settled.as_secs() + time.as_secs();
        session.run(&format!(
            "INSERT INTO load (filling, ttl, due)
             SELECT 'x', ttl, now() + ttl * interval '1 s'
               FROM (SELECT (1 + random() * {all})::integer FROM generate_series(1, {rows})) AS w (ttl)"
        ));
    } else {
        let script = server.dir().join("b22.sql");
        let mut file = std::fs::File::create(&script).expect("a script");
        write!(
            file,
            "\\set n random(1, {longest})\n\\set tenth random(0, 9)\n\
             INSERT INTO load (filling, ttl, due) \
             SELECT 'x', ttl, now() + COALESCE(ttl, {longest}) * interval '1 s' \
               FROM (SELECT CASE WHEN :tenth::integer < {scattered} THEN :n::integer END) AS w (ttl);\n"
        )
        .expect("a script");
        let mut command = server.tool("pgbench", "b22");
        let child = command
            .args([
                "-n", "-c", "2", "-j", "1", "-M", "prepared", "-T", "3600", "-R",
            ])
            .arg(writes.to_string())
            .arg("-f")
            .arg(&script)
            .current_dir(server.dir())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        pgbench = Some(child.expect("pgbench"));
    }
    sleep(settled);
    let seen = watch(session, time);
    session.run("SET ttl.show_expired = on");
    let written = number(session, "SELECT count(*) FROM load WHERE due IS NOT NULL");
    session.run("RESET ttl.show_expired");
    if let Some(mut pgbench) = pgbench {
        let ended = pgbench.try_wait().expect("pgbench");
        assert!(ended.is_none(), "pgbench failed");
        session.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgbench'");
        pgbench.wait().expect("pgbench");
    }
    let kind = match scattered {
        0 => "in order",
        10 => "scattered",
        _ => "mixed",
    };
    let size = match megabytes {
        1_000.. => format!("{} GB", megabytes / 1_000),
        _ => format!("{megabytes} MB"),
    };
    let what = format!("{size}, {} writes/s, {kind}", show(writes as f64));
    seen.report(bench, &what, written, target(megabytes));
}

/// A table of logs that live for a day, of which 1,000 rows expire in a second, in the order in which they lie.
fn in_order(database: &Database<'_>, context: &Context, bench: &mut Benchmark) {
    const ROWS: u64 = 9_000;
    let megabytes = context.options.pick(900, 50);
    let mut session = database.connect();
    session.run(
        "CREATE TABLE load (filling text, due timestamptz);
         CREATE INDEX ON load (due);
         SELECT ttl.enable('load', 86400, ttl_column => NULL)",
    );
    session.run_preserving(&format!(
        "INSERT INTO load (filling, due, _ts) SELECT repeat('x', 60), at, at - interval '1 day'
           FROM (SELECT now() + n * interval '1 ms' FROM generate_series(1, {}) AS n) AS w (at)",
        megabytes * ROWS
    ));
    session.run("VACUUM ANALYZE load");
    // What has expired while it was filled does not count.
    let begun = "SELECT rows_deleted > 0 FROM ttl.stats WHERE relation = 'load'::regclass";
    wait(&mut session, begun, "t", 100, 600);
    sleep(Duration::from_secs(context.options.pick(60, 2)));
    let time = Duration::from_secs(context.options.pick(180, 5));
    let seen = watch(&mut session, time);
    let what = format!("{megabytes} MB, logs of a day in order, 1,000 expire in a second");
    seen.report(bench, &what, (megabytes * ROWS) as f64, BY_RANGES);
    session.run("DROP TABLE load");
}

/// What was seen of the expired rows on disk.
struct Seen {
    ages: Vec<f64>,
    expired: Vec<f64>,
    /// A second.
    written: f64,
    /// Of workers, in per cent.
    time: f64,
}

fn watch(session: &mut Session, time: Duration) -> Seen {
    let (before, began) = (counted(session), Instant::now());
    let (mut ages, mut expired) = (Vec::new(), Vec::new());
    while began.elapsed() < time {
        let look = "SELECT COALESCE(extract(epoch FROM clock_timestamp() - min(due)), 0), count(*)
                      FROM load WHERE due < clock_timestamp()";
        let row = session
            .rows(&format!("SET ttl.show_expired = on; {look}"))
            .remove(0);
        ages.push(row[0].parse::<f64>().expect("an age"));
        expired.push(row[1].parse::<f64>().expect("a count"));
        sleep(STEP);
    }
    let (after, seconds) = (counted(session), began.elapsed().as_secs_f64());
    session.run("RESET ttl.show_expired");
    Seen {
        ages,
        expired,
        written: (after.rows - before.rows) / seconds,
        time: (after.time - before.time) / seconds / 10.0,
    }
}

impl Seen {
    fn report(&self, bench: &mut Benchmark, what: &str, due: f64, target: Target) {
        let p99 = quantile(&self.ages, 0.99);
        let text = format!("age of the oldest expired row on disk, {what}, p99");
        bench.absolute(&text, "s", vec![p99], Some(target));
        bench.note(format!(
            "{what}: p50 {} s, p99 {} s, greatest {} s; expired rows on disk, p99: {} beside {} that are due; written {} a \
             second; workers {} % of the time",
            show(quantile(&self.ages, 0.5)),
            show(p99),
            show(quantile(&self.ages, 1.0)),
            show(quantile(&self.expired, 0.99)),
            show(due),
            show(self.written),
            show(self.time),
        ));
    }
}

struct Counted {
    /// Milliseconds that workers have spent.
    time: f64,
    rows: f64,
}

fn counted(session: &mut Session) -> Counted {
    let mut one = |sql: &str| number(session, sql);
    // A moment later what others have counted is there.
    sleep(Duration::from_secs(1));
    Counted {
        time: one("SELECT time_used_ms FROM ttl.stats WHERE relation = 'load'::regclass"),
        rows: one("SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'load'"),
    }
}
