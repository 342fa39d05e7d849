//! B13: planning time of a join of six tables, all with TTL, against the same without.

use crate::context::Context;
use crate::fixtures::{LIFETIME, drop_databases, enable, same_without_ttl, settle};
use crate::numbers::median;
use crate::results::{Benchmark, Target};

const TABLES: usize = 6;

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let server = context.server();
    bench.settings_of("shared", &server);
    let times = context.options.pick(200, 60);
    let database = server.database("b13");
    let mut session = database.connect();
    for side in ["ttl", "plain"] {
        for n in 1..=TABLES {
            let table = format!("{side}_{n}");
            session.run(&format!(
                "CREATE TABLE {table} (id bigint PRIMARY KEY, other bigint, data text)"
            ));
            if side == "ttl" {
                enable(&mut session, &table, LIFETIME as i64);
            } else {
                same_without_ttl(&mut session, &table);
            }
            session.run(&format!(
                "INSERT INTO {table} (id, other, data) SELECT i, (i * 7) % 10000, md5(i::text) FROM generate_series(1, 10000) AS i"
            ));
            settle(&mut session, &table);
        }
    }
    let join = |side: &str| {
        let joins =
            (2..=TABLES).map(|n| format!(" JOIN {side}_{n} AS t{n} ON t{n}.id = t{}.other", n - 1));
        format!(
            "SELECT t1.data, t6.data FROM {side}_1 AS t1{} WHERE t1.id = 42",
            joins.collect::<String>()
        )
    };
    for side in ["ttl", "plain"] {
        bench.note(crate::fixtures::plan(&mut session, &join(side)));
    }
    let runs = context.alternate(9, true, &["ttl", "plain"], |side| {
        let explain = format!("EXPLAIN (SUMMARY ON) {}", join(side));
        let planned = (0..times).map(|_| {
            let lines = session.column(&explain);
            let line = lines
                .iter()
                .find_map(|line| line.strip_prefix("Planning Time: "));
            let ms = line.and_then(|rest| rest.trim_end_matches(" ms").parse::<f64>().ok());
            ms.unwrap_or_else(|| panic!("no planning time in {lines:?}"))
        });
        vec![("ms", median(&planned.collect::<Vec<_>>()))]
    });
    bench.compare(
        "planning a join of 6 tables",
        "ms",
        runs.of("ttl", "ms"),
        ("same indexes, no TTL", runs.of("plain", "ms")),
        Some(Target::AtMost(1.05)),
    );
    drop(session);
    drop_databases(&server, &["b13"]);
}
