//! C7: databases are created, dropped, renamed, moved, copied and closed during deletion. Workers
//! leave them for it, and come back.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, SlowTable, SqlState};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let mut settings = SlowTable::SETTINGS.to_vec();
        // One worker per database, so that no test waits for one.
        settings.push(("ttl.max_workers", "16"));
        settings.push(("max_worker_processes", "24"));
        Server::start_sweeping(&settings)
    })
}

/// A database in which rows are being deleted now, and a session elsewhere.
fn in_the_middle(name: &str) -> (Database<'static>, SlowTable, Session) {
    let database = server().database(name);
    let slow = SlowTable::create(&database);
    slow.wait_until_begun(&mut database.disk());
    database.worker();
    (database, slow, server().connect("postgres", "postgres"))
}

fn leave(mut session: Session, database: &str) -> Session {
    // Sessions that the test has dropped may need a moment to be gone.
    let clients = format!(
        "SELECT count(*) FROM pg_stat_activity
          WHERE datname = '{database}' AND backend_type = 'client backend'"
    );
    session.wait_until(&clients, "0", PATIENCE);
    session
}

#[test]
fn dropped() {
    for (name, statement) in [
        ("dropped_1", "DROP DATABASE dropped_1"),
        ("dropped_2", "DROP DATABASE dropped_2 WITH (FORCE)"),
    ] {
        let (_database, _, admin) = in_the_middle(name);
        let mut admin = leave(admin, name);
        admin.run(statement);
        admin.wait_for_workers(name, 0);
    }
    // The others are still served.
    let database = server().database("after_the_drop");
    let slow = SlowTable::create(&database);
    slow.finish(&mut database.disk());
}

/// A database is dropped just as a worker may be starting in it: at many moments, to meet launcher
/// and worker in all states. The pauses wait for nothing.
#[test]
fn created_and_dropped_at_once() {
    let mut admin = server().connect("postgres", "postgres");
    for pause in [0, 0, 0, 5, 20, 50, 100, 200, 500, 1000, 2000] {
        let database = server().database("short_lived");
        let mut session = database.connect();
        session.run("CREATE TABLE t (id integer); SELECT ttl.enable('t', 3600)");
        session.insert_expired("t", 1, 10);
        drop(session);
        admin = leave(admin, "short_lived");
        std::thread::sleep(Duration::from_millis(pause));
        admin.run("DROP DATABASE short_lived");
    }
}

/// A DROP DATABASE that fails because of a session, and one that is rolled back
/// by a cancel, do not end deletion there.
#[test]
fn a_failed_drop_ends_nothing() {
    let (database, slow, mut admin) = in_the_middle("wanted");
    let mut disk = database.disk();
    let before = disk.count("slow");
    let error = admin.error("DROP DATABASE wanted");
    assert_eq!(*error.code(), SqlState::OBJECT_IN_USE, "{error:?}");
    let fewer = format!("SELECT count(*) < {before} FROM slow");
    disk.wait_until(&fewer, "t", PATIENCE);
    slow.finish(&mut disk);
}

#[test]
fn renamed() {
    let (_database, slow, mut admin) = in_the_middle("old_name");
    for (old, new) in [("old_name", "new_name"), ("new_name", "last name")] {
        admin = leave(admin, old);
        admin.run(&format!("ALTER DATABASE \"{old}\" RENAME TO \"{new}\""));
        let database = server().existing_database(new);
        database.worker();
    }
    slow.finish(&mut server().existing_database("last name").disk());
}

/// Both the original and the copy, whose tables have the same OIDs, go on.
#[test]
fn used_as_a_template() {
    let (original, slow, admin) = in_the_middle("original");
    let mut admin = leave(admin, "original");
    admin.run("CREATE DATABASE copy TEMPLATE original");
    // What is copied waits for its owner.
    let mut copy = server().existing_database("copy").disk();
    copy.run("SELECT ttl.resume_restored()");
    slow.finish(&mut copy);
    slow.finish(&mut original.disk());
    admin.run("CREATE DATABASE copy_by_file TEMPLATE original STRATEGY file_copy");
}

/// S6: by the only client session of the template itself.
#[test]
fn used_as_a_template_from_within() {
    for (name, more) in [("within", ""), ("within_by_file", "STRATEGY file_copy")] {
        let (original, slow, admin) = in_the_middle(name);
        leave(admin, name);
        let mut within = original.disk();
        within.run(&format!("CREATE DATABASE of_{name} TEMPLATE {name} {more}"));
        original.worker();
        slow.finish(&mut within);
    }
}

