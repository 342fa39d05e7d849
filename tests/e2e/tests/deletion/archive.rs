//! C26, C28: workers archive what they delete; every row is in one of the two tables, whatever happens
//! meanwhile.

use std::sync::OnceLock;

use postgres::fallible_iterator::FallibleIterator;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, Stop, lacks_library, until};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

const TABLES: &str =
    "CREATE TABLE t (id integer PRIMARY KEY, what text); SELECT ttl.enable('t', 3600);
     CREATE TABLE gone (id integer, what text, _ts timestamptz, ttl integer);
     SELECT ttl.archive_to('t', 'gone'); INSERT INTO t VALUES (0)";

fn with_tables(name: &str) -> (Database<'static>, Session) {
    let database = server().database(name);
    let mut disk = database.disk();
    disk.run(TABLES);
    (database, disk)
}

/// How many of so many rows are in `t`, in `gone`, and in both or in none.
fn places(disk: &mut Session, rows: i32) -> Vec<i64> {
    let query = format!(
        "SELECT count(*) FILTER (WHERE place = 't'), count(*) FILTER (WHERE place = 'gone'),
                count(*) - count(DISTINCT id) + {rows} - count(DISTINCT id)
           FROM (SELECT 't' AS place, id FROM t WHERE id > 0 UNION ALL SELECT 'gone', id FROM gone) AS both_of_them"
    );
    let row = disk.rows(&query).remove(0);
    row.iter().map(|n| n.parse().expect("a count")).collect()
}

/// Tens of thousands of rows, in batches, with their times and overrides.
#[test]
fn in_batches() {
    let (_database, mut disk) = with_tables("archive_batches");
    disk.run_preserving(
        "INSERT INTO t SELECT n, 'row ' || n, '2020-01-01', NULLIF(n % 3, 0) FROM generate_series(1, 30000) AS n",
    );
    disk.wait_for_ids("t", "0");
    assert_eq!(places(&mut disk, 30_000), [0, 30_000, 0]);
    let wrong = "SELECT count(*) FROM gone
         WHERE _ts <> '2020-01-01' OR ttl IS DISTINCT FROM NULLIF(id % 3, 0) OR what <> 'row ' || id";
    assert_eq!(disk.value(wrong), "0");
    disk.wait_until("SELECT rows_deleted FROM ttl.stats", "30000", PATIENCE);
}

/// While the disk is full nothing is archived, nothing deleted and no row set aside, and a problem says why.
#[test]
fn a_full_disk() {
    let (server, clock) = Server::start_with_clock(&[("autovacuum", "off")]);
    let database = server.database("full_disk");
    let mut disk = database.disk();
    disk.run(TABLES);
    let transaction = "BEGIN; SET LOCAL ttl.preserve_ts = on;
        INSERT INTO t SELECT n, repeat('x', 1000), '2020-01-01', NULL FROM generate_series(1, 20000) AS n";
    disk.run(transaction);
    clock.fill_disk(true);
    disk.run("COMMIT");
    let told =
        "SELECT count(*) FROM ttl.tables WHERE problems::text LIKE '%No space left on device%'";
    disk.wait_until(told, "1", 2 * PATIENCE);
    assert_eq!(disk.value("SELECT blocked_rows FROM ttl.stats"), "0");
    // From 19 on, reading may write to the visibility map, too.
    if server.major() < 19 {
        let [left, archived, in_one] = places(&mut disk, 20_000)[..] else {
            unreachable!()
        };
        assert!(
            in_one == 0 && left > 0,
            "{left} left, {archived} archived, {in_one} in both or none"
        );
    }
    clock.fill_disk(false);
    disk.wait_until("SELECT count(*) FROM t WHERE id > 0", "0", 2 * PATIENCE);
    assert_eq!(places(&mut disk, 20_000), [0, 20_000, 0]);
    disk.wait_until(told, "0", 2 * PATIENCE);
}

