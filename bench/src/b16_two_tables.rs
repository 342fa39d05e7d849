//! B16: deletion on two tables at once, without throttle, against the same on one of them, and
//! against one worker on both. And how many processors the server uses meanwhile: what one worker
//! does not fill, a second one at the same table could use.
//!
//! Each side of each repetition gets a copy of the same database with both tables; for one of them
//! only, the other is relieved of its policy. The time is from the switch (`ttl.enabled`, reload)
//! until `ttl.stats` has counted all rows; the launcher starts a second worker a second after the
//! first.

use std::time::Instant;

use ttl_ext_e2e::{Server, Session};

use crate::context::{Context, Figures};
use crate::fixtures::{
    LIFETIME, copy_database, drop_databases, enable, keep_as_template, number, on_disk, set,
    settle, wait, worker_off, worker_on,
};
use crate::machine::cpu_seconds;
use crate::numbers::show;
use crate::results::{Benchmark, Target};

const TABLES: [&str; 2] = ["first", "second"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let expired = context.options.pick(5_000_000, 1_000_000);
    let server = context.own_server(&[("synchronous_commit", "on")]);
    set(&server, "ttl.min_effort", "100");
    bench.settings_of("own", &server);
    template(&server, expired);
    let sides = ["two tables", "one table", "one worker"];
    let runs = context.alternate(5, false, &sides, |side| measure(&server, expired, side));
    let of = |side: &str| runs.of(side, "rows/s");
    let what = format!(
        "deletion of {} rows in each of two tables",
        show(expired as f64)
    );
    let mut row = |name: &str, side: &str, target| {
        let baseline = (name, of(side));
        bench.compare(&what, "rows/s", of("two tables"), baseline, target);
    };
    row("one of the tables", "one table", Some(Target::AtLeast(1.5)));
    row("both by one worker", "one worker", None);
    let busy = |side: &str| runs.of(side, "processors");
    bench.absolute(
        "processors busy while one table is deleted from",
        "",
        busy("one table"),
        None,
    );
    bench.absolute(
        "processors busy while two are",
        "",
        busy("two tables"),
        None,
    );
    drop_databases(&server, &["b16_run", "b16"]);
}

/// A database with two tables, in each of which as many rows are expired and a tenth more live.
fn template(server: &Server, expired: u64) {
    let database = server.database("b16");
    let mut session = database.connect();
    let rows = expired + expired / 10;
    for table in TABLES {
        session.run(&format!(
            "CREATE TABLE {table} (id bigint, data text, _ts timestamptz NOT NULL, ttl integer);
             INSERT INTO {table}
             SELECT i, md5(i::text), date_trunc('second', now()) - interval '1 s' * (({rows} - i) / 1000)
                    - CASE WHEN i <= {expired} THEN interval '3 days' ELSE interval '1 min' END
               FROM generate_series(1::bigint, {rows}) AS i;
             ALTER TABLE {table} ADD PRIMARY KEY (id)"
        ));
        enable(&mut session, table, LIFETIME as i64);
        settle(&mut session, table);
    }
    drop(session);
    keep_as_template(server, "b16");
}

/// One side, once.
fn measure(server: &Server, expired: u64, side: &str) -> Figures {
    let mut session = copy_database(server, "b16", "b16_run");
    let tables = if side == "one table" {
        session.run("SELECT ttl.disable('second', revive_expired => true)");
        1
    } else {
        2
    };
    let workers = if side == "one worker" { "1" } else { "DEFAULT" };
    set(server, "ttl.max_workers", workers);
    let all = expired * tables;
    let own = number(&mut session, "SELECT pg_backend_pid()") as i32;
    let before = cpu_seconds(server, own);
    let begin = Instant::now();
    worker_on(server);
    let done = format!("SELECT sum(rows_deleted) >= {all} FROM ttl.stats");
    wait(&mut session, &done, "t", 10, 600);
    let seconds = begin.elapsed().as_secs_f64();
    let busy = (cpu_seconds(server, own) - before) / seconds;
    worker_off(server);
    check(&mut session, expired, tables);
    vec![("rows/s", all as f64 / seconds), ("processors", busy)]
}

/// Nothing but what is expired has gone.
fn check(session: &mut Session, expired: u64, tables: u64) {
    let left: u64 = TABLES.iter().map(|table| on_disk(session, table)).sum();
    let rows = expired + expired / 10;
    assert_eq!(left, 2 * rows - tables * expired, "rows on disk");
}
