//! B5: INSERT of one row, prepared, into a table with a primary key and the indexes of
//! TTL; against the same table and indexes with `DEFAULT now()` and no TTL. To see where
//! a difference comes from, also a TTL table without the trigger that frees keys.

use crate::clients::{Client, compare, figures, throughput};
use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, on_disk};
use crate::results::{Benchmark, Target};

/// Rows that are there before.
const BEFORE: u64 = 20_000;

const SIDES: [&str; 4] = ["ours", "plain", "untouched", "twin"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b5");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE ours (id bigint PRIMARY KEY, data text);
         CREATE TABLE untouched (id bigint PRIMARY KEY, data text);
         CREATE TABLE plain (id bigint PRIMARY KEY, data text);
         CREATE TABLE twin (id bigint PRIMARY KEY, data text)",
    );
    enable(&mut session, "ours", LIFETIME as i64);
    enable(&mut session, "untouched", LIFETIME as i64);
    // Refused to all but the scripts of dumps.
    session.run("SET row_security = off; DROP TRIGGER \"~ttl_free_expired_keys\" ON untouched; RESET row_security");
    for side in ["plain", "twin"] {
        columns_by_hand(&mut session, side, "now()");
    }
    for side in SIDES {
        session.run(&format!("CREATE SEQUENCE {side}_ids CACHE 100"));
    }
    for (case, expired, sides) in [
        ("", 0, &SIDES[..]),
        (", others expired", BEFORE, &SIDES[..2]),
    ] {
        let runs = context.together(7, sides, |order| {
            for table in order {
                session.run(&format!(
                    "TRUNCATE {table};
                     ALTER SEQUENCE {table}_ids RESTART;
                     SET ttl.preserve_ts = on;
                     INSERT INTO {table} (id, data, _ts) SELECT -i, md5(i::text), now() - interval '2 days' * (i <= {expired})::int
                       FROM generate_series(1, {BEFORE}) AS i;
                     RESET ttl.preserve_ts"
                ));
                session.run(&format!("VACUUM ANALYZE {table}"));
            }
            session.run("CHECKPOINT");
            let outcomes = throughput(order, 750, |table| Client {
                server: &server,
                database: "b5",
                script: format!("INSERT INTO {table} (id, data) VALUES (nextval('{table}_ids'), md5('new'));\n"),
                protocol: "prepared",
                arguments: &[],
            });
            for (table, done) in order.iter().zip(&outcomes) {
                assert_eq!(on_disk(&mut session, table), BEFORE + done.transactions);
            }
            figures(&outcomes)
        });
        let what = format!("INSERT of one row, prepared{case}");
        let mut row = |what: &str, side: &str, baseline, target| {
            compare(bench, what, &runs, side, baseline, target);
        };
        let by_hand = ("same indexes, `DEFAULT now()`", "plain");
        row(&what, "ours", by_hand, Some(Target::AtLeast(0.97)));
        if sides.contains(&"untouched") {
            let untouched = ("TTL without the trigger for keys", "untouched");
            row(&what, "ours", untouched, None);
            row(&format!("A/A: {what}"), "twin", ("the same", "plain"), None);
        }
    }
    drop(session);
    drop_databases(&server, &["b5"]);
}