/// The server crashes in the middle, by `kill -9` of the worker and by an immediate stop.
#[test]
fn crashes() {
    let server = Server::start_sweeping(&[("ttl.batch_size", "100")]);
    server.allow_crash();
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(TABLES);
    // Slows the batches down, so that there is a middle.
    disk.run(
        "CREATE INDEX ON gone (id);
         CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_sleep(0.0005); RETURN NEW; END';
         CREATE TRIGGER slow BEFORE INSERT ON gone FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    disk.insert_expired("t", 1, 6000);
    for round in 0..2 {
        let before = disk.count("gone");
        disk.wait_until(
            &format!("SELECT count(*) > {before} FROM gone"),
            "t",
            PATIENCE,
        );
        drop(disk);
        if round == 0 {
            let ready = server.log_lines(&["ready to accept connections"]).len();
            until("a worker to kill", PATIENCE, || {
                let mut session = server.connect("postgres", "postgres");
                let pids = session.pids("ttl_ext worker", Some("app"));
                pids.first()
                    .is_some_and(|pid| server.kill(*pid))
                    .then_some(())
            });
            server.wait_for_log(&["ready to accept connections"], ready + 1, PATIENCE);
        } else {
            server.stop(Stop::Immediate);
            server.launch();
        }
        disk = database.disk();
        let now = places(&mut disk, 6000);
        assert_eq!(now[2], 0, "rows in both or none: {now:?}");
    }
    disk.run("DROP TRIGGER slow ON gone");
    disk.wait_for_ids("t", "0");
    assert_eq!(places(&mut disk, 6000), [0, 6000, 0]);
}

/// The archive refuses a row: it is set aside, and the others go. Later it goes, too.
#[test]
fn refused_row() {
    let (_database, mut disk) = with_tables("archive_refused");
    disk.run("ALTER TABLE gone ADD CONSTRAINT no_5 CHECK (id <> 5)");
    disk.insert_expired("t", 1, 100);
    disk.wait_for_ids("t", "0 5");
    assert_eq!(places(&mut disk, 100), [1, 99, 0]);
    disk.wait_until(
        "SELECT blocked_rows || ' ' || (last_error ~ 'no_5') FROM ttl.stats",
        "1 true",
        PATIENCE,
    );
    disk.run("ALTER TABLE gone DROP CONSTRAINT no_5; SELECT ttl.archive_to('t', 'gone')");
    disk.wait_for_ids("t", "0");
    assert_eq!(places(&mut disk, 100), [0, 100, 0]);
}

/// Without its archive nothing is deleted, and that is shown; a user's INSERT says why.
#[test]
fn dropped() {
    let (_database, mut disk) = with_tables("archive_dropped");
    disk.run("DROP TABLE gone");
    disk.insert_expired("t", 1, 10);
    disk.wait_until(
        "SELECT last_error ~ 'the archive of public.t, does not exist' FROM ttl.stats",
        "t",
        PATIENCE,
    );
    assert_eq!(disk.count("t"), 11);
    let problem = "SELECT count(*) FROM ttl.tables, unnest(problems) AS problem
         WHERE problem ~ 'nothing is deleted: table public.gone'";
    assert_eq!(disk.value(problem), "1");
    let error = disk.error("SET ttl.show_expired = off; INSERT INTO t VALUES (3)");
    assert_eq!(error.code().code(), "42P01", "{error}");
    disk.run("SET ttl.show_expired = on; SELECT ttl.archive_to('t', NULL)");
    disk.wait_for_ids("t", "0");
}

/// Triggers of the archive's owner run as the table's owner, who chose it, and nobody else: not as the
/// worker's superuser.
#[test]
fn as_the_owner() {
    let (_database, mut disk) = with_tables("archive_owner");
    disk.run(
        "CREATE ROLE archivist LOGIN; GRANT CREATE, USAGE ON SCHEMA public TO archivist;
         ALTER TABLE t OWNER TO archivist; ALTER TABLE gone OWNER TO archivist; SELECT ttl.archive_to('t', 'gone');
         CREATE FUNCTION who() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN NEW.what = current_user || '' '' || ttl.deleting(); RETURN NEW; END';
         CREATE TRIGGER who BEFORE INSERT ON gone FOR EACH ROW EXECUTE FUNCTION who();
         CREATE TABLE late (who text); ALTER TABLE late OWNER TO archivist;
         CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN INSERT INTO public.late VALUES (current_user || '' '' || ttl.deleting()); RETURN NULL; END';
         CREATE CONSTRAINT TRIGGER late AFTER INSERT ON gone DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION late()",
    );
    disk.insert_expired("t", 1, 2);
    disk.wait_for_ids("t", "0");
    assert_eq!(
        disk.column("SELECT DISTINCT what FROM gone"),
        ["archivist true"]
    );
    assert_eq!(
        disk.column("SELECT DISTINCT who FROM late"),
        ["archivist true"]
    );
}

/// Each batch tells its listeners.
#[test]
fn notify() {
    let (_database, mut disk) = with_tables("archive_notify");
    disk.run("SELECT ttl.set_option('t', 'notify', 'gone')");
    disk.run("LISTEN gone");
    disk.insert_expired("t", 1, 10);
    disk.wait_for_ids("t", "0");
    let told = until("a notification", PATIENCE, || {
        let mut notifications = disk.client.notifications();
        let told = notifications
            .iter()
            .map(|told| Ok(told.payload().to_owned()));
        let told: Vec<String> = told.collect().expect("notifications");
        (!told.is_empty()).then_some(told)
    });
    let rows: u64 = told
        .iter()
        .map(|payload| {
            let rows = payload
                .strip_prefix("{\"rows\":")
                .and_then(|rest| rest.strip_suffix(",\"table\":\"public.t\"}"));
            rows.and_then(|rows| rows.parse::<u64>().ok())
                .unwrap_or_else(|| panic!("{payload}"))
        })
        .sum();
    assert_eq!(rows, 10);
}

/// A foreign table, by postgres_fdw; the rows wait while the other server cannot be reached.
#[test]
fn foreign() {
    if lacks_library("postgres_fdw", "archive::foreign") {
        return;
    }
    let (database, mut disk) = with_tables("archive_foreign");
    let address = database.server().conninfo("archive_foreign");
    let host = address
        .split_whitespace()
        .find_map(|it| it.strip_prefix("host="))
        .expect("a host");
    let port = address
        .split_whitespace()
        .find_map(|it| it.strip_prefix("port="))
        .expect("a port");
    disk.run(&format!(
        "CREATE EXTENSION postgres_fdw;
         CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host '{host}', port '1', dbname 'archive_foreign');
         CREATE USER MAPPING FOR postgres SERVER elsewhere OPTIONS (user 'postgres', password_required 'false');
         CREATE FOREIGN TABLE far (id integer, what text, _ts timestamptz, ttl integer)
             SERVER elsewhere OPTIONS (table_name 'gone');
         SELECT ttl.archive_to('t', 'far')"
    ));
    disk.insert_expired("t", 1, 50);
    disk.wait_until(
        "SELECT last_error IS NOT NULL FROM ttl.stats",
        "t",
        PATIENCE,
    );
    assert_eq!(places(&mut disk, 50), [50, 0, 0]);
    assert_eq!(disk.value("SELECT blocked_rows FROM ttl.stats"), "0");
    disk.run(&format!(
        "ALTER SERVER elsewhere OPTIONS (SET port '{port}'); SELECT ttl.archive_to('t', 'far')"
    ));
    disk.wait_for_ids("t", "0");
    assert_eq!(places(&mut disk, 50), [0, 50, 0]);
}

