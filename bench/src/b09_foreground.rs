//! B9: what pgbench (TPC-B, 2 clients) notices of a backlog that is removed from a table
//! in another database of the server, with the extension's defaults: against no backlog,
//! and beside a job of pg_cron that removes it by one DELETE.
//!
//! The figures are of the transactions that end while deletion goes on, from the
//! switch (or the job's start) until the backlog is gone or pgbench's time is over;
//! without backlog, from the same second on. The job begins with a minute of the clock: so
//! one repetition of all three takes a minute or two.

use std::thread::sleep;
use std::time::Duration;

use ttl_ext_e2e::Server;

use crate::clients::initialize;
use crate::context::{Context, Figures};
use crate::cron::Cron;
use crate::fixtures::{
    LIFETIME, copy_database, drop_databases, enable, keep_as_template, number, settle, worker_off,
    worker_on,
};
use crate::machine::now;
use crate::numbers::quantile;
use crate::options::Size;
use crate::results::{Benchmark, Curve, Target};
use crate::transactions::{self, Log};

/// With pgbench itself they keep two processors busy.
const CLIENTS: &str = "2";

/// Seconds of pgbench before deletion begins.
const BEFORE: u64 = 2;

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let size = context.options.size;
    let cron = match Cron::available(context) {
        Ok(()) if size != Size::Full => {
            Err("not in the quick form: it waits for full minutes".to_owned())
        }
        other => other,
    };
    context.stop_server();
    let server = Cron::server(
        context,
        cron.is_ok(),
        &[("synchronous_commit", "on"), ("autovacuum", "on")],
    );
    bench.settings_of("own", &server);
    let backlog = context.options.pick(5_000_000, 500_000);
    // The job needs few seconds, and what nothing disturbs is soon known: with the worker's
    // all three fit into a minute.
    let short = context.options.pick(8, 2) + BEFORE;
    let long = context.options.pick(14, 2) + BEFORE;
    template(&server, backlog);
    drop(server.plain_database("b9"));
    initialize(&server, "b9", context.options.pick(20, 5));

    // In the middle, so that its minutes follow each other also where the order turns.
    let sides = match cron {
        Ok(()) => vec!["off", "cron", "ttl"],
        Err(_) => vec!["off", "ttl"],
    };
    let mut logs: Vec<(String, Log)> = Vec::new();
    let runs = context.alternate(5, false, &sides, |side| {
        let seconds = if side == "ttl" { long } else { short };
        let (figures, log) = measure(&server, side, backlog, seconds);
        logs.push((side.to_owned(), log));
        figures
    });
    let of = |side: &str, figure| runs.of(side, figure);
    let what = "TPC-B while a backlog is removed";
    let rows = crate::numbers::show(backlog as f64);
    let what = format!("{what} ({rows} rows)");
    let tps = format!("{what}, throughput");
    let p99 = format!("{what}, p99");
    let off = "no backlog";
    bench.compare(
        &tps,
        "tps",
        of("ttl", "tps"),
        (off, of("off", "tps")),
        Some(Target::AtLeast(0.95)),
    );
    bench.compare(
        &p99,
        "ms",
        of("ttl", "p99"),
        (off, of("off", "p99")),
        Some(Target::AtMost(1.25)),
    );
    bench.absolute(
        &format!("{what}: rows deleted"),
        "rows/s",
        of("ttl", "rows/s"),
        None,
    );
    match cron {
        Ok(()) => {
            let name = "pg_cron, one DELETE";
            bench.compare(
                &tps,
                "tps",
                of("ttl", "tps"),
                (name, of("cron", "tps")),
                None,
            );
            bench.compare(
                &p99,
                "ms",
                of("ttl", "p99"),
                (name, of("cron", "p99")),
                None,
            );
            bench.compare(
                "rows deleted meanwhile",
                "rows/s",
                of("ttl", "rows/s"),
                (name, of("cron", "rows/s")),
                None,
            );
        }
        Err(why) => bench.unavailable(&tps, "pg_cron, one DELETE", None, &why),
    }
    bench.curves.push(latencies(&logs));
    drop_databases(&server, &["b9_run", "b9_backlog"]);
}

/// A database with nothing but expired rows, gone within the last minute.
fn template(server: &Server, rows: u64) {
    let database = server.database("b9_backlog");
    let mut session = database.connect();
    session.run(&format!(
        "CREATE TABLE backlog (id bigint, data text, _ts timestamptz NOT NULL, ttl integer);
         INSERT INTO backlog SELECT i, md5(i::text), date_trunc('second', now()) - interval '{LIFETIME} s'
                - interval '30 s' + i * 30 / {rows} * interval '1 s', NULL FROM generate_series(1::bigint, {rows}) AS i"
    ));
    enable(&mut session, "backlog", LIFETIME as i64);
    settle(&mut session, "backlog");
    drop(session);
    keep_as_template(server, "b9_backlog");
}

