//! C7: a session that writes rows which expire soon wakes the workers. Routine looks are an hour
//! apart here, so a missed wake-up leaves rows on disk.

use std::thread::sleep;
use std::time::{Duration, Instant};

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, Stop, catch_up};

const SELDOM: [(&str, &str); 4] = [
    ("ttl.naptime", "1h"),
    ("max_prepared_transactions", "20"),
    ("max_connections", "40"),
    ("wal_level", "logical"),
];

/// A table whose rows live for a second; its first row is already deleted.
fn table_at_rest(database: &Database<'_>, name: &str) -> Session {
    let mut disk = database.disk();
    disk.run(&format!(
        "CREATE TABLE {name} (id integer PRIMARY KEY); SELECT ttl.enable('{name}', 1);
         INSERT INTO {name} VALUES (0)"
    ));
    is_emptied(&mut disk, name);
    disk
}

#[track_caller]
fn is_emptied(disk: &mut Session, table: &str) {
    disk.wait_until(&format!("SELECT count(*) FROM {table}"), "0", PATIENCE);
}

/// Rows of a prepared transaction count when any session commits it.
#[test]
fn prepared_transactions() {
    let server = Server::start_sweeping(&SELDOM);
    let database = server.database("d");
    let mut disk = table_at_rest(&database, "t");
    let mut other = database.connect();
    for n in 0..3 {
        disk.run(&format!(
            "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'it''s {n}'"
        ));
        let mut ends = if n == 0 {
            database.connect()
        } else {
            database.disk()
        };
        if n == 1 {
            ends.run(&format!("ROLLBACK PREPARED 'it''s {n}'"));
            assert_eq!(disk.count("t"), 0);
            continue;
        }
        ends.run(&format!("COMMIT PREPARED 'it''s {n}'"));
        is_emptied(&mut disk, "t");
    }
    // With a policy that comes with it.
    disk.run(
        "BEGIN; CREATE TABLE young (id integer); SELECT ttl.enable('young', 1);
         INSERT INTO young VALUES (1); PREPARE TRANSACTION 'policy'",
    );
    other.run("COMMIT PREPARED 'policy'");
    is_emptied(&mut disk, "young");
}

/// Nor does a restart between PREPARE and COMMIT PREPARED make them late, a crash, or a promotion.
#[test]
fn prepared_before_a_restart() {
    let server = Server::start_sweeping(&SELDOM);
    let database = server.database("d");
    drop(table_at_rest(&database, "t"));
    for (round, how) in [Stop::Fast, Stop::Immediate].into_iter().enumerate() {
        let mut disk = database.disk();
        disk.run(&format!(
            "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'rows';
             BEGIN; CREATE TABLE young{round} (id integer); SELECT ttl.enable('young{round}', 1);
             INSERT INTO young{round} VALUES (1); PREPARE TRANSACTION 'policy'"
        ));
        drop(disk);
        server.stop(how);
        server.launch();
        commit_late(
            &server,
            &["rows", "policy"],
            &["t", &format!("young{round}")],
        );
    }
    // On a former standby.
    let standby = server.start_standby(&SELDOM);
    let (mut disk, there) = (database.disk(), standby.existing_database("d"));
    disk.run("BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'rows'");
    catch_up(&mut disk, &mut there.connect());
    server.stop(Stop::Immediate);
    standby.promote();
    commit_late(&standby, &["rows"], &["t"]);
}

/// Commits what is prepared when workers have looked at everything and left.
fn commit_late(server: &Server, identifiers: &[&str], emptied: &[&str]) {
    let database = server.existing_database("d");
    let mut disk = database.disk();
    disk.run("INSERT INTO t VALUES (0)");
    is_emptied(&mut disk, "t");
    disk.wait_for_workers("d", 0);
    for identifier in identifiers {
        disk.run(&format!("COMMIT PREPARED '{identifier}'"));
    }
    for table in emptied {
        is_emptied(&mut disk, table);
    }
}

