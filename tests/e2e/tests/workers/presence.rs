//! C7, C9, complaint 8: launcher and workers run without being started by hand, in every database
//! with something to delete, and only there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ttl_ext_e2e::{PATIENCE, Server, SlowTable, SqlState, until};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&SlowTable::SETTINGS))
}

const TABLE: &str =
    "CREATE TABLE t (id integer PRIMARY KEY, what text); SELECT ttl.enable('t', 3600)";

/// More databases than workers, also one created later; a database without the extension gets no
/// worker.
#[test]
fn several_databases() {
    let server = Server::start_sweeping(&[("ttl.max_workers", "2")]);
    let names = ["one", "two", "three", "four", "five"];
    let databases = names.map(|name| server.database(name));
    let bare = server.plain_database("bare");
    for database in &databases {
        let mut session = database.connect();
        session.run(TABLE);
        session.run("INSERT INTO t VALUES (0)");
        session.insert_expired("t", 1, 500);
    }
    for database in &databases {
        database.disk().wait_for_ids("t", "0");
    }
    let late = server.database("late");
    late.connect().run(TABLE);
    late.connect().insert_expired("t", 1, 500);
    late.disk().wait_for_none("t");
    let mut session = bare.connect();
    assert!(session.pids("ttl_ext worker", Some("bare")).is_empty());
    assert_eq!(session.pids("ttl_ext launcher", None).len(), 1);
}

/// One worker for several databases that all have much to do: none starves.
#[test]
fn one_worker_for_all_databases() {
    let mut settings = SlowTable::SETTINGS.to_vec();
    settings.push(("ttl.max_workers", "1"));
    let server = Server::start_sweeping(&settings);
    let databases = ["one", "two", "three"].map(|name| server.database(name));
    let tables = databases.each_ref().map(SlowTable::create);
    for (database, table) in databases.iter().zip(tables) {
        table.wait_until_begun(&mut database.disk());
    }
    for (database, table) in databases.iter().zip(tables) {
        table.finish(&mut database.disk());
    }
}

/// C7: after a restart deletion resumes without any command or connection.
#[test]
fn nothing_to_start_after_a_restart() {
    let server = Server::start(&[]);
    let database = server.database("app");
    database.connect().run(TABLE);
    database.connect().insert_expired("t", 1, 500);
    server.configure(&[("ttl.enabled", "on"), ("ttl.min_effort", "100")]);
    server.restart();
    let mut elsewhere = server.connect("postgres", "postgres");
    let deleted = "SELECT tup_deleted >= 500 FROM pg_stat_database WHERE datname = 'app'";
    elsewhere.wait_until(deleted, "t", PATIENCE);
    assert_eq!(database.disk().count("t"), 0);
}

/// M9: what a worker does shows in pg_stat_activity.
#[test]
fn seen_in_pg_stat_activity() {
    let database = server().database("activity");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    slow.wait_until_begun(&mut disk);
    let launchers = "SELECT count(*), max(datname) FROM pg_stat_activity WHERE backend_type = 'ttl_ext launcher'";
    assert_eq!(disk.rows(launchers), [["1", "∅"]]);
    let worker = "SELECT bool_or(state = 'active' AND application_name = 'ttl_ext worker'
                                 AND query = 'ttl: deleting expired rows of public.slow')
                    FROM pg_stat_activity
                   WHERE backend_type = 'ttl_ext worker' AND datname = 'activity'";
    disk.wait_until(worker, "t", PATIENCE);
    slow.finish(&mut disk);
}