#[test]
fn moved_to_another_tablespace() {
    let (database, slow, admin) = in_the_middle("movable");
    let place = server().dir().join("place");
    std::fs::create_dir(&place).expect("a directory");
    let mut admin = leave(admin, "movable");
    admin.run(&format!(
        "CREATE TABLESPACE place LOCATION '{}'",
        place.display()
    ));
    for tablespace in ["place", "pg_default"] {
        admin = leave(admin, "movable");
        admin.run(&format!(
            "ALTER DATABASE movable SET TABLESPACE {tablespace}"
        ));
        database.worker();
    }
    slow.finish(&mut database.disk());
}

/// No worker in a database that allows no connections; it comes back by itself.
#[test]
fn closed_and_opened() {
    let (database, slow, mut admin) = in_the_middle("closed");
    admin.run("ALTER DATABASE closed ALLOW_CONNECTIONS false");
    admin.wait_for_workers("closed", 0);
    admin.launcher_looks_again();
    assert!(admin.pids("ttl_ext worker", Some("closed")).is_empty());
    admin.run("ALTER DATABASE closed ALLOW_CONNECTIONS true");
    database.worker();
    slow.finish(&mut database.disk());
    // The launcher does not try, as each refusal would be logged.
    let refused = server().log_lines(&["\"closed\" is not currently accepting connections"]);
    assert!(refused.len() <= 1, "{refused:?}");
}

/// Templates are left alone.
#[test]
fn templates_are_skipped() {
    let server = Server::start(&[("ttl.naptime", "1s")]);
    let database = server.database("pattern");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         ALTER DATABASE pattern IS_TEMPLATE true",
    );
    session.insert_expired("t", 1, 10);
    drop(session);
    server.configure(&[("ttl.enabled", "on")]);
    server.restart();
    // Its copy is served, so the launcher has looked at all databases.
    let mut admin = leave(server.connect("postgres", "postgres"), "pattern");
    admin.run("CREATE DATABASE made TEMPLATE pattern");
    let mut made = server.existing_database("made").disk();
    made.run("SELECT ttl.resume_restored()");
    made.wait_for_none("t");
    assert_eq!(database.disk().count("t"), 10);
    assert!(admin.pids("ttl_ext worker", Some("pattern")).is_empty());
    admin.run("ALTER DATABASE pattern IS_TEMPLATE false");
    server.restart();
    database.disk().wait_for_none("t");
}

/// While a session is connected these statements fail as usual; a plain CREATE DATABASE does not
/// disturb deletion elsewhere.
#[test]
fn errors_are_those_of_postgres() {
    let (database, slow, mut admin) = in_the_middle("in_use");
    let mut disk = database.disk();
    for statement in [
        "DROP DATABASE in_use",
        "ALTER DATABASE in_use RENAME TO something",
        "CREATE DATABASE something TEMPLATE in_use",
    ] {
        let error = admin.error(statement);
        assert_eq!(
            *error.code(),
            SqlState::OBJECT_IN_USE,
            "{statement}: {error:?}"
        );
        // Only the test's session counts as a connection, not the workers.
        let detail = error.detail().unwrap_or_default();
        assert!(
            detail.contains("1 other session"),
            "{statement}: {detail:?}"
        );
    }
    admin.run("CREATE DATABASE something");
    admin.run("DROP DATABASE something");
    slow.finish(&mut disk);
}

/// Ends a thread also where the test fails.
struct StopsOnDrop<'a>(&'a AtomicBool);

impl Drop for StopsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Policies that change all the time in one database keep no other one waiting: the scheduler leaves.
#[test]
fn policies_that_change_all_the_time() {
    let busy = server().database("busy_policies");
    let mut changing = busy.connect();
    changing.run("CREATE TABLE x (id int); SELECT ttl.enable('x', 60)");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                changing.run("SELECT ttl.pause('x')");
                changing.run("SELECT ttl.resume('x')");
            }
        });
        let _stops = StopsOnDrop(&stop);
        let other = server().database("other_policies");
        let mut disk = other.disk();
        disk.run("CREATE TABLE t (id int PRIMARY KEY); SELECT ttl.enable('t', 3600)");
        disk.insert_expired("t", 1, 10);
        disk.wait_for_none("t");
    });
}
