//! C6, C7: after a crash or shutdown during deletion the data is right, and deletion resumes by
//! itself.

use std::time::Duration;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, SlowTable, Stop};

/// A server with a slow table that is being deleted, and a table of live rows
/// among expired ones.
fn start() -> Server {
    let mut settings = SlowTable::SETTINGS.to_vec();
    settings.push(("ttl.statement_timeout", "10s"));
    let server = Server::start_sweeping(&settings);
    let database = server.database("app");
    database.connect().run(
        "CREATE TABLE t (id integer PRIMARY KEY, what text); SELECT ttl.enable('t', 3600);
         INSERT INTO t (id, ttl) VALUES (1001, -1), (1002, NULL), (1003, 86400)",
    );
    drop(database);
    server
}

fn in_the_middle<'a>(server: &'a Server) -> (Database<'a>, SlowTable, Session) {
    let database = server.existing_database("app");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    slow.wait_until_begun(&mut disk);
    disk.insert_expired("t", 1, 100);
    (database, slow, disk)
}

/// The data is right, and deletion goes on.
fn goes_on(database: &Database<'_>, slow: SlowTable) {
    let mut session = database.connect();
    let visible = session.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t");
    assert_eq!(visible, "1001 1002 1003");
    assert_eq!(session.value("SELECT count(*) FROM slow"), "1");
    let mut disk = database.disk();
    disk.insert_expired("t", 201, 300);
    disk.wait_for_ids("t", "1001 1002 1003");
    slow.finish(&mut disk);
    // The indexes agree with the table.
    session.run("SET enable_seqscan = off; SET ttl.show_expired = on");
    assert_eq!(
        session.value("SELECT count(*) FROM t WHERE id BETWEEN 0 AND 5000"),
        "3"
    );
}

/// Kill one process; the server ends all others, recovers and goes on.
fn kill_and_recover(server: &Server, pid: i32) {
    server.allow_crash();
    let died = server.log_lines(&["was terminated by signal 9"]).len();
    let ready = server.log_lines(&["ready to accept connections"]).len();
    assert!(server.kill(pid), "process {pid} is gone already");
    server.wait_for_log(&["was terminated by signal 9"], died + 1, PATIENCE);
    server.wait_for_log(&["ready to accept connections"], ready + 1, PATIENCE);
}

#[test]
fn crash_of_a_worker() {
    let server = start();
    let (database, slow, disk) = in_the_middle(&server);
    drop(disk);
    kill_and_recover(&server, database.worker());
    goes_on(&database, slow);
}

#[test]
fn crash_of_the_launcher() {
    let server = start();
    let (database, slow, mut disk) = in_the_middle(&server);
    let launchers = disk.pids("ttl_ext launcher", None);
    drop(disk);
    kill_and_recover(&server, launchers[0]);
    goes_on(&database, slow);
}

#[test]
fn crash_of_a_backend() {
    let server = start();
    let (database, slow, mut disk) = in_the_middle(&server);
    let backend = disk.value("SELECT pg_backend_pid()");
    drop(disk);
    let mut victim = database.connect();
    let pid = victim.value("SELECT pg_backend_pid()");
    assert_ne!(pid, backend);
    kill_and_recover(&server, pid.parse().expect("a process id"));
    goes_on(&database, slow);
}

#[test]
fn crash_of_the_postmaster() {
    let server = start();
    let (database, slow, disk) = in_the_middle(&server);
    drop(disk);
    server.allow_crash();
    server.kill_postmaster();
    server.launch();
    goes_on(&database, slow);
}

/// Both kinds of shutdown during a batch that sleeps in user code for longer than any test waits.
/// They must be quick.
#[test]
fn shutdown_in_the_middle_of_a_batch() {
    let server = start();
    let (database, slow, mut disk) = in_the_middle(&server);
    for how in [Stop::Fast, Stop::Immediate, Stop::Fast] {
        server.reload(&[("ttl.statement_timeout", "10min")]);
        // The second turn from now knows it.
        for _ in 0..2 {
            let turns = "SELECT sub_passes FROM ttl.stats WHERE relation = 'slow'::regclass";
            let before = disk.value(turns);
            disk.wait_until(&format!("SELECT ({turns}) > {before}"), "t", PATIENCE);
        }
        disk.run("UPDATE pace SET seconds = 300");
        disk.wait_until(
            "SELECT count(*) > 0 FROM pg_stat_activity
              WHERE backend_type = 'ttl_ext worker' AND wait_event = 'PgSleep'",
            "t",
            PATIENCE,
        );
        drop(disk);
        let took = server.stop(how);
        assert!(
            took < Duration::from_secs(PATIENCE),
            "{how:?} took {took:?}"
        );
        server.configure(&[("ttl.statement_timeout", "10s")]);
        server.launch();
        disk = database.disk();
        disk.run("UPDATE pace SET seconds = 0.02");
    }
    drop(disk);
    goes_on(&database, slow);
}

/// A fast shutdown while rows are deleted directly, without user code.
#[test]
fn shutdown_in_a_big_backlog() {
    let server = start();
    let database = server.existing_database("app");
    database.connect().insert_expired("t", 10_001, 200_000);
    for how in [Stop::Fast, Stop::Immediate] {
        let took = server.stop(how);
        assert!(
            took < Duration::from_secs(PATIENCE),
            "{how:?} took {took:?}"
        );
        server.launch();
    }
    let mut disk = database.disk();
    disk.wait_for_ids("t", "1001 1002 1003");
}

/// With restart_after_crash off the server stays down until it is started.
#[test]
fn no_restart_after_a_crash() {
    let server = start();
    let (database, slow, disk) = in_the_middle(&server);
    drop(disk);
    server.reload(&[("restart_after_crash", "off")]);
    server.allow_crash();
    assert!(server.kill(database.worker()));
    server.wait_for_log(&["database system is shut down"], 1, PATIENCE);
    ttl_ext_e2e::until("the end of the server", PATIENCE, || {
        (!server.dir().join("data/postmaster.pid").exists()).then_some(())
    });
    server.launch();
    goes_on(&database, slow);
}