/// One side, once.
fn measure(server: &Server, side: &str, backlog: u64, seconds: u64) -> (Figures, Log) {
    let mut session = match side {
        "off" => server.connect("b9", "postgres"),
        _ => copy_database(server, "b9_backlog", "b9_run"),
    };
    if side == "cron" {
        session.run("SELECT ttl.disable('backlog', revive_expired => true)");
    }
    let mut clients = server.connect("b9", "postgres");
    clients.run("TRUNCATE pgbench_history");
    clients.run("VACUUM pgbench_tellers, pgbench_branches");
    clients.run("CHECKPOINT");
    if side == "cron" {
        // As long before a full minute as pgbench runs without it.
        let ahead = 60.0 - now() % 60.0 - BEFORE as f64;
        sleep(Duration::from_secs_f64(if ahead < 0.5 {
            ahead + 60.0
        } else {
            ahead
        }));
        server.connect("postgres", "postgres").run(
            "TRUNCATE cron.job_run_details;
             SELECT cron.schedule_in_database('bench', '* * * * *',
                 'DELETE FROM backlog WHERE _ts < now() - interval ''86400 s''', 'b9_run')",
        );
    }
    let mut command = server.tool("pgbench", "b9");
    command
        .args([
            "-n",
            "-c",
            CLIENTS,
            "-j",
            "1",
            "-M",
            "prepared",
            "-T",
            &seconds.to_string(),
        ])
        .args(transactions::arguments(server))
        .current_dir(server.dir())
        .stdout(std::process::Stdio::null());
    let mut pgbench = command.spawn().expect("pgbench");
    let started = now();
    sleep(Duration::from_secs(BEFORE));
    let mut from = now();
    if side == "ttl" {
        worker_on(server);
    }
    assert!(pgbench.wait().expect("pgbench").success(), "pgbench failed");
    let ended = now();
    let mut until = ended;
    let mut deleted = 0.0;
    match side {
        "ttl" => {
            let counted = session.rows(
                "SELECT rows_deleted, passes, extract(epoch FROM last_pass_at) FROM ttl.stats
                  WHERE relation = 'backlog'::regclass",
            );
            worker_off(server);
            deleted = counted[0][0].parse().unwrap_or(0.0);
            if deleted >= backlog as f64 && counted[0][1] != "0" {
                until = counted[0][2].parse().unwrap_or(ended).min(ended);
            }
        }
        "cron" => {
            Cron::finished(server);
            let mut session = server.connect("postgres", "postgres");
            let job =
                |what: &str| format!("SELECT extract(epoch FROM {what}) FROM cron.job_run_details");
            from = number(&mut session, &job("start_time")).max(started);
            let end = number(&mut session, &job("end_time"));
            until = end.min(ended);
            // It deletes at an even pace; what it did before pgbench's end is a part.
            deleted = backlog as f64 * ((until - from) / (end - from)).min(1.0);
            session.run("SELECT cron.unschedule('bench')");
        }
        _ => {}
    }
    assert!(
        until > from,
        "{side}: pgbench had ended before deletion began"
    );
    let log = transactions::read(server, from, until);
    let latencies: Vec<f64> = log.iter().map(|(_, ms)| *ms).collect();
    let span = until - from;
    let figures = vec![
        ("tps", log.len() as f64 / span),
        ("p99", quantile(&latencies, 0.99)),
        ("rows/s", deleted / span),
    ];
    (figures, log)
}

/// The share of transactions that took longer: of all repetitions.
fn latencies(logs: &[(String, Log)]) -> Curve {
    let mut lines = Vec::new();
    for (side, name) in [
        ("off", "no backlog"),
        ("ttl", "ttl_ext"),
        ("cron", "pg_cron, one DELETE"),
    ] {
        let all = logs
            .iter()
            .filter(|(of, _)| of == side)
            .flat_map(|(_, log)| log);
        let latencies: Vec<f64> = all.map(|(_, ms)| *ms).collect();
        if latencies.is_empty() {
            continue;
        }
        let points = [
            0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
        ];
        let points = points
            .iter()
            .map(|at| (1.0 / (1.0 - at), quantile(&latencies, *at)));
        lines.push((name.to_owned(), points.collect()));
    }
    Curve {
        plot: "b09-latency".to_owned(),
        title: "TPC-B while a backlog is removed: latency".to_owned(),
        x: "one transaction in … takes longer".to_owned(),
        y: "ms".to_owned(),
        x_log: true,
        lines,
    }
}
