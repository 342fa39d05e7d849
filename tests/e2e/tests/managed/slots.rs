//! `max_worker_processes = 8`, as it is by default: what is ours of it.

use ttl_ext_e2e::{Database, PATIENCE, Server, until};

/// The builders of the extension.
const BUILDERS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext index builder'";

/// Where some processes can be started and others cannot, that is logged once.
#[test]
fn a_lack_of_slots_is_logged_once() {
    let server = Server::start_sweeping(&[("max_worker_processes", "3")]);
    let databases = ["one", "two", "three"].map(|name| server.database(name));
    let mut sessions = databases.each_ref().map(Database::connect);
    for session in &mut sessions {
        session.run("CREATE TABLE t (id int); SELECT ttl.enable('t', 1)");
    }
    for id in 1..8 {
        for session in &mut sessions {
            session.run(&format!("INSERT INTO t VALUES ({id})"));
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let log = std::fs::read_to_string(server.dir().join("server.log")).expect("a log");
    let told = log
        .matches("no slot for a background worker is free")
        .count();
    assert!(told <= 1, "{log}");
}

/// Workers and schedulers leave when nothing is due: the launcher and an index builder leave two for
/// a parallel query, beside the launcher of logical replication.
#[test]
fn five_of_eight() {
    let server = Server::start_sweeping(&[("max_worker_processes", "8")]);
    let databases: Vec<Database<'_>> = ["one", "two", "three", "four"]
        .map(|name| server.database(name))
        .into_iter()
        .collect();
    for database in &databases {
        database
            .connect()
            .run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    }
    // An index that is built CONCURRENTLY waits for this snapshot.
    let mut holder = databases[0].connect();
    holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    let mut session = databases[0].connect();
    session.run(
        "CREATE TABLE u (id integer PRIMARY KEY, _ts timestamptz NOT NULL);
         INSERT INTO u SELECT n, now() FROM generate_series(1, 10000) AS n;
         SELECT ttl.enable('u', 3600, index => 'btree', concurrently => true)",
    );
    session.wait_until(BUILDERS, "1", PATIENCE);
    session.run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2",
    );
    until("two parallel workers", PATIENCE, || {
        let plan = session
            .column("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM u");
        let launched = plan.iter().any(|line| line.contains("Workers Launched: 2"));
        launched.then_some(())
    });
    assert_eq!(session.value(BUILDERS), "1");
    holder.run("COMMIT");
    let ready = "SELECT index_state FROM ttl.tables WHERE relation = 'u'::regclass";
    session.wait_until(ready, "ready", PATIENCE);
}
