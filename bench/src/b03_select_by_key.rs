//! B3: SELECT of one row by its primary key, against the same table without TTL.

use crate::clients::{Clients, Length, compare};
use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, settle};
use crate::results::{Benchmark, Target};

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(1_000_000, 200_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b3");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE ours (id bigint PRIMARY KEY, data text);
         CREATE TABLE plain (id bigint PRIMARY KEY, data text)",
    );
    enable(&mut session, "ours", LIFETIME as i64);
    columns_by_hand(&mut session, "plain", "now()");
    for table in ["ours", "plain"] {
        session.run(&format!(
            "INSERT INTO {table} (id, data) SELECT i, md5(i::text) FROM generate_series(1, {rows}) AS i"
        ));
        settle(&mut session, table);
    }
    for protocol in ["prepared", "simple"] {
        let runs = context.alternate(13, true, &["ours", "plain"], |table| {
            let clients = Clients {
                database: "b3",
                script: format!(
                    "\\set id random(1, {rows})\nSELECT data FROM {table} WHERE id = :id;\n"
                ),
                protocol,
                length: Length::Seconds(1),
                arguments: &[],
            };
            clients.run(&server).figures()
        });
        compare(
            bench,
            &format!("SELECT by primary key, {protocol}"),
            &runs,
            "ours",
            ("without TTL", "plain"),
            Some(Target::AtLeast(0.98)),
        );
    }
    drop(session);
    drop_databases(&server, &["b3"]);
}
