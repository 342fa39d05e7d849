//! B10: how soon after its expiry a row is off the disk, on an otherwise idle server
//! with default settings. 1,000 rows expire one after the other over a minute, in two
//! ways side by side: written at once beforehand, with times that are no whole seconds
//! (`ttl.preserve_ts`), so that each expires at an instant of its own; and each by an
//! INSERT of its own, so that all rows of one second expire together. The latter also in tables
//! that have live rows beside them, which are read for lack of an index.
//!
//! A session looks every 20 ms which rows are on disk. The delay is up to the end of the
//! first look that does not find the row any more: 10 ms too long on average.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use ttl_ext_e2e::Session;

use crate::context::Context;
use crate::machine::now;
use crate::numbers::{quantile, show};
use crate::results::{Benchmark, Curve, Target};

/// The default of both tables, in seconds.
const DEFAULT: f64 = 5.0;

/// The tables: without other rows, and with.
const TABLES: [&str; 4] = ["instants", "inserted", "smaller", "larger"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    context.stop_server();
    let rows = context.options.pick(1_000, 120);
    let span = Duration::from_secs(context.options.pick(60, 6));
    let server = context.own_server(&[
        ("synchronous_commit", "on"),
        ("autovacuum", "on"),
        ("ttl.enabled", "on"),
    ]);
    bench.settings_of("own", &server);
    let database = server.database("b10");
    let mut session = database.connect();
    let filled = context.options.pick(100, 10);
    let names = [
        "each at an instant of its own".to_owned(),
        "all of one second together".to_owned(),
        format!("in a table of {} MB", filled / 10),
        format!("in a table of {filled} MB"),
    ];
    let ways = TABLES.into_iter().zip(&names);
    for (table, megabytes) in TABLES.into_iter().zip([0, 0, filled / 10, filled]) {
        session.run(&format!(
            "CREATE TABLE {table} (id bigint, filling text); CREATE INDEX ON {table} (id) WHERE id > 0;
             SELECT ttl.enable('{table}', {DEFAULT:.0});
             INSERT INTO {table} (id, filling, ttl) SELECT 0, repeat('x', 60), -1 FROM generate_series(1, {megabytes} * 9000)"
        ));
        session.run(&format!("VACUUM ANALYZE {table}"));
    }
    sleep(Duration::from_secs(3));
    session.run(&format!(
        "SET ttl.preserve_ts = on;
         INSERT INTO instants (id, _ts) SELECT i, clock_timestamp() + i * interval '{} us' FROM generate_series(1, {rows}) AS i;
         RESET ttl.preserve_ts",
        span.as_micros() / u128::from(rows)
    ));
    let mut expiries = HashMap::new();
    note_expiries(&mut session, "instants", &mut expiries);
    let done = AtomicBool::new(false);
    let mut looking = database.disk();
    let gone = scope(|scope| {
        let looks = scope.spawn(|| look(&mut looking, &done));
        let begin = Instant::now();
        for n in 1..=rows {
            let due = span.mul_f64(n as f64 / rows as f64);
            sleep(due.saturating_sub(begin.elapsed()));
            for table in &TABLES[1..] {
                session.run(&format!("INSERT INTO {table} (id) VALUES ({n})"));
                // Asked for now and then: a row that is gone cannot be asked.
                if n % 50 == 0 || n == rows {
                    note_expiries(&mut session, table, &mut expiries);
                }
            }
        }
        sleep(Duration::from_secs_f64(DEFAULT + 64.0));
        done.store(true, Ordering::Relaxed);
        looks.join().expect("the looks")
    });

    let mut lines = Vec::new();
    for (table, name) in ways {
        let target = match table {
            "instants" | "inserted" => Some(Target::ValueAtMost(1.5)),
            _ => None,
        };
        let delays: Vec<f64> = (1..=rows)
            .map(|id| {
                let key = (table.to_owned(), id.to_string());
                let at = gone
                    .get(&key)
                    .unwrap_or_else(|| panic!("row {id} of {table} was not seen to go"));
                at - expiries[&key]
            })
            .collect();
        // The row's value is the 99th percentile; all of it is in the curve.
        let p99 = quantile(&delays, 0.99);
        bench.absolute(
            &format!("expiry to deletion, {}, p99", name),
            "s",
            vec![p99],
            target,
        );
        bench.note(format!(
            "{name}: p50 {} s, p90 {} s, p99 {} s, greatest {} s, of {rows} rows. MongoDB's monitor wakes up \
             every 60 s: p50 30 s, p99 59.4 s, by design",
            show(quantile(&delays, 0.5)),
            show(quantile(&delays, 0.9)),
            show(p99),
            show(quantile(&delays, 1.0)),
        ));
        let points = (0..=100).map(|at| f64::from(at) / 100.0);
        let points = points
            .map(|at| (quantile(&delays, at), at * 100.0))
            .collect();
        lines.push((name.clone(), points));
    }
    bench.curves.push(Curve {
        plot: "b10-delay".to_owned(),
        title: "From expiry to deletion, idle server".to_owned(),
        x: "seconds".to_owned(),
        y: "% of the rows are gone".to_owned(),
        x_log: false,
        lines,
    });
}

type Times = HashMap<(String, String), f64>;

fn note_expiries(session: &mut Session, table: &str, expiries: &mut Times) {
    let sql = format!(
        "SET ttl.show_expired = on; SELECT id, extract(epoch FROM _ts) + {DEFAULT} FROM {table} WHERE id > 0"
    );
    for row in session.rows(&sql) {
        let at = row[1].parse().expect("a time");
        expiries.insert((table.to_owned(), row[0].clone()), at);
    }
    session.run("RESET ttl.show_expired");
}

/// When each row was first missed.
fn look(session: &mut Session, done: &AtomicBool) -> Times {
    let mut gone = Times::new();
    let mut here: Vec<(String, String)> = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let of_table = |table: &&str| format!("SELECT '{table}', id FROM {table} WHERE id > 0");
        let all: Vec<String> = TABLES.iter().map(of_table).collect();
        let rows = session.rows(&all.join(" UNION ALL "));
        let at = now();
        let seen: Vec<(String, String)> = rows
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect();
        let set: std::collections::HashSet<_> = seen.iter().collect();
        for row in here.iter().filter(|row| !set.contains(row)) {
            gone.insert(row.clone(), at);
        }
        here = seen;
        sleep(Duration::from_millis(20));
    }
    gone
}
