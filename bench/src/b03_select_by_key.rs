//! B3: SELECT of one row by its primary key, against the same table, with the same columns
//! and indexes, without TTL. That one is measured twice (`A/A`), to see what the method is
//! worth; and one without the columns and indexes of TTL, to see what those cost.

use crate::clients::{Client, compare, figures, throughput};
use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, settle};
use crate::results::{Benchmark, Target};

const SIDES: [&str; 4] = ["ours", "plain", "twin", "bare"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(1_000_000, 200_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b3");
    let mut session = database.connect();
    for table in SIDES {
        session.run(&format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, data text)"
        ));
        match table {
            "ours" => enable(&mut session, table, LIFETIME as i64),
            "bare" => {}
            _ => columns_by_hand(&mut session, table, "now()"),
        }
        session.run(&format!(
            "INSERT INTO {table} (id, data) SELECT i, md5(i::text) FROM generate_series(1, {rows}) AS i"
        ));
        settle(&mut session, table);
    }
    for protocol in ["prepared", "simple"] {
        let runs = context.together(9, &SIDES, |order| {
            figures(&throughput(order, 500, |table| Client {
                server: &server,
                database: "b3",
                script: format!(
                    "\\set id random(1, {rows})\nSELECT data FROM {table} WHERE id = :id;\n"
                ),
                protocol,
                arguments: &[],
            }))
        });
        let what = format!("SELECT by primary key, {protocol}");
        let mut row = |what: &str, side, baseline, target| {
            compare(bench, what, &runs, side, baseline, target);
        };
        let target = Some(Target::AtLeast(0.98));
        row(&what, "ours", ("without TTL", "plain"), target);
        let bare = ("without TTL, its columns and indexes", "bare");
        row(&what, "ours", bare, None);
        row(&format!("A/A: {what}"), "twin", ("the same", "plain"), None);
    }
    drop(session);
    drop_databases(&server, &["b3"]);
}