/// A partition that is expired as a whole is taken row by row, though partitions are dropped.
#[test]
fn whole_partition() {
    let database = server().database("archive_partition");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE p (id integer, _ts timestamptz NOT NULL DEFAULT ttl.current_ts()) PARTITION BY RANGE (_ts);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
         CREATE TABLE gone (id integer, _ts timestamptz);
         SELECT ttl.enable('p', 3600, ttl_column => NULL, drop_partitions => true);
         SELECT ttl.archive_to('p', 'gone')",
    );
    disk.run_preserving("INSERT INTO p SELECT n, '2020-06-01' FROM generate_series(1, 500) AS n");
    disk.wait_for_none("p");
    assert_eq!(disk.count("gone"), 500);
    assert_eq!(disk.value("SELECT to_regclass('p1')"), "p1");
}

/// The key of an expired row is free for a user who may not run the owner's code, however long a pass takes: a worker comes
/// for the row.
#[test]
fn a_worker_comes_for_a_key() {
    let database = server().database("came");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, note text); CREATE TABLE archive (LIKE t);
         SELECT ttl.enable('t', 3600, index => 'none');
         ALTER TABLE archive ADD COLUMN _ts timestamptz, ADD COLUMN ttl integer;
         SELECT ttl.archive_to('t', 'archive');
         INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, 400000) AS n;
         CREATE ROLE user_of_keys LOGIN; GRANT SELECT, INSERT ON t TO user_of_keys",
    );
    let mut user = database.connect_as("user_of_keys");
    for id in 1..=5 {
        disk.run(&format!("UPDATE t SET ttl = 1 WHERE id = {id} * 70000"));
        user.wait_until(
            &format!("SELECT count(*) FROM t WHERE id = {id} * 70000"),
            "0",
            PATIENCE,
        );
        user.run(&format!("INSERT INTO t VALUES ({id} * 70000, 'new')"));
    }
    assert_eq!(disk.value("SELECT count(*) FROM archive"), "5");
}
