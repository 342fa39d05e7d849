//! X1: churn, a day in a minute (1440 : 1), for two thirds of it. Rows come at an even pace and live for two
//! hours (5 s); who deletes by hand runs one DELETE an hour (2.5 s), as a job would.
//! Both tables, with the same indexes, take the same rows at the same time in one server
//! with autovacuum on; how large do table and indexes get, against the live rows
//! packed, once the first lifetime is over? And the same with a snapshot held open
//! from the first half on, by which nothing can be vacuumed.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use ttl_ext_e2e::{Server, Session};

use crate::context::Context;
use crate::fixtures::{number, worker_off, worker_on};
use crate::results::{Benchmark, Curve};

/// The rows' lifetime in seconds.
const LIVES: u64 = 5;

/// Rows a second.
const PACE: u64 = 10_000;

const MB: f64 = 1024.0 * 1024.0;

type Points = Vec<(f64, f64)>;

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    context.stop_server();
    let seconds = context.options.pick(40, 14).max(2 * LIVES + 2);
    let server = context.own_server(&[("autovacuum", "on"), ("autovacuum_naptime", "1s")]);
    bench.settings_of("own", &server);
    drop(server.database("x1"));
    let mut lines = Vec::new();
    for (case, snapshot) in [("", false), (", old snapshot open", true)] {
        let mut session = server.connect("x1", "postgres");
        tables(&mut session);
        worker_on(&server);
        let (ours, by_hand) = churn(&server, seconds, snapshot);
        worker_off(&server);
        let packed = packed(&mut session) / MB;
        let settled = |points: &Points| -> Vec<f64> {
            let late = points.iter().filter(|(at, _)| *at > seconds as f64 / 2.0);
            late.map(|(_, size)| *size).collect()
        };
        let (mut of_ours, mut of_hand) = (settled(&ours), settled(&by_hand));
        let both = of_ours.len().min(of_hand.len());
        of_ours.truncate(both);
        of_hand.truncate(both);
        let what = format!("size of a table at steady state, with indexes{case}");
        bench.compare(
            &what,
            "MB",
            of_ours.clone(),
            ("one DELETE an hour", of_hand),
            None,
        );
        let packed = vec![packed; both];
        bench.compare(
            &what,
            "MB",
            of_ours,
            ("its live rows, packed", packed),
            None,
        );
        lines.push((format!("ttl_ext{case}"), ours));
        lines.push((format!("one DELETE an hour{case}"), by_hand));
    }
    bench.curves.push(Curve {
        plot: "x1-steady-state".to_owned(),
        title: format!("{PACE} rows a second that live for {LIVES} s: size with indexes"),
        x: "seconds".to_owned(),
        y: "MB".to_owned(),
        x_log: false,
        lines,
    });
}

fn tables(session: &mut Session) {
    session.run("DROP TABLE IF EXISTS ours, by_hand");
    session.run(
        "CREATE TABLE ours (id bigint PRIMARY KEY, data text);
         CREATE TABLE by_hand (id bigint PRIMARY KEY, data text)",
    );
    session.run(&format!(
        "SELECT ttl.enable('ours', {LIVES}, ttl_column => NULL);
         ALTER TABLE by_hand ADD _ts timestamptz NOT NULL DEFAULT date_trunc('second', now());
         CREATE INDEX ON by_hand (_ts)"
    ));
}

/// Sizes in MB over time, of both.
fn churn(server: &Server, seconds: u64, snapshot: bool) -> (Points, Points) {
    let begin = Instant::now();
    let over = || begin.elapsed() >= Duration::from_secs(seconds);
    scope(|scope| {
        for table in ["ours", "by_hand"] {
            let mut session = server.connect("x1", "postgres");
            scope.spawn(move || {
                for n in 0.. {
                    let due = Duration::from_millis(100 * n);
                    sleep(due.saturating_sub(begin.elapsed()));
                    if over() {
                        return;
                    }
                    let from = n * PACE / 10;
                    session.run(&format!(
                        "INSERT INTO {table} (id, data) SELECT i, md5(i::text) FROM generate_series({from} + 1, {from} + {}) AS i",
                        PACE / 10
                    ));
                }
            });
        }
        let mut deleting = server.connect("x1", "postgres");
        scope.spawn(move || {
            while !over() {
                sleep(Duration::from_millis(2500));
                deleting.run(&format!(
                    "DELETE FROM by_hand WHERE _ts <= now() - interval '{LIVES} s'"
                ));
            }
        });
        let holder = snapshot.then(|| server.connect("x1", "postgres"));
        scope.spawn(move || {
            let Some(mut holder) = holder else { return };
            sleep(Duration::from_secs(seconds / 2));
            holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
            sleep(Duration::from_secs(seconds).saturating_sub(begin.elapsed()));
        });
        let mut looking = server.connect("x1", "postgres");
        let mut points = (Points::new(), Points::new());
        while !over() {
            let at = begin.elapsed().as_secs_f64();
            let mut size = |table: &str| {
                let sql = format!("SELECT pg_total_relation_size('{table}')");
                (at, number(&mut looking, &sql) / MB)
            };
            points.0.push(size("ours"));
            points.1.push(size("by_hand"));
            sleep(Duration::from_millis(500));
        }
        points
    })
}

/// Bytes of as many rows as live at a time, in a table of their own.
fn packed(session: &mut Session) -> f64 {
    session.run("DROP TABLE IF EXISTS packed; CREATE TABLE packed (LIKE by_hand INCLUDING ALL)");
    session.run(&format!(
        "INSERT INTO packed SELECT i, md5(i::text), date_trunc('second', now()) + i / {PACE} * interval '1 s'
           FROM generate_series(1, {}) AS i",
        PACE * LIVES
    ));
    number(session, "SELECT pg_total_relation_size('packed')")
}
