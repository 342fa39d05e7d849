//! B12: ten daily partitions expire as a whole: dropped by the extension
//! (`drop_partitions`), deleted row by row, detached and dropped by hand in one
//! transaction, and dropped by pg_partman's maintenance.
//!
//! The worker is awake and has nothing to do when the default is lowered, by which all
//! rows of the ten expire; the time is from that commit until the partitions, or their
//! rows, are gone. The others' are those of their statements alone, without the wait for
//! anybody's turn. How long one by hand takes is what the file system needs to give the
//! disk back, which row by row does not do.

use std::time::Instant;

use ttl_ext_e2e::Server;

use crate::context::{Context, Figures};
use crate::fixtures::{
    copy_database, drop_databases, keep_as_template, number, on_disk, set, settle, timed, wait,
    worker_off, worker_on,
};
use crate::results::{Benchmark, Target};

/// Expired partitions.
const EXPIRED: u64 = 10;

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(5_000_000, 500_000);
    let server = context.server();
    set(&server, "ttl.min_effort", "100");
    bench.settings_of("shared", &server);
    template(&server, rows);
    let partman = partman_template(&server, rows);
    let mut sides = vec!["drop", "rows", "hand"];
    if partman.is_ok() {
        sides.push("partman");
    }
    let runs = context.alternate(5, false, &sides, |side| measure(&server, rows, side));
    let of = |side: &str| runs.of(side, "ms");
    // Faster: the other's time by ours.
    let what = format!(
        "expiry of {EXPIRED} partitions, {} rows: time",
        crate::numbers::show(rows as f64)
    );
    bench.compare(
        &what,
        "ms",
        of("drop"),
        ("row by row", of("rows")),
        Some(Target::AtMost(0.01)),
    );
    let free = runs.of("rows", "ms until free");
    bench.compare(
        &what,
        "ms",
        of("drop"),
        ("row by row, and VACUUM", free),
        None,
    );
    let name = "DETACH and DROP by hand, one transaction";
    bench.compare(&what, "ms", of("drop"), (name, of("hand")), None);
    match partman {
        Ok(()) => bench.compare(&what, "ms", of("drop"), ("pg_partman", of("partman")), None),
        Err(why) => bench.unavailable(&what, "pg_partman", None, &why),
    }
    set(&server, "ttl.min_effort", "DEFAULT");
    drop_databases(&server, &["b12_run", "b12", "b12_partman"]);
}

/// Rows of the days from twelve to three days ago; and 1,000 of yesterday, which live.
fn fill(rows: u64) -> String {
    format!(
        "INSERT INTO parts SELECT i, md5(i::text), current_date - 12 + interval '1 day' * ((i - 1) * {EXPIRED} / {rows}) + interval '1 h'
           FROM generate_series(1::bigint, {rows}) AS i;
         INSERT INTO parts SELECT i, md5(i::text), current_date - interval '1 h' FROM generate_series(1, 1000) AS i"
    )
}

const TABLE: &str =
    "CREATE TABLE parts (id bigint, data text, _ts timestamptz NOT NULL) PARTITION BY RANGE (_ts);
    CREATE INDEX ON parts (_ts)";

fn template(server: &Server, rows: u64) {
    let database = server.database("b12");
    let mut session = database.connect();
    session.run(TABLE);
    for day in 0..=14 {
        session.run(&format!(
            "DO $$ BEGIN EXECUTE format('CREATE TABLE parts_{day} PARTITION OF parts FOR VALUES FROM (%L) TO (%L)',
                 current_date - 12 + {day}, current_date - 11 + {day}); END $$"
        ));
    }
    session.run(&fill(rows));
    session
        .run("SELECT ttl.enable('parts', 1000000000, ttl_column => NULL, drop_partitions => true)");
    settle(&mut session, "parts");
    drop(session);
    keep_as_template(server, "b12");
}

/// The same by pg_partman, if it is there.
fn partman_template(server: &Server, rows: u64) -> Result<(), String> {
    let database = server.plain_database("b12_partman");
    let mut session = database.connect();
    let there =
        session.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_partman'");
    if there == "0" {
        return Err("pg_partman is not installed in this server".to_owned());
    }
    session.run("CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman");
    session.run(TABLE);
    session.run(
        "SELECT partman.create_parent('public.parts', '_ts', 'native', 'daily',
             p_premake := 2, p_start_partition := (current_date - 12)::text);
         UPDATE partman.part_config SET retention = '2 days', retention_keep_table = false",
    );
    session.run(&fill(rows));
    settle(&mut session, "parts");
    drop(session);
    keep_as_template(server, "b12_partman");
    Ok(())
}

fn measure(server: &Server, rows: u64, side: &str) -> Figures {
    if side == "partman" {
        let mut session = copy_database(server, "b12_partman", "b12_run");
        let before = partitions(&mut session);
        let sql = "SELECT partman.run_maintenance('public.parts', p_jobmon := false)";
        let seconds = timed(&mut session, sql);
        assert_eq!(
            before - partitions(&mut session),
            EXPIRED as f64,
            "partitions dropped"
        );
        assert_eq!(number(&mut session, "SELECT count(*) FROM parts"), 1000.0);
        return vec![("ms", seconds * 1000.0)];
    }
    let mut session = copy_database(server, "b12", "b12_run");
    if side == "hand" {
        let parts = (0..EXPIRED).map(|n| format!("parts_{n}"));
        let drop = |part| format!("ALTER TABLE parts DETACH PARTITION {part}; DROP TABLE {part};");
        let drops: String = parts.map(drop).collect();
        let seconds = timed(&mut session, &format!("BEGIN; {drops} COMMIT"));
        assert_eq!(on_disk(&mut session, "parts"), 1000, "{side}: rows on disk");
        return vec![("ms", seconds * 1000.0)];
    }
    let drops = side == "drop";
    session.run(&format!(
        "SELECT ttl.enable('parts', 1000000000, ttl_column => NULL, drop_partitions => {drops})"
    ));
    let before = partitions(&mut session);
    worker_on(server);
    let stats =
        |what: &str| format!("SELECT {what} FROM ttl.stats WHERE relation = 'parts'::regclass");
    wait(&mut session, &stats("passes > 0"), "t", 20, 60);
    // A table is looked at once a second at most: let that second pass.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let begin = Instant::now();
    session.run("SELECT ttl.set_default('parts', 172800)");
    let done = if drops {
        format!(
            "SELECT count(*) = {} FROM pg_catalog.pg_inherits WHERE inhparent = 'parts'::regclass",
            before - EXPIRED as f64
        )
    } else {
        stats(&format!("rows_deleted >= {rows}"))
    };
    wait(&mut session, &done, "t", 1, 600);
    let seconds = begin.elapsed().as_secs_f64();
    worker_off(server);
    assert_eq!(on_disk(&mut session, "parts"), 1000, "{side}: rows on disk");
    // Only then is the space of rows free for others.
    let vacuum = if drops {
        0.0
    } else {
        timed(&mut session, "VACUUM parts")
    };
    vec![
        ("ms", seconds * 1000.0),
        ("ms until free", (seconds + vacuum) * 1000.0),
    ]
}

fn partitions(session: &mut ttl_ext_e2e::Session) -> f64 {
    let sql = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'parts'::regclass";
    number(session, sql)
}
