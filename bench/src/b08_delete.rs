//! B8: how fast expired rows go without throttle (`ttl.min_effort = 100`), half of a
//! table that is appended to, the older one, against one DELETE and against a job of pg_cron that deletes 10,000 rows at a
//! time; with DELETE triggers of three kinds, with an old snapshot held open, and with the expired rows
//! scattered over the table. And what that writes
//! to the WAL.
//!
//! Each side of each repetition gets a copy of the same database, files and all, whose
//! pages are not in shared buffers; the baselines' is relieved of its policy. The worker's
//! time is from the switch (`ttl.enabled`, reload) until `ttl.stats` has counted all
//! rows: the launcher's waking up and the worker's start are in it. The job's is what
//! pg_cron itself records, without the wait for its minute: it runs `@reboot`.

use std::time::Instant;

use ttl_ext_e2e::{Server, Session};

use crate::context::{Context, Figures};
use crate::fixtures::{
    LIFETIME, copy_database, drop_databases, keep_as_template, number, on_disk, set, settle, timed,
    wait, worker_off, worker_on,
};
use crate::numbers::show;
use crate::results::{Benchmark, Target};

/// The same expiry for a user's own DELETE.
const EXPIRED: &str = "_ts < now() - interval '86400 s'";

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let cron = crate::cron::Cron::available(context);
    let server = crate::cron::Cron::server(context, cron.is_ok(), &[("synchronous_commit", "on")]);
    set(&server, "ttl.min_effort", "100");
    bench.settings_of("own", &server);
    let many = context.options.pick(10_000_000, 1_000_000);
    let few = many / 5;
    template(&server, "b8_many", many, "i", "btree");
    template(&server, "b8_few", few, "i", "btree");
    // Neither the heap's order nor the key's tells which rows are expired.
    template(
        &server,
        "b8_mixed",
        few,
        &format!("(i * 7919) % {few} + 1"),
        "btree",
    );
    template(&server, "b8_read", few, "i", "none");

    let runs = context.alternate(5, false, &["ttl", "delete"], |side| {
        measure(&server, "b8_many", many / 2, side)
    });
    let what = format!(
        "deletion of {} of {} rows",
        show(many as f64 / 2.0),
        show(many as f64)
    );
    let of = |side: &str| runs.of(side, "rows/s");
    bench.compare(
        &what,
        "rows/s",
        of("ttl"),
        ("one DELETE", of("delete")),
        Some(Target::AtLeast(0.95)),
    );
    let wal = |side: &str| runs.of(side, "WAL/row");
    bench.compare(
        "WAL for each expired row",
        "bytes",
        wal("ttl"),
        ("one DELETE", wal("delete")),
        None,
    );

    few_rows(context, bench, &server, few, cron);
    without_index(context, bench, &server, few);
    drop_databases(
        &server,
        &["b8_run", "b8_many", "b8_few", "b8_mixed", "b8_read"],
    );
}

/// With an old snapshot, with a trigger, scattered, and against pg_cron: of fewer rows, or
/// all of it would take too long.
fn few_rows(
    context: &Context,
    bench: &mut Benchmark,
    server: &Server,
    few: u64,
    cron: Result<(), String>,
) {
    let mut sides = vec![
        "ttl",
        "ttl snapshot",
        "delete snapshot",
        "ttl row trigger",
        "delete row trigger",
        "ttl statement trigger",
        "delete statement trigger",
        "ttl before trigger",
        "delete before trigger",
        "ttl mixed",
        "delete mixed",
    ];
    if cron.is_ok() {
        sides.push("cron");
    }
    let runs = context.alternate(5, false, &sides, |side| {
        let mixed = side.ends_with("mixed");
        let template = if mixed { "b8_mixed" } else { "b8_few" };
        measure(server, template, few / 2, side)
    });
    let of = |side: &str| runs.of(side, "rows/s");
    let what = format!(
        "deletion of {} of {} rows",
        show(few as f64 / 2.0),
        show(few as f64)
    );
    let mut row = |case: &str, ours: &str, name: &str, side: &str, target| {
        let what = format!("{what}, {case}");
        bench.compare(
            &what,
            "rows/s",
            of(ours),
            (name, of(side)),
            Some(Target::AtLeast(target)),
        );
    };
    row(
        "old snapshot open",
        "ttl snapshot",
        "without the snapshot",
        "ttl",
        0.85,
    );
    row(
        "old snapshot open",
        "ttl snapshot",
        "one DELETE, old snapshot open",
        "delete snapshot",
        0.85,
    );
    for (case, kind, target) in [
        ("AFTER DELETE trigger", "row trigger", 0.85),
        (
            "AFTER DELETE trigger for statements",
            "statement trigger",
            0.85,
        ),
        ("BEFORE DELETE trigger", "before trigger", 0.75),
    ] {
        let (ours, theirs) = (format!("ttl {kind}"), format!("delete {kind}"));
        row(case, &ours, "one DELETE, same trigger", &theirs, target);
    }
    row("scattered", "ttl mixed", "one DELETE", "delete mixed", 0.95);
    let name = "pg_cron, batches of 10,000";
    match cron {
        Ok(()) => {
            bench.compare(
                &what,
                "rows/s",
                of("ttl"),
                (name, of("cron")),
                Some(Target::Above(1.0)),
            );
            let wal = |side: &str| runs.of(side, "WAL/row");
            bench.compare(
                "WAL for each expired row",
                "bytes",
                wal("ttl"),
                (name, wal("cron")),
                None,
            );
        }
        Err(why) => bench.unavailable(&what, name, Some(Target::Above(1.0)), &why),
    }
}

