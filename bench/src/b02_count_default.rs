//! B2: counting the live rows of a table with a default and no override column, against
//! `_ts > now() - interval '…'` written by hand.

use crate::b01_count_override::{count, fill};
use crate::context::Context;
use crate::fixtures::{LIFETIME, settle};
use crate::results::{Benchmark, Target};

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(5_000_000, 500_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b2");
    let mut session = database.connect();
    session.run(&format!(
        "CREATE TABLE ours (id bigint, data text); CREATE TABLE plain (id bigint, data text);
         SELECT ttl.enable('ours', {LIFETIME}, ttl_column => NULL);
         ALTER TABLE plain ADD _ts timestamptz NOT NULL DEFAULT now();
         CREATE INDEX ON plain (_ts)"
    ));
    for table in ["ours", "plain"] {
        fill(&mut session, table, rows, "");
        settle(&mut session, table);
    }
    let sides = [
        ("ttl_ext", "SELECT count(*) FROM ours".to_owned()),
        (
            "by hand",
            format!("SELECT count(*) FROM plain WHERE _ts > now() - interval '{LIFETIME} s'"),
        ),
    ];
    let what = format!(
        "count of {} rows, default only",
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
    drop(session);
    crate::fixtures::drop_databases(&server, &["b2"]);
}
