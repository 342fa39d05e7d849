//! What shards cost, printed as a table: the time to turn TTL on, planning and execution of a query of one
//! shard against a table without TTL, looking for shards' policies, and deletion on all nodes.
//!
//! `TTL_SHARDS` are the numbers of shards a table (`32,128,512`; 4 unless given), `TTL_TABLES` how many tables
//! (10; 2), `TTL_ROWS` how many rows are deleted (10,000,000; 10,000).

use std::time::{Duration, Instant};

use ttl_ext_citus::{Application, Cluster, Server, Session, processor_time};

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    })
}

fn timed(act: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    act();
    begin.elapsed()
}

/// The median of so many runs of a statement, in milliseconds.
fn median(session: &mut Session, sql: &str, runs: usize) -> f64 {
    middle(
        (0..runs)
            .map(|_| timed(|| drop(session.run(sql))))
            .collect(),
    )
}

/// With TTL, and without.
const SIDES: [&str; 2] = ["t0", "plain0"];

/// The one in the middle, in milliseconds.
fn middle(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Medians of two statements that take turns, so that what else the machine does strikes both.
fn medians(session: &mut Session, statements: [String; 2]) -> [f64; 2] {
    let mut times = [vec![], vec![]];
    for round in 0..1020 {
        for (n, sql) in statements.iter().enumerate() {
            let took = timed(|| drop(session.run(sql)));
            if round >= 20 {
                times[n].push(took);
            }
        }
    }
    times.map(middle)
}

/// Tables with and without TTL.
fn create(app: &Application<'_>, shards: usize, tables: usize) -> Session {
    let mut session = app.coordinator();
    session.run(&format!("SET citus.shard_count = {shards}"));
    for table in 0..tables {
        for side in ["t", "plain"] {
            session.run(&format!(
                "CREATE TABLE {side}{table} (id bigint PRIMARY KEY, v text)"
            ));
            session.run(&format!(
                "SELECT create_distributed_table('{side}{table}', 'id')"
            ));
        }
    }
    session
}

#[test]
fn scale_of_shards() {
    let counts = std::env::var("TTL_SHARDS").unwrap_or_else(|_| "4".into());
    let tables = number("TTL_TABLES", 2);
    println!(
        "tables: {tables}, times in ms; one shard's query: median of 1000 in turns, of a new session's first: of 15"
    );
    println!(
        "shards | enable a table | set_default | SELECT of one row: TTL / none | prepared: TTL / none | first in a session: TTL / none | ttl.placements | ttl.problems"
    );
    for count in counts.split(',') {
        let count: usize = count.parse().expect("TTL_SHARDS");
        let cluster = Cluster::start(&[]);
        let app = cluster.application("scale");
        let mut session = create(&app, count, tables);
        let mut enable = Duration::ZERO;
        for table in 0..tables {
            enable += timed(|| {
                session.run(&format!("SELECT ttl.enable('t{table}', 3600)"));
            });
        }
        let changed = timed(|| {
            session.run("SELECT ttl.set_default('t0', 7200)");
        });
        for side in SIDES {
            session.run(&format!(
                "INSERT INTO {side} (id, v) SELECT n, 'x' FROM generate_series(1, 1000) AS n"
            ));
        }
        assert_eq!(app.placements("t0").len(), count);
        for (n, side) in SIDES.into_iter().enumerate() {
            session.run(&format!(
                "PREPARE p{n} (bigint) AS SELECT v FROM {side} WHERE id = $1"
            ));
        }
        let one = medians(
            &mut session,
            SIDES.map(|side| format!("SELECT v FROM {side} WHERE id = 77")),
        );
        let prepared = medians(
            &mut session,
            ["EXECUTE p0 (77)".into(), "EXECUTE p1 (77)".into()],
        );
        let mut firsts = [vec![], vec![]];
        for n in 0..30 {
            let mut fresh = app.coordinator();
            let sql = format!("SELECT v FROM {} WHERE id = 78", SIDES[n % 2]);
            firsts[n % 2].push(timed(|| drop(fresh.run(&sql))));
        }
        let first = firsts.map(middle);
        let placements = median(&mut session, "SELECT count(*) FROM ttl.placements", 3);
        let problems = median(&mut session, "SELECT ttl.problems('t0')", 3);
        println!(
            "{count} | {:.0} | {:.0} | {:.3} / {:.3} | {:.3} / {:.3} | {:.1} / {:.1} | {placements:.0} | {problems:.1}",
            enable.as_secs_f64() * 1e3 / tables as f64,
            changed.as_secs_f64() * 1e3,
            one[0],
            one[1],
            prepared[0],
            prepared[1],
            first[0],
            first[1],
        );
        idle(&app, &cluster, tables);
    }
}

/// What workers do with so many shards of which none has anything to delete: processor time of 10 s.
fn idle(app: &Application<'_>, cluster: &Cluster, tables: usize) {
    cluster.nodes()[1].reload(&[("ttl.naptime", "1s"), ("ttl.enabled", "on")]);
    let mut session = app.node(1);
    session.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker' AND state = 'idle'",
        "1",
        60,
    );
    let pid = session.workers()[0];
    let before = processor_time(pid);
    std::thread::sleep(Duration::from_secs(10)); // what it measures
    if let (Some(before), Some(after)) = (before, processor_time(pid)) {
        println!(
            "  a worker of one node, naptime 1 s, {tables} tables: {} ms of processor time a second",
            (after - before).as_millis() / 10
        );
    } else {
        println!("  the worker has left: nothing was due");
    }
}

