//! Processes that stand still (SIGSTOP): within a minute and a half the table's lag grows and a problem
//! names the cause; both go when the process goes on.

use ttl_ext_e2e::{PATIENCE, Server, Session, SlowTable, until};

/// A minute until a table is neglected, and as long again for a busy machine.
const NOTICED: u64 = 120 + PATIENCE;

const LAGS: &str = "SELECT bool_and(lag > '0 seconds') FROM ttl.stats";
const PROBLEMS: &str = "SELECT array_to_string(array_agg(problems::text), ' ') FROM ttl.tables";

fn expect(session: &mut Session, words: &str) {
    session.wait_until(LAGS, "t", NOTICED);
    let named = format!("SELECT ({PROBLEMS}) LIKE '%{words}%'");
    session.wait_until(&named, "t", NOTICED);
}

fn expect_none(session: &mut Session) {
    session.wait_until(
        "SELECT bool_and(problems = '{}') FROM ttl.tables",
        "t",
        NOTICED,
    );
    session.wait_until(
        "SELECT bool_and(lag = '0 seconds') FROM ttl.stats",
        "t",
        NOTICED,
    );
}

fn create(session: &mut Session) {
    session.run("CREATE TABLE t (id int); SELECT ttl.enable('t', 15); INSERT INTO t VALUES (1)");
}

#[test]
fn a_worker() {
    let server = Server::start_sweeping(&SlowTable::SETTINGS);
    let database = server.database("worker");
    let mut disk = database.disk();
    let slow = SlowTable::create(&database);
    slow.wait_until_begun(&mut disk);
    let pid = disk.pids("ttl_ext worker", Some("worker"))[0];
    assert!(server.stop_process(pid));
    expect(&mut disk, &format!("process {pid} is stopped"));
    server.signal_process(pid, false);
    slow.finish(&mut disk);
    expect_none(&mut disk);
}

/// A worker that is there goes on without the launcher; once it has ended, nobody comes.
#[test]
fn the_launcher() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("t");
    let mut disk = database.disk();
    create(&mut disk);
    let waits = "SELECT next_expiry > now() FROM ttl.tables";
    disk.wait_until(waits, "t", PATIENCE);
    let pid = disk.pids("ttl_ext launcher", None)[0];
    assert!(server.stop_process(pid));
    disk.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker'");
    expect(&mut disk, "no worker has processed the table recently");
    server.signal_process(pid, false);
    disk.wait_until("SELECT count(*) FROM t", "0", PATIENCE);
    expect_none(&mut disk);
}

/// A scheduler that stands still reads no time to live that is new, in no database.
#[test]
fn the_scheduler() {
    let server = Server::start_sweeping(&[]);
    let (database, another) = (server.database("t"), server.database("u"));
    let (mut disk, mut there) = (database.disk(), another.disk());
    disk.run("CREATE TABLE seen (id int); SELECT ttl.enable('seen', 3600)");
    // It stays for two seconds after a change.
    let pid = until("a scheduler", PATIENCE, || {
        disk.run("SELECT ttl.set_default('seen', (3600 + random() * 100)::int)");
        let pid = *disk.pids("ttl_ext scheduler", None).first()?;
        server.stop_process(pid).then_some(pid)
    });
    create(&mut disk);
    create(&mut there);
    for session in [&mut disk, &mut there] {
        let named = format!("SELECT ({PROBLEMS}) LIKE '%the ttl_ext scheduler is stopped%'");
        session.wait_until(&named, "t", NOTICED);
    }
    server.signal_process(pid, false);
    for session in [&mut disk, &mut there] {
        session.wait_until("SELECT count(*) FROM t", "0", PATIENCE);
        expect_none(session);
    }
}
