//! B1: counting the live rows of a table with a default and an override column, against
//! the same rule written by hand into WHERE.
//!
//! One row in ten has an override of its own, one in ten never expires, and one in ten
//! is expired, on disk. Measured with the server's defaults (parallel workers, JIT) and in one
//! process without JIT.

use ttl_ext_e2e::Session;

use crate::context::Context;
use crate::fixtures::{LIFETIME, enable, number, plan, same_without_ttl, settle, timed};
use crate::results::{Benchmark, Target};

/// Rows numbered from 1, the same on both sides; `ttl` is an expression of `i`.
pub fn fill(session: &mut Session, table: &str, rows: u64, ttl: &str) {
    session.run(&format!(
        "SET ttl.preserve_ts = on;
         INSERT INTO {table} (id, data, _ts{column})
         SELECT i, md5(i::text), date_trunc('second', now()) - CASE WHEN i % 10 = 3 THEN interval '10 days'
                ELSE interval '10 s' END{ttl}
           FROM generate_series(1, {rows}) AS i;
         RESET ttl.preserve_ts",
        column = if ttl.is_empty() { "" } else { ", ttl" },
    ));
}

/// Counts by each of the queries in turn, serially or not; checks that all count the
/// same. The first side is ours.
pub fn count(
    context: &Context,
    bench: &mut Benchmark,
    session: &mut Session,
    sides: &[(&str, String)],
    target: Target,
    what: &str,
) {
    let ways = [
        ("", "RESET max_parallel_workers_per_gather; RESET jit"),
        (
            ", one process, no JIT",
            "SET max_parallel_workers_per_gather = 0; SET jit = off",
        ),
    ];
    let names: Vec<&str> = sides.iter().map(|(name, _)| *name).collect();
    let query = |side: &str| {
        &sides
            .iter()
            .find(|(name, _)| *name == side)
            .expect("a side")
            .1
    };
    for (way, settings) in ways {
        session.run(settings);
        let expected = number(session, query(names[0]));
        for name in &names {
            assert_eq!(
                number(session, query(name)),
                expected,
                "{name} counts otherwise"
            );
            bench.note(format!("{name}{way}:\n{}", plan(session, query(name))));
        }
        let runs = context.alternate(7, true, &names, |side| {
            vec![("ms", timed(session, query(side)) * 1000.0)]
        });
        for name in &names[1..] {
            bench.compare(
                &format!("{what}{way}"),
                "ms",
                runs.of(names[0], "ms"),
                (name, runs.of(name, "ms")),
                Some(target),
            );
        }
    }
    session.run("RESET max_parallel_workers_per_gather; RESET jit");
}

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(5_000_000, 500_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b1");
    let mut session = database.connect();
    session
        .run("CREATE TABLE ours (id bigint, data text); CREATE TABLE plain (id bigint, data text)");
    enable(&mut session, "ours", LIFETIME as i64);
    same_without_ttl(&mut session, "plain");
    let ttl = format!(
        ", CASE i % 10 WHEN 1 THEN {} WHEN 2 THEN -1 END",
        2 * LIFETIME
    );
    for table in ["ours", "plain"] {
        fill(&mut session, table, rows, &ttl);
        settle(&mut session, table);
    }
    let sides = [
        ("ttl_ext", "SELECT count(*) FROM ours".to_owned()),
        (
            "CASE by hand",
            format!(
                "SELECT count(*) FROM plain WHERE CASE WHEN ttl IS NULL THEN _ts + interval '{LIFETIME} s' > now() \
                 WHEN ttl = -1 THEN true ELSE _ts + ttl * interval '1 s' > now() END"
            ),
        ),
        (
            "COALESCE by hand",
            format!(
                "SELECT count(*) FROM plain WHERE COALESCE(ttl, {LIFETIME}) = -1 \
                 OR _ts + COALESCE(ttl, {LIFETIME}) * interval '1 s' > now()"
            ),
        ),
    ];
    let what = format!(
        "count of {} rows, default and override",
        crate::numbers::show(rows as f64)
    );
    count(
        context,
        bench,
        &mut session,
        &sides,
        Target::AtMost(0.70),
        &what,
    );
    floor(context, bench, &mut session, &what);
    drop(session);
    crate::fixtures::drop_databases(&server, &["b1"]);
}

/// Against what no condition can be faster than: none at all, and the cheapest that reads the last
/// of the columns, for which PostgreSQL has to take each row apart.
fn floor(context: &Context, bench: &mut Benchmark, session: &mut Session, what: &str) {
    session.run("SET max_parallel_workers_per_gather = 0; SET jit = off");
    let sides = [
        ("ours", "SELECT count(*) FROM ours"),
        ("none", "SELECT count(*) FROM plain"),
        (
            "cheapest",
            "SELECT count(*) FROM plain WHERE ttl IS DISTINCT FROM 7",
        ),
    ];
    let runs = context.alternate(7, true, &sides.map(|(name, _)| name), |side| {
        let query = sides.iter().find(|(name, _)| *name == side);
        let (_, query) = query.expect("a side");
        vec![("ms", timed(session, query) * 1000.0)]
    });
    for (side, name, target) in [
        ("none", "no condition at all", Some(Target::AtMost(1.45))),
        (
            "cheapest",
            "the cheapest condition on its last column",
            None,
        ),
    ] {
        bench.compare(
            &format!("{what}, one process, no JIT"),
            "ms",
            runs.of("ours", "ms"),
            (name, runs.of(side, "ms")),
            target,
        );
    }
}
