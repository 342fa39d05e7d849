//! B3: SELECT of one row by its primary key, against the table as it was before TTL (*bare*: no
//! columns, no indexes), and against one with the columns and the index that a job by hand
//! needs. The bare one is measured twice (`A/A`), to see what the method is worth.

use crate::clients::{Client, compare, figures, throughput};
use crate::context::Context;
use crate::fixtures::{
    BARE, BY_HAND, CREATED, LIFETIME, PARTITIONED, columns_by_hand, drop_databases, enable,
    partitioned_by_hand, settle,
};
use crate::results::{Benchmark, Target};

const SIDES: [&str; 5] = ["ours", "by_hand", "bare", "twin", "partitioned"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(1_000_000, 200_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b3");
    let mut session = database.connect();
    for table in SIDES {
        if table == "partitioned" {
            partitioned_by_hand(&mut session, 100);
            session.run(&format!(
                "INSERT INTO {table} (id, data, created_at) SELECT i, md5(i::text), {CREATED}
                   FROM generate_series(1, {rows}) AS i"
            ));
            settle(&mut session, table);
            continue;
        }
        session.run(&format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, data text)"
        ));
        match table {
            "ours" => enable(&mut session, table, LIFETIME as i64),
            "by_hand" => columns_by_hand(&mut session, table),
            _ => {}
        }
        session.run(&format!(
            "INSERT INTO {table} (id, data) SELECT i, md5(i::text) FROM generate_series(1, {rows}) AS i"
        ));
        settle(&mut session, table);
    }
    for (protocol, target) in [("prepared", 0.98), ("simple", 0.97)] {
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
        row(&what, "ours", BARE, Some(Target::AtLeast(target)));
        row(&what, "ours", BY_HAND, None);
        row(&what, "ours", PARTITIONED, None);
        row(&format!("A/A: {what}"), "twin", BARE, None);
    }
    drop(session);
    drop_databases(&server, &["b3"]);
}