/// A worker leaves a database in which nothing is due. A write, a change of policy or a row's
/// expiry brings one back long before the next routine look.
#[test]
fn idle_databases_have_no_worker() {
    let server = Server::start_sweeping(&[("ttl.naptime", "1h")]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(TABLE);
    disk.run("INSERT INTO t VALUES (0)");
    disk.wait_for_workers("app", 0);

    disk.insert_expired("t", 1, 10);
    disk.wait_for_ids("t", "0");
    disk.wait_for_workers("app", 0);

    // C8: the row with the id 20 is expired under the shorter default only.
    disk.run_preserving("INSERT INTO t (id, _ts) VALUES (20, now() - interval '30 minutes')");
    disk.wait_for_workers("app", 0);
    disk.run("SELECT ttl.set_default('t', 600)");
    disk.wait_for_ids("t", "0");
    disk.wait_for_workers("app", 0);

    // C3: 10 seconds are longer than a worker waits for them.
    disk.run("INSERT INTO t (id, ttl) VALUES (30, 10), (31, 2)");
    disk.wait_for_ids("t", "0");
    disk.wait_for_workers("app", 0);

    // A policy on a table that has old rows already.
    disk.run(
        "CREATE TABLE u (id integer PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now());
         INSERT INTO u VALUES (1, '2020-01-01'), (2, now());
         SELECT ttl.enable('u', 3600)",
    );
    disk.wait_for_ids("u", "2");
}

/// `ttl.enabled` off and on by reload, in the middle of deletion.
#[test]
fn switched_off_and_on() {
    let server = Server::start_sweeping(&SlowTable::SETTINGS);
    let database = server.database("app");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    disk.run(TABLE);
    for _ in 0..3 {
        slow.wait_until_begun(&mut disk);
        server.reload(&[("ttl.enabled", "off")]);
        disk.wait_for_workers("app", 0);
        let before = disk.count("slow");
        disk.insert_expired("t", 1, 10);
        disk.launcher_looks_again();
        disk.wait_for_workers("app", 0);
        assert_eq!((disk.count("t"), disk.count("slow")), (10, before));
        // C6: expired rows are hidden all the same.
        assert_eq!(database.connect().value("SELECT count(*) FROM t"), "0");
        server.reload(&[("ttl.enabled", "on")]);
        disk.wait_for_none("t");
    }
    slow.finish(&mut disk);
}

/// DROP EXTENSION during deletion ends it; after CREATE EXTENSION it resumes, once the owner says so.
#[test]
fn extension_dropped_and_created() {
    let database = server().database("extension");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    for _ in 0..3 {
        slow.wait_until_begun(&mut disk);
        disk.run("DROP EXTENSION ttl_ext CASCADE");
        let before = disk.count("slow");
        disk.launcher_looks_again();
        disk.wait_for_workers("extension", 0);
        assert_eq!(disk.count("slow"), before);
        disk.run("CREATE EXTENSION ttl_ext; SELECT ttl.resume_restored()");
        let fewer = format!("SELECT count(*) < {before} FROM slow");
        disk.wait_until(&fewer, "t", PATIENCE);
    }
    slow.finish(&mut disk);
}

/// No free worker slot: logged once, with a hint, and tried again.
#[test]
fn no_worker_slot_is_free() {
    let server = Server::start_sweeping(&[
        ("max_logical_replication_workers", "0"),
        ("max_worker_processes", "2"),
    ]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker'",
        "0",
        PATIENCE,
    );
    // A parallel worker takes the slot that the launcher has left.
    let force = match server.major() {
        15 => "force_parallel_mode",
        _ => "debug_parallel_query",
    };
    let mut sleeper = database.connect();
    sleeper.run(&format!("SET {force} = on"));
    let awake = Arc::new(AtomicBool::new(false));
    let enough = Arc::clone(&awake);
    let sleeping = std::thread::spawn(move || {
        loop {
            let error = sleeper.error("SELECT pg_sleep(600)");
            if enough.load(Ordering::SeqCst) {
                return error;
            }
        }
    });
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                   WHERE backend_type = 'client backend' AND query LIKE 'SELECT pg_sleep%'";
    // A statement that found no slot sleeps by itself: a worker that looked at the new
    // database may have had it. Then another is begun.
    let who = "SELECT backend_type FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("a parallel worker has the slot", PATIENCE, || {
        match disk.column(who).first().map(String::as_str) {
            Some("parallel worker") => Some(()),
            Some("client backend") => {
                disk.run(cancel);
                None
            }
            _ => None,
        }
    });

    disk.run(TABLE);
    disk.insert_expired("t", 1, 100);
    server.wait_for_log(&["HINT:", "max_worker_processes"], 1, PATIENCE);
    // The launcher tries again with each look.
    disk.launcher_looks_again();
    let hints = server.log_lines(&["HINT:", "max_worker_processes"]);
    assert_eq!(hints.len(), 1, "{hints:?}");
    assert!(!server.log_lines(&["WARNING:"]).is_empty());
    assert_eq!(disk.count("t"), 100);

    awake.store(true, Ordering::SeqCst);
    disk.run(cancel);
    let error = sleeping.join().expect("the session that slept");
    assert_eq!(*error.code(), SqlState::QUERY_CANCELED, "{error:?}");
    disk.wait_for_none("t");
}

/// A server with room for the launcher alone, and then for more.
#[test]
fn too_few_worker_processes() {
    let server = Server::start_sweeping(&[
        ("max_logical_replication_workers", "0"),
        ("max_worker_processes", "1"),
    ]);
    let database = server.database("app");
    database.connect().run(TABLE);
    database.connect().insert_expired("t", 1, 100);
    server.wait_for_log(&["HINT:", "max_worker_processes"], 1, PATIENCE);
    assert_eq!(database.disk().count("t"), 100);
    server.configure(&[("max_worker_processes", "8")]);
    server.restart();
    database.disk().wait_for_none("t");
}