/// Of a table without an index, which is read by ranges.
fn without_index(context: &Context, bench: &mut Benchmark, server: &Server, rows: u64) {
    let runs = context.alternate(5, false, &["ttl read", "delete read"], |side| {
        measure(server, "b8_read", rows / 2, side)
    });
    let what = format!(
        "deletion of {} of {} rows, in order, without an index",
        show(rows as f64 / 2.0),
        show(rows as f64)
    );
    bench.compare(
        &what,
        "rows/s",
        runs.of("ttl read", "rows/s"),
        ("one DELETE", runs.of("delete read", "rows/s")),
        Some(Target::AtLeast(0.95)),
    );
}

/// A database with a table whose older half is expired; times are whole seconds, 1,000
/// rows each. `place` is a row's place in time, from 1 to `rows`.
fn template(server: &Server, name: &str, rows: u64, place: &str, index: &str) {
    let database = server.database(name);
    let mut session = database.connect();
    session.run(&format!(
        "CREATE TABLE victim (id bigint, data text, _ts timestamptz NOT NULL, ttl integer);
         INSERT INTO victim
         SELECT i, md5(i::text), date_trunc('second', now()) - interval '1 s' * (({rows} - place) / 1000)
                - CASE WHEN place <= {half} THEN interval '3 days' ELSE interval '1 min' END
           FROM (SELECT i, {place} AS place FROM generate_series(1::bigint, {rows}) AS i) AS numbers;
         ALTER TABLE victim ADD PRIMARY KEY (id);
         CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
         CREATE PROCEDURE purge() LANGUAGE plpgsql AS $$
         DECLARE deleted bigint;
         BEGIN
             LOOP
                 DELETE FROM victim WHERE ctid = ANY (ARRAY(
                     SELECT ctid FROM victim WHERE ttl IS NULL AND {EXPIRED} ORDER BY _ts LIMIT 10000));
                 GET DIAGNOSTICS deleted = ROW_COUNT;
                 COMMIT;
                 EXIT WHEN deleted = 0;
             END LOOP;
         END $$",
        half = rows / 2,
    ));
    session.run(&format!(
        "SELECT ttl.enable('victim', {LIFETIME}, index => '{index}')"
    ));
    settle(&mut session, "victim");
    drop(session);
    keep_as_template(server, name);
}

/// One side, once.
fn measure(server: &Server, template: &str, expired: u64, side: &str) -> Figures {
    let mut session = copy_database(server, template, "b8_run");
    if side.ends_with("trigger") {
        let (when, of) = if side.ends_with("before trigger") {
            ("BEFORE", "FOR EACH ROW")
        } else if side.ends_with("statement trigger") {
            ("AFTER", "REFERENCING OLD TABLE AS gone FOR EACH STATEMENT")
        } else {
            ("AFTER", "FOR EACH ROW")
        };
        session.run(&format!(
            "CREATE TRIGGER nothing {when} DELETE ON victim {of} EXECUTE FUNCTION nothing()"
        ));
    }
    if !side.starts_with("ttl") {
        session.run("SELECT ttl.disable('victim', revive_expired => true)");
    }
    let holder = side.ends_with("snapshot").then(|| {
        let mut holder = server.connect("b8_run", "postgres");
        holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM victim LIMIT 1");
        holder
    });
    let before = wal(&mut session);
    let seconds = if side.starts_with("ttl") {
        let begin = Instant::now();
        worker_on(server);
        let done = format!(
            "SELECT rows_deleted >= {expired} FROM ttl.stats WHERE relation = 'victim'::regclass"
        );
        wait(&mut session, &done, "t", 10, 600);
        begin.elapsed().as_secs_f64()
    } else if side == "cron" {
        drop(session);
        let seconds = crate::cron::Cron::run_once(server, "b8_run", "CALL purge()");
        session = server.connect("b8_run", "postgres");
        seconds
    } else {
        timed(&mut session, &format!("DELETE FROM victim WHERE {EXPIRED}"))
    };
    let written = wal(&mut session) - before;
    if side.starts_with("ttl") {
        worker_off(server);
    }
    drop(holder);
    // The baselines' live rows are as many.
    assert_eq!(
        on_disk(&mut session, "victim"),
        expired,
        "{side}: rows on disk"
    );
    vec![
        ("rows/s", expired as f64 / seconds),
        ("WAL/row", written / expired as f64),
    ]
}

/// Bytes written to the WAL so far.
pub fn wal(session: &mut Session) -> f64 {
    number(
        session,
        "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn",
    )
}
