//! B18: TTL is turned on for a table of 20 million rows that two clients of pgbench read and
//! write by key: how long a client waits at most, and how long it takes until deletion can
//! begin. With `concurrently`; at once, by which the index is built in the transaction; and by
//! hand, with ADD COLUMN and CREATE INDEX CONCURRENTLY.

use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use ttl_ext_e2e::Server;

use crate::context::{Context, Figures};
use crate::fixtures::{
    LIFETIME, copy_database, drop_databases, keep_as_template, settle, wait, worker_off, worker_on,
};
use crate::machine::now;
use crate::numbers::show;
use crate::results::{Benchmark, Target};
use crate::transactions;

/// With pgbench itself they keep two processors busy.
const CLIENTS: &str = "2";
/// pgbench runs so long before.
const BEFORE: Duration = Duration::from_secs(2);

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(20_000_000, 1_000_000);
    context.stop_server();
    let server = context.own_server(&[("synchronous_commit", "on"), ("max_wal_size", "16GB")]);
    bench.settings_of("own", &server);
    template(&server, rows);
    let repetitions = context.options.repetitions(5).min(3);
    let sides = ["concurrently", "at once", "by hand"];
    let runs = Context::in_turn(repetitions, &sides, |side| measure(&server, rows, side));
    let of = |side: &str, figure| runs.of(side, figure);
    let what = format!("turning TTL on for {} rows in use", show(rows as f64));
    let waits = format!("{what}: a client waits at most");
    bench.absolute(
        &waits,
        "ms",
        of("concurrently", "longest"),
        Some(Target::ValueAtMost(200.0)),
    );
    for (side, name) in [
        ("by hand", "CREATE INDEX CONCURRENTLY by hand"),
        ("at once", "without concurrently"),
    ] {
        bench.compare(
            &waits,
            "ms",
            of("concurrently", "longest"),
            (name, of(side, "longest")),
            None,
        );
        bench.compare(
            &format!("{what}: until deletion can begin"),
            "s",
            of("concurrently", "seconds"),
            (name, of(side, "seconds")),
            None,
        );
    }
    bench.compare(
        &format!("{what}: throughput meanwhile"),
        "tps",
        of("concurrently", "tps"),
        ("CREATE INDEX CONCURRENTLY by hand", of("by hand", "tps")),
        None,
    );
    drop_databases(&server, &["b18_run", "b18"]);
}

fn template(server: &Server, rows: u64) {
    let database = server.database("b18");
    let mut session = database.connect();
    session.run(&format!(
        "CREATE TABLE events (id bigint PRIMARY KEY, data text);
         INSERT INTO events SELECT i, md5(i::text) FROM generate_series(1::bigint, {rows}) AS i"
    ));
    settle(&mut session, "events");
    drop(session);
    keep_as_template(server, "b18");
}

/// One side, once.
fn measure(server: &Server, rows: u64, side: &str) -> Figures {
    let mut session = copy_database(server, "b18", "b18_run");
    let script = server.dir().join("b18.sql");
    let mut file = std::fs::File::create(&script).expect("a script");
    write!(
        file,
        "\\set id random(1, {rows})
         SELECT data FROM events WHERE id = :id;
         UPDATE events SET data = md5(data) WHERE id = :id;"
    )
    .expect("a script");
    worker_on(server);
    let mut command = server.tool("pgbench", "b18_run");
    let mut pgbench = command
        .args([
            "-n", "-c", CLIENTS, "-j", "1", "-M", "prepared", "-T", "3600", "-f",
        ])
        .arg(&script)
        .args(transactions::arguments(server))
        .current_dir(server.dir())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("pgbench");
    sleep(BEFORE);
    let from = now();
    match side {
        "concurrently" => {
            session.run(&format!(
                "SELECT ttl.enable('events', {LIFETIME}, concurrently => true)"
            ));
            let ready = "SELECT index_state FROM ttl.tables WHERE relation = 'events'::regclass";
            wait(&mut session, ready, "ready", 50, 3600);
        }
        "at once" => {
            session.run(&format!("SELECT ttl.enable('events', {LIFETIME})"));
        }
        _ => {
            session.run(
                "ALTER TABLE events ADD _ts timestamptz NOT NULL DEFAULT now(), ADD ttl integer",
            );
            session.run("CREATE INDEX CONCURRENTLY ON events (_ts)");
        }
    }
    let seconds = now() - from;
    // What waited for the end has ended by then.
    sleep(Duration::from_millis(500));
    let until = now();
    // Ended this way pgbench writes its log to the end, and says that its clients were aborted.
    session.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgbench'",
    );
    pgbench.wait().expect("pgbench");
    worker_off(server);
    let log = transactions::read(server, from, until);
    let longest = log.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    vec![
        ("longest", longest),
        ("seconds", seconds),
        ("tps", log.len() as f64 / (until - from)),
    ]
}
