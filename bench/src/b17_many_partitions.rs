//! B17: tables of very many partitions: planning a query over 1,000 of them and an INSERT into all
//! in a new session, with TTL, with the same columns, constraint and index but no TTL, and as they
//! were before; and what the workers and `ttl.stats` take with ten times as many.

use std::time::Instant;

use ttl_ext_e2e::{Server, Session};

use crate::context::Context;
use crate::fixtures::{
    BARE, LIFETIME, drop_databases, enable, indexes_by_hand, number, timed, worker_off, worker_on,
};
use crate::numbers::{median, show};
use crate::results::{Benchmark, Target};

/// With the table's own condition, and without any.
const QUERIES: [(&str, &str); 2] = [
    ("a query with a condition", "WHERE data = 'none'"),
    ("a query without one", ""),
];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let most = context.options.pick(10_000, 1_000);
    let few = most / 10;
    let server = context.own_server(&[
        ("ttl.max_tables", "50000"),
        ("max_locks_per_transaction", "2048"),
    ]);
    bench.settings_of("of its own", &server);
    let database = server.database("b17");
    let mut session = database.connect();
    let sides = ["ttl", "same", BARE.1];
    for side in sides {
        partitioned(&mut session, side, few);
        match side {
            "ttl" => enable(&mut session, side, LIFETIME as i64),
            "same" => {
                session.run(
                    "ALTER TABLE same ADD _ts timestamptz NOT NULL DEFAULT ttl.current_ts(),
                                      ADD ttl integer CHECK (ttl.is_override(ttl))",
                );
                indexes_by_hand(&mut session, side);
            }
            _ => {}
        }
        session.run(&insert(side, few, 0));
        session.run(&format!("ANALYZE {side}"));
    }
    session.run("CHECKPOINT");
    let runs = context.alternate(7, true, &sides, |side| {
        let mut session = database.connect();
        // Not the process's own: that has pages of shared buffers that nobody else has read yet.
        let contexts = "SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts";
        session.run(contexts);
        let before = number(&mut session, contexts);
        let mut figures = vec![];
        for (query, first, later) in [(0, "first", "later"), (1, "", "all")] {
            let sql = format!(
                "EXPLAIN (SUMMARY) SELECT * FROM {side} {}",
                QUERIES[query].1
            );
            if !first.is_empty() {
                figures.push((first, planning_time(&mut session, &sql)));
            }
            let times: Vec<f64> = (0..9).map(|_| planning_time(&mut session, &sql)).collect();
            figures.push((later, median(&times)));
        }
        let after = number(&mut session, contexts);
        figures.push(("kB", (after - before) / few as f64));
        let mut session = database.connect();
        session.run("BEGIN");
        figures.push((
            "insert",
            timed(&mut session, &insert(side, few, 1)) * 1000.0,
        ));
        session.run("ROLLBACK");
        figures
    });
    let of = |what: &str| format!("{what}, {} partitions", show(few as f64));
    let [with, without] = QUERIES.map(|(what, _)| what);
    for (figure, what, unit, target) in [
        (
            "later",
            format!("planning of {with}"),
            "ms",
            Some(Target::AtMost(1.05)),
        ),
        (
            "all",
            format!("planning of {without}"),
            "ms",
            Some(Target::AtMost(1.05)),
        ),
        (
            "first",
            format!("the first planning of {with} in a session"),
            "ms",
            Some(Target::AtMost(1.05)),
        ),
        (
            "insert",
            "INSERT of 20 rows into each, in a new session".to_owned(),
            "ms",
            None,
        ),
        (
            "kB",
            "memory contexts of a session after planning, a partition".to_owned(),
            "kB",
            None,
        ),
    ] {
        let ours = || runs.of("ttl", figure);
        let same = ("same index and constraint, no TTL", runs.of("same", figure));
        bench.compare(&of(&what), unit, ours(), same, target);
        let bare = (BARE.0, runs.of(BARE.1, figure));
        bench.compare(&of(&what), unit, ours(), bare, None);
    }
    session.run("DROP TABLE ttl; DROP TABLE same; DROP TABLE bare");
    workers(context, bench, &server, &mut session, [few, most]);
    drop(session);
    drop_databases(&server, &["b17"]);
}

fn partitioned(session: &mut Session, table: &str, count: u64) {
    session.run(&format!(
        "CREATE TABLE {table} (id bigint PRIMARY KEY, data text) PARTITION BY RANGE (id)"
    ));
    session.run(&format!(
        "DO $$
         BEGIN
             FOR n IN 0..{count} - 1 LOOP
                 EXECUTE format('CREATE TABLE {table}_%s PARTITION OF {table} FOR VALUES FROM (%s) TO (%s)',
                                n, n * 100, n * 100 + 100);
                 IF n % 200 = 0 THEN COMMIT; END IF;
             END LOOP;
         END $$"
    ));
}

/// 20 rows into each partition; others for another `remainder` of 5.
fn insert(table: &str, partitions: u64, remainder: u64) -> String {
    let last = partitions * 100 - 1;
    format!(
        "INSERT INTO {table} (id, data) SELECT i, 'x' FROM generate_series({remainder}, {last}, 5) AS i"
    )
}

fn planning_time(session: &mut Session, explain: &str) -> f64 {
    let lines = session.column(explain);
    let line = lines
        .iter()
        .find_map(|line| line.strip_prefix("Planning Time: "));
    let ms = line.and_then(|rest| rest.trim_end_matches(" ms").parse().ok());
    ms.expect("a planning time")
}

/// How long the workers take for all partitions, and `ttl.stats` in a new session.
fn workers(
    context: &Context,
    bench: &mut Benchmark,
    server: &Server,
    session: &mut Session,
    sizes: [u64; 2],
) {
    let mut points = vec![];
    for size in sizes {
        partitioned(session, "grown", size);
        enable(session, "grown", LIFETIME as i64);
        let runs = context.alternate(3, false, &["grown"], |_| {
            server.restart();
            let mut session = server.connect("b17", "postgres");
            let stats = "SELECT passes FROM ttl.stats";
            let first = timed(&mut session, stats) * 1000.0;
            let before = number(&mut session, stats);
            let begin = Instant::now();
            worker_on(server);
            while number(&mut session, stats) - before < size as f64 {
                assert!(begin.elapsed().as_secs() < 600, "not all were looked at");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            let look = begin.elapsed().as_secs_f64() * 1000.0;
            worker_off(server);
            let per = |ms: f64| ms * 1000.0 / size as f64;
            vec![("stats", per(first)), ("look", per(look))]
        });
        *session = server.connect("b17", "postgres");
        session.run("DROP TABLE grown");
        points.push(runs);
    }
    for (figure, what) in [
        (
            "look",
            "from the start of deletion until all were looked at",
        ),
        ("stats", "SELECT * FROM ttl.stats in a new session"),
    ] {
        let few = format!("{} partitions", show(sizes[0] as f64));
        bench.compare(
            &format!("{} partitions: {what}, by partition", show(sizes[1] as f64)),
            "µs",
            points[1].of("grown", figure),
            (&few, points[0].of("grown", figure)),
            Some(Target::AtMost(1.25)),
        );
    }
}