/// Fewer processes than `ttl.max_workers`, and more databases: routine looks at idle databases do
/// not take the turn of one whose owner has used time before.
#[test]
fn fewer_processes_than_databases() {
    let server = Server::start_sweeping(&[
        ("max_logical_replication_workers", "0"),
        // The launcher, and two.
        ("max_worker_processes", "3"),
        ("ttl.max_workers", "8"),
        ("ttl.batch_size", "50"),
        // All are looked at each second.
        ("ttl.naptime", "1s"),
    ]);
    let busy = server.database("busy");
    let slow = SlowTable::create(&busy);
    // Its owner has used some ten seconds.
    let begun = "SELECT count(*) < 2500 FROM public.slow";
    busy.disk().wait_until(begun, "t", 300);
    let idle: Vec<_> = ["one", "two", "three", "four", "five", "six"]
        .map(|name| server.database(name))
        .into_iter()
        .collect();
    for database in &idle {
        database.connect().run(TABLE);
    }
    slow.finish(&mut busy.disk());
    for round in 1..=3 {
        busy.connect()
            .insert_expired("public.slow", round * 1000, 500);
        busy.disk().wait_for_ids("public.slow", "0");
    }
    let said = server.log_lines(&["WARNING:", "no slot for a background worker"]);
    // On a busy machine both slots are taken for a while, and it is true. It was said a hundred times.
    assert!(said.len() <= 30, "{said:?}");
}

/// Launcher and worker come back after pg_terminate_backend; a worker continues after
/// pg_cancel_backend.
#[test]
fn ended_and_back() {
    let server = Server::start_sweeping(&SlowTable::SETTINGS);
    let database = server.database("app");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    for (kind, how) in [
        ("ttl_ext worker", "pg_cancel_backend"),
        ("ttl_ext worker", "pg_terminate_backend"),
        ("ttl_ext launcher", "pg_terminate_backend"),
    ] {
        slow.wait_until_begun(&mut disk);
        let before = disk.count("slow");
        let pid = match kind {
            "ttl_ext worker" => database.worker(),
            _ => disk.pids(kind, None)[0],
        };
        assert_eq!(disk.value(&format!("SELECT {how}({pid})")), "t");
        let fewer = format!("SELECT count(*) < {before} FROM slow");
        disk.wait_until(&fewer, "t", PATIENCE);
        if how == "pg_terminate_backend" {
            let pid = until(&format!("another {kind}"), PATIENCE, || {
                let pids = disk.pids(kind, None);
                pids.into_iter().find(|new| *new != pid)
            });
            assert!(pid > 1);
        }
    }
    // The new launcher finds work that is new.
    disk.run(TABLE);
    disk.insert_expired("t", 1, 10);
    disk.wait_for_none("t");
    slow.finish(&mut disk);
}

/// Beside a client that commits continuously, the launcher looks every 100 ms, not at each commit: otherwise each commit would
/// pay for a signal. While deletion is off, commits are none of its business.
#[test]
fn not_at_each_commit() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut client = database.connect();
    client.run("CREATE TABLE t (id integer); SELECT ttl.enable('t')");
    client.run("SET synchronous_commit = off");
    let launcher = client.pids("ttl_ext launcher", None)[0];
    let mut looks_beside_commits = |every: u64| {
        let (begin, before) = (Instant::now(), waits(launcher));
        let most = || begin.elapsed().as_millis() as u64 / every;
        let mut written = 0;
        // Enough to tell the two apart on a slow machine.
        while written < 20_000 || written < 4 * most() {
            client.run(
                "DO $$ BEGIN
                     FOR i IN 1..500 LOOP INSERT INTO t (id, ttl) VALUES (1, 3600); COMMIT; END LOOP;
                 END $$",
            );
            written += 500;
            assert!(
                begin.elapsed() < Duration::from_secs(2 * PATIENCE),
                "{written} commits"
            );
        }
        // Each look ends with a wait; a few waits are for locks, and for processes that it starts.
        let looks = waits(launcher) - before;
        println!(
            "{looks} waits of the launcher beside {written} commits in {:?}",
            begin.elapsed()
        );
        assert!(
            looks <= most() * 3 / 2 + 100,
            "{looks} waits, {} turns",
            most()
        );
    };
    looks_beside_commits(100);
    server.reload(&[("ttl.enabled", "off")]);
    looks_beside_commits(1000);
}

/// How often a process has waited for something.
fn waits(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.expect("its switches")
        .trim()
        .parse()
        .expect("a number")
}
