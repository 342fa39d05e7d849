//! X4: other writes of single rows, by pgbench with prepared statements.
//!
//! - upsert of the key of a live row, at random, against one that sets `_ts` itself;
//! - upsert of the key of an expired row, each once, against one that overwrites that row;
//! - UPDATE of the key, against one that sets `_ts` itself.

use crate::clients::{Client, Length};
use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, number, settle};
use crate::results::Benchmark;

/// As the extension stamps rows.
const NOW: &str = "date_trunc('second', statement_timestamp())";

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(60_000, 40_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("x4");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE ours (id bigint PRIMARY KEY, data text);
         CREATE TABLE by_hand (id bigint PRIMARY KEY, data text);
         CREATE SEQUENCE ids CACHE 100",
    );
    enable(&mut session, "ours", LIFETIME as i64);
    columns_by_hand(&mut session, "by_hand", "now()");
    let cases = [
        ("upsert of a live row's key", "1 h", "random"),
        ("upsert of an expired row's key", "2 days", "ids"),
        ("UPDATE of the key", "1 h", "move"),
    ];
    for (what, age, case) in cases {
        let runs = context.alternate(5, true, &["ours", "by_hand"], |table| {
            session.run(&format!(
                "TRUNCATE {table};
                 ALTER SEQUENCE ids RESTART;
                 SET ttl.preserve_ts = on;
                 INSERT INTO {table} (id, data, _ts) SELECT i, md5(i::text), {NOW} - interval '{age}' FROM generate_series(1, {rows}) AS i;
                 RESET ttl.preserve_ts"
            ));
            settle(&mut session, table);
            let (stamp, whole) = match table {
                "ours" => (String::new(), ""),
                _ => (format!(", _ts = {NOW}"), ", ttl = NULL"),
            };
            let upsert = |id: &str| {
                format!(
                    "INSERT INTO {table} (id, data) VALUES ({id}, md5('new'))
                     ON CONFLICT (id) DO UPDATE SET data = excluded.data{stamp}"
                )
                .replace('\n', " ")
            };
            let script = match case {
                "random" => format!("\\set id random(1, {rows})\n{};\n", upsert(":id")),
                "ids" => format!("{}{whole};\n", upsert("nextval('ids')")),
                _ => format!(
                    "UPDATE {table} SET id = id + {}{stamp} WHERE id = (SELECT nextval('ids'));\n",
                    10 * rows
                ),
            };
            // Each key once, where each can be used once only.
            let length = match case {
                "random" => Length::Milliseconds(1000),
                _ => Length::Transactions(rows / 2),
            };
            let client = Client {
                server: &server,
                database: "x4",
                script,
                protocol: "prepared",
                arguments: &[],
            };
            let done = client.run(length);
            let changed = match case {
                "move" => format!("id > {rows}"),
                _ => "data = md5('new')".to_owned(),
            };
            let changed = number(&mut session, &format!("SELECT count(*) FROM {table} WHERE {changed}"));
            let wrong = case != "random" && changed != done.transactions as f64;
            assert!(!wrong, "{what}, {table}: {changed} rows by {} transactions", done.transactions);
            vec![("tps", done.tps)]
        });
        let by_hand = ("by hand", runs.of("by_hand", "tps"));
        bench.compare(what, "tps", runs.of("ours", "tps"), by_hand, None);
    }
    drop(session);
    drop_databases(&server, &["x4"]);
}
