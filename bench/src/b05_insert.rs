//! B5: INSERT of one row, prepared, into a table with a primary key; against the table as it was
//! before TTL (*bare*), and against one with columns and index by hand. To see where a difference
//! comes from, also a TTL table without the trigger that frees keys, and one with an index for deletion.

use crate::clients::{Client, compare, figures, throughput};
use crate::context::Context;
use crate::fixtures::{
    BARE, BY_HAND, LIFETIME, PARTITIONED, columns_by_hand, drop_databases, enable, on_disk,
    partitioned_by_hand,
};
use crate::results::{Benchmark, Target};

/// Rows that are there before.
const BEFORE: u64 = 20_000;

const SIDES: [&str; 7] = [
    "ours",
    "by_hand",
    "btree",
    "bare",
    "untouched",
    "twin",
    "partitioned",
];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b5");
    let mut session = database.connect();
    for side in SIDES {
        match side {
            "partitioned" => partitioned_by_hand(&mut session, 100),
            _ => {
                session.run(&format!(
                    "CREATE TABLE {side} (id bigint PRIMARY KEY, data text)"
                ));
            }
        }
        session.run(&format!("CREATE SEQUENCE {side}_ids CACHE 100"));
    }
    enable(&mut session, "ours", LIFETIME as i64);
    enable(&mut session, "untouched", LIFETIME as i64);
    session.run(&format!(
        "SELECT ttl.enable('btree', {LIFETIME}, index => 'btree')"
    ));
    // Refused to all but the scripts of dumps.
    session.run("SET row_security = off; DROP TRIGGER \"~ttl_free_expired_keys\" ON untouched; RESET row_security");
    columns_by_hand(&mut session, "by_hand");
    for (case, expired, sides) in [
        ("", 0, &SIDES[..]),
        (", others expired", BEFORE, &SIDES[..3]),
    ] {
        let runs = context.together(7, sides, |order| {
            for table in order {
                let age = format!(", now() - interval '2 days' * (i <= {expired})::int");
                let (column, age) = match *table {
                    "bare" | "twin" | "partitioned" => ("", ""),
                    _ => (", _ts", age.as_str()),
                };
                session.run(&format!(
                    "TRUNCATE {table};
                     ALTER SEQUENCE {table}_ids RESTART;
                     SET ttl.preserve_ts = on;
                     INSERT INTO {table} (id, data{column}) SELECT -i, md5(i::text){age}
                       FROM generate_series(1, {BEFORE}) AS i;
                     RESET ttl.preserve_ts"
                ));
                session.run(&format!("VACUUM ANALYZE {table}"));
            }
            session.run("CHECKPOINT");
            let outcomes = throughput(order, 750, |table| Client {
                server: &server,
                database: "b5",
                script: format!(
                    "INSERT INTO {table} (id, data) VALUES (nextval('{table}_ids'), md5('new'));\n"
                ),
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
        row(&what, "ours", BY_HAND, Some(Target::AtLeast(0.93)));
        let indexed = format!("{what}, index => 'btree'");
        row(&indexed, "btree", BY_HAND, None);
        if sides.contains(&"bare") {
            row(&what, "ours", BARE, Some(Target::AtLeast(0.88)));
            row(&what, "ours", PARTITIONED, None);
            let untouched = ("TTL without the trigger for keys", "untouched");
            row(&what, "ours", untouched, None);
            row(&indexed, "btree", BARE, None);
            row(&format!("A/A: {what}"), "twin", BARE, None);
        }
    }
    drop(session);
    drop_databases(&server, &["b5"]);
}
