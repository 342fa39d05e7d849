//! C7, M9, complaints 5 and 13: a big backlog is deleted although an old snapshot is held, and one
//! table does not starve the others.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, SlowTable};

const ROWS: i64 = 200_000;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// A table in which every tenth row is live, in order or scattered, loaded before TTL is turned on.
fn load(database: &Database<'_>, table: &str, scattered: bool, index: &str) -> Session {
    let order = if scattered { "random()" } else { "n" };
    let mut disk = database.disk();
    disk.run(&format!(
        "SELECT setseed(0.25);
         CREATE TABLE {table} (id integer, what text, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
         INSERT INTO {table}
            SELECT n, repeat('x', 100),
                   CASE WHEN n % 10 = 0 THEN now() ELSE now() - interval '1 day' - n * interval '1 second' END,
                   CASE n % 100 WHEN 0 THEN -1 WHEN 1 THEN 60 END
              FROM generate_series(1, {ROWS}) AS n ORDER BY {order};
         SELECT ttl.enable('{table}', 3600, index => '{index}')"
    ));
    disk
}

fn waits_for_the_living(disk: &mut Session, table: &str) {
    let living = format!("SELECT count(*) || ' ' || sum(id % 10) FROM {table}");
    disk.wait_until(&living, &format!("{} 0", ROWS / 10), 3 * PATIENCE);
    disk.look_again(table);
    assert_eq!(disk.value(&living), format!("{} 0", ROWS / 10));
}

/// In order and scattered, with each kind of index, under a snapshot that keeps VACUUM from
/// removing any row.
#[test]
fn with_an_old_snapshot() {
    let database = server().database("old_snapshot");
    let mut old = database.disk();
    let tables = [
        ("in_order", false, "btree"),
        ("scattered", true, "btree"),
        ("in_order_none", false, "none"),
        ("scattered_none", true, "none"),
    ];
    old.run("CREATE TABLE held (id integer); INSERT INTO held VALUES (1)");
    for (table, scattered, index) in tables {
        old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM held");
        let mut disk = load(&database, table, scattered, index);
        waits_for_the_living(&mut disk, table);
        old.run("COMMIT");
    }
}

/// A sudden backlog, by a shorter default (C8). A reader whose snapshot has all these rows goes on
/// seeing them.
#[test]
fn a_reader_keeps_its_rows() {
    let database = server().database("reader");
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 864000)");
    disk.insert_expired("t", 1, 50_000);
    let mut reader = database.connect();
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT id FROM t");
    assert_eq!(reader.column("FETCH 10 FROM c").len(), 10);
    disk.run("SELECT ttl.set_default('t', 3600)");
    disk.wait_for_none("t");
    assert_eq!(reader.column("FETCH ALL FROM c").len(), 49_990);
}

/// Many rows with the same `_ts`, so the same index key: continuing from the last key neither skips
/// rows nor loops.
#[test]
fn the_same_time_for_all() {
    let database = server().database("same_time");
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 864000)");
    disk.run_preserving(
        "INSERT INTO t (id, _ts, ttl)
            SELECT n, date_trunc('day', now()) - interval '2 days', CASE n % 3 WHEN 0 THEN 60 END
              FROM generate_series(1, 60000) AS n",
    );
    disk.wait_until("SELECT count(*) FROM t", "40000", PATIENCE);
    let mut locker = database.disk();
    locker.run("BEGIN; SELECT FROM t WHERE id IN (1, 20000, 59999) FOR UPDATE");
    disk.run("SELECT ttl.set_default('t', 3600)");
    disk.wait_for_ids("t", "1 20000 59999");
    locker.run("COMMIT");
    disk.wait_for_none("t");
}

/// M9: one table has a big backlog that is slow to delete; the same worker still serves the others.
#[test]
fn a_big_table_starves_no_other() {
    let mut settings = SlowTable::SETTINGS.to_vec();
    settings.push(("ttl.max_workers", "1"));
    let server = Server::start_sweeping(&settings);
    let database = server.database("starving");
    let mut disk = database.disk();
    disk.run("CREATE TABLE small (id integer PRIMARY KEY); SELECT ttl.enable('small', 3600)");
    let slow = SlowTable::create(&database);
    slow.wait_until_begun(&mut disk);
    disk.look_again("small");
    disk.look_again("small");
    assert!(disk.count("slow") > 1, "the big table was finished first");
    slow.finish(&mut disk);
}

/// Many small batches delete the same rows as one.
#[test]
fn small_batches() {
    let server = Server::start_sweeping(&[("ttl.batch_size", "7")]);
    let database = server.database("batches");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         INSERT INTO t VALUES (0)",
    );
    disk.insert_expired("t", 1, 1000);
    disk.wait_for_ids("t", "0");
    disk.wait_until(
        "SELECT rows_deleted = 1000 AND batches >= 143 FROM ttl.stats WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
}