/// Fills the table with expired rows, and prints what it takes to delete them.
fn measure_deletion(
    of: &str,
    servers: &[Server],
    session: &mut Session,
    deleted: &str,
    rows: usize,
) {
    let part = rows / 10;
    let filled = timed(|| {
        for n in 0..10 {
            session.run_preserving(&format!(
                "INSERT INTO t (id, v, _ts) SELECT n, 'value ' || n, now() - interval '2 hours'
                   FROM generate_series({} + 1, {}) AS n",
                n * part,
                (n + 1) * part
            ));
        }
    });
    let all = || servers.iter().map(Server::processor_time).sum::<Duration>();
    let before = all();
    let took = timed(|| {
        session.run("SELECT ttl.set_default('t', 3600)");
        session.wait_until(deleted, &(part * 10).to_string(), 3000);
    });
    let spent = (all() - before).as_secs_f64();
    let rows = (part * 10) as f64;
    println!(
        "{of}: {rows} rows written in {:.0} s, deleted in {:.1} s, {:.0} a second; {spent:.1} s of processor time, {:.0} rows for each",
        filled.as_secs_f64(),
        took.as_secs_f64(),
        rows / took.as_secs_f64(),
        rows / spent
    );
}

#[test]
fn scale_of_deletion() {
    let rows = number("TTL_ROWS", 10_000);
    const TABLE: &str = "CREATE TABLE t (id bigint PRIMARY KEY, v text)";
    {
        let server = Server::start_sweeping(&[]);
        let database = server.database("scale");
        let mut session = database.connect();
        session.run(TABLE);
        session.run("SELECT ttl.enable('t', 86400)");
        let deleted = "SELECT coalesce(sum(rows_deleted), 0) FROM ttl.stats";
        let servers = std::slice::from_ref(&server);
        measure_deletion(
            "one server without Citus",
            servers,
            &mut session,
            deleted,
            rows,
        );
        assert_eq!(database.disk().count("t"), 0);
    }
    let cluster = Cluster::start_sweeping(&[]);
    let app = cluster.application("scale");
    let mut session = app.coordinator();
    session.run("SELECT citus_set_node_property(nodename, nodeport, 'shouldhaveshards', true) FROM pg_dist_node");
    session.run(&format!("SET citus.shard_count = 32; {TABLE}"));
    session.run("SELECT create_distributed_table('t', 'id')");
    session.run("SELECT ttl.enable('t', 86400)");
    let deleted =
        "SELECT coalesce(sum(rows_deleted), 0) FROM ttl.placements WHERE relation LIKE '%t'";
    measure_deletion(
        "32 shards on three nodes",
        cluster.nodes(),
        &mut session,
        deleted,
        rows,
    );
    for (placement, count) in app.of_placements("t", "SELECT count(*) FROM {}") {
        assert_eq!(count, [["0"]], "{placement:?}");
    }
}
