//! B6: COPY of many rows from a file on the server, into a table with and without a
//! primary key; against the same table and indexes without TTL.

use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, number, timed};
use crate::results::{Benchmark, Target};

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(5_000_000, 300_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b6");
    let mut session = database.connect();
    let file = server.dir().join("rows.txt");
    session.run(&format!(
        "COPY (SELECT i, md5(i::text) FROM generate_series(1, {rows}) AS i) TO '{}'",
        file.display()
    ));
    for (case, key, target) in [
        ("without a primary key", "", 0.98),
        ("with a primary key", "PRIMARY KEY", 0.90),
    ] {
        let runs = context.alternate(5, false, &["ttl", "plain"], |side| {
            session.run(&format!(
                "DROP TABLE IF EXISTS target; CREATE TABLE target (id bigint {key}, data text)"
            ));
            if side == "ttl" {
                enable(&mut session, "target", LIFETIME as i64);
            } else {
                columns_by_hand(&mut session, "target", "now()");
            }
            session.run("CHECKPOINT");
            let copy = format!("COPY target (id, data) FROM '{}'", file.display());
            let seconds = timed(&mut session, &copy);
            assert_eq!(
                number(&mut session, "SELECT count(*) FROM target"),
                rows as f64
            );
            vec![("rows/s", rows as f64 / seconds)]
        });
        bench.compare(
            &format!("COPY of {} rows {case}", crate::numbers::show(rows as f64)),
            "rows/s",
            runs.of("ttl", "rows/s"),
            ("same indexes, no TTL", runs.of("plain", "rows/s")),
            Some(Target::AtLeast(target)),
        );
    }
    drop(session);
    std::fs::remove_file(file).expect("the file that COPY reads");
    drop_databases(&server, &["b6"]);
}
