//! B20: counting the live rows of a table that expire by a column or an expression, in each form of
//! `docs/expiry-columns.md`, against the same condition written by hand into WHERE,
//! by the same plan.
//!
//! `bench/instructions.sh` counts instructions for the same forms.

use crate::b01_count_override::count;
use crate::context::Context;
use crate::fixtures::settle;
use crate::results::{Benchmark, Target};

/// The columns of a line are described in the file.
const FORMS: &str = include_str!("../expiry-forms.txt");

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(5_000_000, 500_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b20");
    let mut session = database.connect();
    // Of what a row costs: by hand, count(*) would read an index on a plain column alone.
    session.run(
        "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
    );
    let lines = FORMS.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let parts: Vec<&str> = line.split(";;").map(str::trim).collect();
        let [name, columns, values, key, seconds, zone, by_hand] = parts[..] else {
            panic!("seven parts: {line}");
        };
        session.run(&format!(
            "CREATE TABLE ours (id bigint, {columns}); CREATE TABLE plain (id bigint, {columns});"
        ));
        for table in ["ours", "plain"] {
            // One row in ten is expired, on disk.
            session.run(&format!(
                "INSERT INTO {table} SELECT i, {values} FROM generate_series(1, {rows}) AS i, LATERAL
                     (SELECT date_trunc('second', now()) - CASE WHEN i % 10 = 3 THEN interval '10 days' ELSE interval '10 s' END AS at) AS s;
                 CREATE INDEX {table}_key ON {table} ({key})"
            ));
        }
        let zone = if zone.is_empty() {
            String::new()
        } else {
            format!(", time_zone => '{zone}'")
        };
        session.run(&format!(
            "SELECT ttl.expire_index('ours_key', {seconds}{zone})"
        ));
        settle(&mut session, "ours");
        settle(&mut session, "plain");
        let sides = [
            ("ttl_ext", "SELECT count(*) FROM ours".to_owned()),
            (
                "by hand",
                format!("SELECT count(*) FROM plain WHERE {by_hand}"),
            ),
        ];
        let what = format!(
            "count of {} rows, {name}",
            crate::numbers::show(rows as f64)
        );
        count(
            context,
            bench,
            &mut session,
            &sides,
            Target::AtMost(1.0),
            &what,
        );
        session.run("DROP TABLE ours, plain");
    }
    drop(session);
    crate::fixtures::drop_databases(&server, &["b20"]);
}
