//! X5: other writes of many rows: COPY and INSERT … SELECT into a table with a primary key
//! that has expired rows on disk, with other keys or with the very keys; and COPY of a
//! file that gives `_ts`. The baseline's table has the same indexes and rows; where the keys
//! are taken, its expired rows are deleted first, in the time that is measured.

use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, number, timed};
use crate::numbers::show;
use crate::results::Benchmark;

const CASES: [(&str, &str, &str); 6] = [
    ("COPY, others expired", "copy", "others"),
    ("COPY over expired rows", "copy", "over"),
    ("COPY of a file that gives _ts", "copy _ts", ""),
    ("INSERT … SELECT", "insert", ""),
    ("INSERT … SELECT, others expired", "insert", "others"),
    ("INSERT … SELECT over expired rows", "insert", "over"),
];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(300_000, 100_000);
    let others = rows / 20;
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("x5");
    let mut session = database.connect();
    let file = |name: &str| server.dir().join(name).display().to_string();
    let (plain, stamped) = (file("rows.txt"), file("rows_ts.txt"));
    session.run(&format!(
        "CREATE TABLE source AS SELECT i AS id, md5(i::text) AS data FROM generate_series(1::bigint, {rows}) AS i;
         COPY source TO '{plain}';
         COPY (SELECT id, data, date_trunc('second', now()), NULL FROM source) TO '{stamped}'"
    ));
    session.run("VACUUM ANALYZE source");
    for (what, how, before) in CASES {
        let runs = context.alternate(5, false, &["ttl", "plain"], |side| {
            session.run("DROP TABLE IF EXISTS target; CREATE TABLE target (id bigint PRIMARY KEY, data text)");
            if side == "ttl" {
                enable(&mut session, "target", LIFETIME as i64);
            } else {
                columns_by_hand(&mut session, "target", "date_trunc('second', now())");
            }
            let expired = match before {
                "others" => format!("generate_series(-{others}, -1)"),
                "over" => format!("generate_series(1, {rows})"),
                _ => "generate_series(1, 0)".to_owned(),
            };
            session.run(&format!(
                "SET ttl.preserve_ts = on;
                 INSERT INTO target (id, data, _ts) SELECT i, 'old', date_trunc('second', now()) - interval '2 days' FROM {expired} AS i;
                 RESET ttl.preserve_ts"
            ));
            session.run("VACUUM ANALYZE target");
            session.run("CHECKPOINT");
            let mut seconds = 0.0;
            if side == "plain" && before == "over" {
                let delete = format!("DELETE FROM target WHERE _ts < now() - interval '{LIFETIME} s'");
                seconds = timed(&mut session, &delete);
            }
            let statement = match how {
                "copy" => format!("COPY target (id, data) FROM '{plain}'"),
                "copy _ts" => format!("COPY target (id, data, _ts, ttl) FROM '{stamped}'"),
                _ => "INSERT INTO target (id, data) SELECT id, data FROM source".to_owned(),
            };
            seconds += timed(&mut session, &statement);
            let there = number(&mut session, "SELECT count(*) FROM target WHERE id > 0 AND data <> 'old'");
            assert_eq!(there, rows as f64, "{what}, {side}");
            vec![("rows/s", rows as f64 / seconds)]
        });
        bench.compare(
            &format!("{what}, {} rows", show(rows as f64)),
            "rows/s",
            runs.of("ttl", "rows/s"),
            ("same indexes, no TTL", runs.of("plain", "rows/s")),
            None,
        );
    }
    drop(session);
    for name in [plain, stamped] {
        std::fs::remove_file(name).expect("the file that COPY reads");
    }
    drop_databases(&server, &["x5"]);
}
