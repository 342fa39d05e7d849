//! B21: rows that refer to a table with TTL: each is looked up, and the row that it refers to must not have
//! expired. Against the same tables without TTL. Up to 18 PostgreSQL looks up by a query, which the extension
//! restricts; from 19 on without one (`docs/decisions/0079-foreign-keys-on-19.md`).

use crate::context::Context;
use crate::fixtures::{LIFETIME, drop_databases, timed};
use crate::numbers::show;
use crate::results::{Benchmark, Target};

/// The table that is referred to: by what its rows expire, and what makes it so.
const KINDS: &[(&str, &str)] = &[
    ("that expires by its default", ""),
    (
        "that expires by a TTL index",
        "CREATE INDEX parent_until_idx ON parent (until)",
    ),
];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(1_000_000, 100_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b21");
    let mut session = database.connect();
    for (kind, index) in KINDS {
        let runs = context.alternate(7, false, &["ours", "plain"], |side| {
            session.run(&format!(
                "DROP TABLE IF EXISTS child, parent;
                 CREATE TABLE parent (id bigint PRIMARY KEY, until timestamptz NOT NULL DEFAULT now() + interval '1 day');
                 {index}"
            ));
            if side == "ours" {
                session.run(&match *index {
                    "" => format!("SELECT ttl.enable('parent', {LIFETIME})"),
                    _ => "SELECT ttl.expire_index('parent_until_idx', 0)".to_owned(),
                });
            }
            session.run(&format!(
                "INSERT INTO parent (id) SELECT i FROM generate_series(1, {rows}) AS i;
                 CREATE TABLE child (id bigint, parent_id bigint NOT NULL REFERENCES parent)"
            ));
            session.run("VACUUM ANALYZE parent");
            session.run("CHECKPOINT");
            // In an order that is not that of the key.
            let insert = format!(
                "INSERT INTO child SELECT i, i * 7919 % {rows} + 1 FROM generate_series(1::bigint, {rows}) AS i"
            );
            vec![("ms", timed(&mut session, &insert) * 1000.0)]
        });
        bench.compare(
            &format!(
                "INSERT of {} rows that refer to a table {kind}",
                show(rows as f64)
            ),
            "ms",
            runs.of("ours", "ms"),
            ("no TTL", runs.of("plain", "ms")),
            Some(Target::AtMost(2.0)),
        );
    }
    drop(session);
    drop_databases(&server, &["b21"]);
}