/// What a subscription applies.
#[test]
fn logical_replication() {
    let publisher = Server::start(&SELDOM);
    let source = publisher.plain_database("app");
    let mut writer = source.connect();
    let columns = "(id integer PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now(), ttl integer)";
    writer.run(&format!(
        "CREATE TABLE t {columns}; CREATE PUBLICATION p FOR TABLE t"
    ));
    let subscriber = Server::start_sweeping(&SELDOM);
    let target = subscriber.database("app");
    let mut disk = target.disk();
    disk.run(&format!(
        "CREATE TABLE t {columns}; SELECT ttl.enable('t', 1)"
    ));
    disk.run(&format!(
        "CREATE SUBSCRIPTION s CONNECTION '{}' PUBLICATION p",
        publisher.conninfo("app")
    ));
    disk.wait_until(
        "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate = 'r'",
        "1",
        PATIENCE,
    );
    for rows in ["(1)", "(2), (3)"] {
        writer.run(&format!("INSERT INTO t VALUES {rows}"));
        let lsn = writer.value("SELECT pg_current_wal_lsn()");
        let applied = format!(
            "SELECT latest_end_lsn >= '{lsn}' FROM pg_stat_subscription WHERE relid IS NULL"
        );
        disk.wait_until(&applied, "t", PATIENCE);
        is_emptied(&mut disk, "t");
    }
    // By an UPDATE, too.
    writer.run("INSERT INTO t (id, ttl) VALUES (4, -1)");
    disk.wait_until("SELECT count(*) FROM t", "1", PATIENCE);
    writer.run("UPDATE t SET ttl = 1");
    is_emptied(&mut disk, "t");
    disk.run("DROP SUBSCRIPTION s");
}

/// Many clients create tables, fill them with expired rows, and wait until these are deleted: in
/// time every order of workers and writers occurs.
#[test]
fn many_tables_come_and_go() {
    const CLIENTS: usize = 12;
    let rounds = std::env::var("TTL_ROUNDS").map_or(5, |n| n.parse().expect("TTL_ROUNDS"));
    let server = Server::start_sweeping(&SELDOM);
    let database = server.database("d");
    let longest = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let database = &database;
                scope.spawn(move || come_and_go(database, client, rounds))
            })
            .collect();
        let times = clients
            .into_iter()
            .map(|client| client.join().expect("a client"));
        times.max().expect("clients")
    });
    println!("{CLIENTS} clients, {rounds} rounds each: the longest took {longest:?}");
}

fn come_and_go(database: &Database<'_>, client: usize, rounds: usize) -> Duration {
    let mut disk = database.disk();
    let mut longest = Duration::ZERO;
    for _ in 0..rounds {
        let table = format!("t{client}");
        disk.run(&format!(
            "CREATE TABLE {table} (id integer, expires timestamptz)"
        ));
        disk.run(&format!(
            "SELECT ttl.create_index('{table}', '{{\"expires\": 1}}', '{{\"expireAfterSeconds\": 0}}')"
        ));
        let begin = Instant::now();
        disk.run(&format!(
            "INSERT INTO {table} SELECT n, pg_catalog.now() - interval '1 hour' FROM generate_series(1, 200) AS n"
        ));
        is_emptied(&mut disk, &table);
        longest = longest.max(begin.elapsed());
        disk.run(&format!("DROP TABLE {table}"));
    }
    longest
}

/// A policy that nobody has announced is found by the next routine reading: it is left out only while nobody writes to
/// the catalogs.
#[test]
fn a_policy_that_was_not_announced() {
    let server = Server::start_sweeping(&[("ttl.naptime", "1s")]);
    let database = server.database("d");
    let mut disk = table_at_rest(&database, "t");
    disk.run("CREATE TABLE u (LIKE t INCLUDING ALL)");
    disk.run("INSERT INTO u (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(1, 9) AS n");
    // Several of them find nothing new.
    sleep(Duration::from_secs(4));
    assert_eq!(disk.count("u"), 9);
    let mut superuser = database.connect();
    superuser.run(
        "SET allow_system_table_mods = on;
         INSERT INTO pg_seclabel
         SELECT CASE l.objoid WHEN t.oid THEN u.oid ELSE u.reltype END, l.classoid, l.objsubid, l.provider, l.label
           FROM pg_seclabel AS l, pg_class AS t, pg_class AS u
          WHERE t.oid = 't'::regclass AND u.oid = 'u'::regclass AND l.provider = 'ttl' AND l.objoid IN (t.oid, t.reltype)",
    );
    is_emptied(&mut disk, "u");
}
