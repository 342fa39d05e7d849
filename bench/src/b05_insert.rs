//! B5: INSERT of one row, prepared, into a table with a primary key and the indexes of
//! TTL; against the same table and indexes with `DEFAULT now()` and no TTL. To see where
//! a difference comes from, also a TTL table without the trigger that frees keys.

use crate::clients::{Clients, Length, compare};
use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, on_disk};
use crate::results::{Benchmark, Target};

/// Rows that are there before.
const BEFORE: u64 = 20_000;

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
         CREATE SEQUENCE ids CACHE 100",
    );
    enable(&mut session, "ours", LIFETIME as i64);
    enable(&mut session, "untouched", LIFETIME as i64);
    // Refused to all but the scripts of dumps.
    session.run("SET row_security = off; DROP TRIGGER \"~ttl_free_expired_keys\" ON untouched; RESET row_security");
    columns_by_hand(&mut session, "plain", "now()");
    let cases: [(&str, u64, &[&str]); 2] = [
        ("", 0, &["ours", "plain", "untouched"]),
        (", others expired", BEFORE, &["ours", "plain"]),
    ];
    for (case, expired, sides) in cases {
        let runs = context.alternate(9, true, sides, |table| {
            session.run(&format!(
                "TRUNCATE {table};
                 ALTER SEQUENCE ids RESTART;
                 SET ttl.preserve_ts = on;
                 INSERT INTO {table} (id, data, _ts) SELECT -i, md5(i::text), now() - interval '2 days' * (i <= {expired})::int
                   FROM generate_series(1, {BEFORE}) AS i;
                 RESET ttl.preserve_ts"
            ));
            session.run(&format!("VACUUM ANALYZE {table}"));
            session.run("CHECKPOINT");
            let clients = Clients {
                database: "b5",
                script: format!("INSERT INTO {table} (id, data) VALUES (nextval('ids'), md5('new'));\n"),
                protocol: "prepared",
                length: Length::Seconds(1),
                arguments: &[],
            };
            let done = clients.run(&server);
            assert_eq!(on_disk(&mut session, table), BEFORE + done.transactions);
            done.figures()
        });
        let what = format!("INSERT of one row, prepared{case}");
        let mut row = |name: &str, side: &str, target| {
            compare(bench, &what, &runs, "ours", (name, side), target);
        };
        row(
            "same indexes, `DEFAULT now()`",
            "plain",
            Some(Target::AtLeast(0.97)),
        );
        if sides.contains(&"untouched") {
            row("TTL without the trigger for keys", "untouched", None);
        }
    }
    drop(session);
    drop_databases(&server, &["b5"]);
}
