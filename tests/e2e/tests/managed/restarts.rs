//! A server that is stopped and started again all the time, as in a container: deletion goes on by
//! itself after each start, and keeps to what was decided before it.

use std::time::Duration;

use ttl_ext_e2e::{PATIENCE, Server, Session, SlowTable, Stop, until};

/// What must outlive a restart: where a table is, and until when it is left alone.
const DECIDED: &str = "SELECT relation, default_ttl, paused_until, deletion_waits_until
                         FROM ttl.tables ORDER BY relation::text";

#[test]
fn goes_on_after_each_start() {
    let server = Server::start_sweeping(&[("ttl.change_delay", "1h")]);
    let names = ["one", "two"];
    for name in names {
        let database = server.database(name);
        let mut disk = database.disk();
        disk.run(
            "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
             CREATE TABLE paused (id integer PRIMARY KEY);
             SELECT ttl.enable('paused', 3600), ttl.pause('paused');
             CREATE TABLE changed (id integer PRIMARY KEY); SELECT ttl.enable('changed', 864000)",
        );
        disk.insert_expired("paused", 1, 100);
        disk.insert_expired("changed", 1, 100);
        disk.run("SELECT ttl.set_default('changed', 3600)");
    }
    let decided =
        |server: &Server| names.map(|name| server.existing_database(name).connect().rows(DECIDED));
    let before = decided(&server);
    assert!(before[0].iter().any(|row| row[3] != "∅"), "{before:?}");

    for (round, how) in [Stop::Fast, Stop::Immediate, Stop::Fast].iter().enumerate() {
        // Rows that expire while the server is away.
        server.reload(&[("ttl.enabled", "off")]);
        for name in names {
            let mut disk = server.existing_database(name).disk();
            disk.wait_for_workers(name, 0);
            disk.insert_expired("t", 1, 1000);
        }
        let deleted = |name: &str| {
            let query = "SELECT tup_deleted FROM pg_stat_database WHERE datname";
            server
                .connect("postgres", "postgres")
                .value(&format!("{query} = '{name}'"))
                .parse::<i64>()
                .expect("a count")
        };
        // A crash takes PostgreSQL's own counters along.
        let before_stop = names.map(|name| if *how == Stop::Fast { deleted(name) } else { 0 });
        server.configure(&[("ttl.enabled", "on")]);
        server.stop(*how);
        server.launch();

        // Nobody connects to these databases until it is done.
        for (name, base) in names.into_iter().zip(before_stop) {
            until(&format!("deletion in {name}"), PATIENCE, || {
                (deleted(name) >= base + 1000).then_some(())
            });
        }
        for name in names {
            let mut disk = server.existing_database(name).disk();
            disk.wait_for_none("t");
            // Workers have been at all tables.
            disk.look_again("t");
            let left = (disk.count("paused"), disk.count("changed"));
            assert_eq!(left, (100, 100), "{name} in round {round}");
            disk.wait_until(
                "SELECT backlog FROM ttl.tables WHERE relation = 'changed'::regclass",
                "100",
                PATIENCE,
            );
        }
        assert_eq!(decided(&server), before, "round {round}");
    }
    let mut disk = server.existing_database("one").disk();
    disk.run("SELECT ttl.resume('paused'), ttl.purge('changed')");
    disk.wait_for_none("paused");
    assert_eq!(disk.count("changed"), 0);
}

/// A container is given a few seconds to stop: a batch in the middle is rolled back, not waited for,
/// and what was committed before stays deleted.
#[test]
fn what_was_deleted_stays_deleted() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    let mut left: i32 = 300_000;
    disk.insert_expired("t", 1, left);
    let left_now = |disk: &mut Session| disk.count("t");
    for how in [Stop::Fast, Stop::Immediate, Stop::Fast, Stop::Immediate] {
        let fewer = format!("SELECT count(*) < {left} OR count(*) = 0 FROM t");
        disk.wait_until(&fewer, "t", PATIENCE);
        let seen = left_now(&mut disk);
        // Deletions are committed with synchronous_commit off.
        disk.run("CHECKPOINT");
        drop(disk);
        server.stop(how);
        server.launch();
        disk = database.disk();
        left = i32::try_from(left_now(&mut disk)).expect("a count");
        assert!(i64::from(left) <= seen, "{how:?}: {left} rows after {seen}");
    }
    disk.wait_for_none("t");
}

/// SIGTERM, which `docker stop` sends: the server waits for its clients, and workers are none.
#[test]
fn workers_are_no_clients() {
    // Something is due each second, so that workers do not leave by themselves.
    let server = Server::start_sweeping(&SlowTable::SETTINGS);
    let database = server.database("app");
    let slow = SlowTable::create(&database);
    let mut disk = database.disk();
    slow.wait_until_begun(&mut disk);
    drop(disk);
    let took = server.stop(Stop::Smart);
    println!("a smart shutdown took {took:?}");
    assert!(took < Duration::from_secs(PATIENCE), "{took:?}");
    server.launch();
    slow.finish(&mut database.disk());
}
