//! What is restored or copied deletes nothing before its owner says so, empty or not, whenever a worker
//! looks; and one call says so for all.

use std::path::PathBuf;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

fn start() -> Server {
    Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")])
}

fn dump(source: &Database<'_>, name: &str, arguments: &[&str]) -> PathBuf {
    let file = source.server().dir().join(name);
    let mut dump = source.tool("pg_dump");
    source
        .server()
        .must_run(dump.args(arguments).arg("-f").arg(&file));
    file
}

fn psql(target: &Database<'_>, file: &PathBuf) {
    let mut psql = target.tool("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]);
    target.server().must_run(psql.arg(file));
}

/// Waits until workers have looked at all tables of the database.
fn let_workers_look(disk: &mut Session) {
    disk.run(
        "CREATE TABLE IF NOT EXISTS sentinel (id integer PRIMARY KEY); SELECT ttl.enable('sentinel', 3600)",
    );
    disk.look_again("sentinel");
}

/// How many tables wait because of a restore.
const WAITING: &str = "SELECT count(*) FROM ttl.tables WHERE problems::text LIKE '%ttl.resume(%'";

/// A partition whose time has passed, and whose rows live.
const LOG: &str = "
CREATE TABLE log (id integer, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
CREATE TABLE log_2020 PARTITION OF log FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE log_2021 PARTITION OF log FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
CREATE TABLE log_rest PARTITION OF log DEFAULT;
SELECT ttl.enable('log', 3600, drop_partitions => true);
SET ttl.preserve_ts = on;
INSERT INTO log (id, _ts, ttl) VALUES (1, '2020-06-01', -1), (2, '2021-06-01', NULL), (3, now(), NULL);
RESET ttl.preserve_ts";

/// A restored partition, which is empty at first, is not dropped before its rows come.
#[test]
fn partitions_wait_for_their_rows() {
    let server = start();
    let source = server.database("source");
    source.connect().run(LOG);
    let schema = dump(&source, "schema.sql", &["--schema-only"]);
    let data = dump(&source, "data.sql", &["--data-only"]);
    server.reload(&[("ttl.enabled", "on"), ("ttl.empty_partition_age", "0")]);
    let target = server.plain_database("target");
    psql(&target, &schema);
    let mut disk = target.disk();
    let_workers_look(&mut disk);
    psql(&target, &data);
    let_workers_look(&mut disk);
    assert_eq!(
        disk.column("SELECT id FROM log ORDER BY id").join(" "),
        "1 2 3"
    );
    assert_eq!(disk.column("SELECT ttl.resume_restored()"), ["log"]);
    disk.wait_for_ids("log", "1 3");
    disk.wait_until("SELECT to_regclass('log_2021') IS NULL", "t", PATIENCE);
}

/// A row that comes after a restore without rows is not deleted, however the restore was made.
#[test]
fn an_empty_table_waits() {
    let server = start();
    let source = server.database("source");
    source.connect().run(
        "CREATE TABLE plain (id integer); CREATE TABLE keyed (id integer PRIMARY KEY);
         SELECT ttl.enable('plain', 3600), ttl.enable('keyed', 3600)",
    );
    let script = dump(&source, "schema.sql", &["--schema-only"]);
    let archive = dump(&source, "schema.dump", &["-Fc"]);
    server.reload(&[("ttl.enabled", "on")]);
    for (name, program, arguments, file) in [
        ("by_psql", "psql", &["-X", "-q", "-f"][..], &script),
        ("at_once", "psql", &["-X", "-q", "-1", "-f"], &script),
        (
            "by_pg_restore",
            "pg_restore",
            &["-d", "by_pg_restore"],
            &archive,
        ),
    ] {
        let target = server.plain_database(name);
        server.must_run(target.tool(program).args(arguments).arg(file));
        let mut disk = target.disk();
        let_workers_look(&mut disk);
        for table in ["plain", "keyed"] {
            disk.insert_expired(table, 1, 10);
        }
        let_workers_look(&mut disk);
        assert_eq!(disk.value(WAITING), "2", "{name}");
        assert_eq!(disk.count("plain") + disk.count("keyed"), 20, "{name}");
    }
}

/// A copy of a database has the OIDs of the original.
#[test]
fn a_copied_database_waits() {
    let server = start();
    let source = server.database("source");
    source.connect().run(LOG);
    source
        .connect()
        .run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    source.connect().insert_expired("t", 1, 100);
    server
        .plain_database("elsewhere")
        .connect()
        .run("CREATE DATABASE copy TEMPLATE source");
    server.reload(&[("ttl.enabled", "on")]);
    let mut original = source.disk();
    original.wait_for_ids("t", "");
    let mut disk = server.existing_database("copy").disk();
    let_workers_look(&mut disk);
    assert_eq!(disk.value(WAITING), "2");
    assert_eq!(disk.count("t"), 100);
    assert_eq!(
        disk.column("SELECT id FROM log ORDER BY id").join(" "),
        "1 2 3"
    );
    // Hidden all the same.
    let mut user = server.existing_database("copy").connect();
    assert_eq!(user.value("SELECT count(*) FROM t"), "0");
    // A change of policy keeps it waiting.
    user.run("SELECT ttl.set_default('t', 1800)");
    let_workers_look(&mut disk);
    assert_eq!(disk.count("t"), 100);
    // It goes by another name.
    drop((user, disk, original));
    let mut admin = server.connect("postgres", "postgres");
    server.reload(&[("ttl.enabled", "off")]);
    admin.run("ALTER DATABASE source RENAME TO renamed");
    server.reload(&[("ttl.enabled", "on")]);
    let mut renamed = server.existing_database("renamed").disk();
    assert_eq!(renamed.value(WAITING), "0");
    let mut disk = server.existing_database("copy").disk();
    assert_eq!(
        disk.column("SELECT r FROM ttl.resume_restored() AS r ORDER BY r::text")
            .join(" "),
        "log t"
    );
    disk.wait_for_ids("t", "");
    assert_eq!(disk.value(WAITING), "0");
}

/// `ttl.resume_restored` resumes what waits because of a restore, for those who own it, and nothing else.
#[test]
fn one_call_resumes_all() {
    let server = start();
    let source = server.database("source");
    source.connect().run(
        "CREATE ROLE app LOGIN; CREATE ROLE other LOGIN;
         CREATE TABLE plain (id integer); CREATE TABLE paused (id integer); CREATE TABLE others (id integer);
         CREATE TABLE dated (id integer, at timestamptz); CREATE INDEX dated_at ON dated (at);
         SELECT ttl.enable('plain', 3600), ttl.enable('paused', 3600), ttl.enable('others', 3600), ttl.expire_index('dated_at', 0);
         SELECT ttl.pause('paused');
         INSERT INTO dated VALUES (1, '2020-01-01');
         ALTER TABLE plain OWNER TO app; ALTER TABLE paused OWNER TO app; ALTER TABLE dated OWNER TO app;
         ALTER TABLE others OWNER TO other",
    );
    let mut session = source.connect();
    for table in ["plain", "paused", "others"] {
        session.insert_expired(table, 1, 10);
    }
    let file = dump(&source, "dump.sql", &[]);
    server.reload(&[("ttl.enabled", "on")]);
    let target = server.plain_database("target");
    psql(&target, &file);
    let mut disk = target.disk();
    disk.run(
        "CREATE TABLE mine (id integer); SELECT ttl.enable('mine', 3600); SELECT ttl.pause('mine')",
    );
    disk.run("ALTER TABLE mine OWNER TO app; GRANT CREATE ON SCHEMA public TO app");
    let mut app = target.connect_as("app");
    assert_eq!(
        app.column("SELECT r FROM ttl.resume_restored() AS r ORDER BY r::text")
            .join(" "),
        "dated paused plain"
    );
    disk.wait_for_none("plain");
    disk.wait_for_none("dated");
    let_workers_look(&mut disk);
    assert_eq!(disk.count("paused"), 10);
    assert_eq!(disk.count("others"), 10);
    assert_eq!(
        disk.column("SELECT relation FROM ttl.tables WHERE paused_until = 'infinity' ORDER BY relation::text"),
        ["mine", "paused"]
    );
    // Nothing waits any more for this role.
    assert!(app.column("SELECT ttl.resume_restored()").is_empty());
}

/// A restored partition that is attached to a served table makes that wait, and an empty one does not.
#[test]
fn an_attached_partition_waits() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(LOG);
    // It is worked on.
    disk.wait_until("SELECT to_regclass('log_2021') IS NULL", "t", PATIENCE);
    let waits = "SELECT problems::text LIKE '%ttl.resume%' FROM ttl.tables WHERE relation = 'log'::regclass";
    disk.run(
        "CREATE TABLE log_2018 (LIKE log INCLUDING ALL); ALTER TABLE log ATTACH PARTITION log_2018 FOR VALUES FROM ('2018-01-01') TO ('2019-01-01')",
    );
    assert_eq!(disk.value(waits), "f");
    disk.run(
        "CREATE TABLE log_2019 (LIKE log INCLUDING ALL); INSERT INTO log_2019 VALUES (4, '2019-06-01', NULL), (5, '2019-06-01', -1)",
    );
    // As a dump brings it.
    disk.run(
        "SECURITY LABEL FOR ttl ON TABLE log_2019 IS '{\"default_ttl\": 3600}';
         ALTER TABLE log ATTACH PARTITION log_2019 FOR VALUES FROM ('2019-01-01') TO ('2020-01-01')",
    );
    assert_eq!(disk.value(waits), "t");
    let_workers_look(&mut disk);
    assert_eq!(
        disk.column("SELECT id FROM log ORDER BY id").join(" "),
        "1 3 4 5"
    );
    disk.run("SELECT ttl.resume('log')");
    disk.wait_for_ids("log", "1 3 5");
    // So does a child that comes to a table by inheritance.
    disk.run(
        "CREATE TABLE parent (id integer); SELECT ttl.enable('parent', 3600);
         CREATE TABLE child (LIKE parent INCLUDING ALL); INSERT INTO child VALUES (1, '2019-06-01', NULL), (2, now(), NULL);
         SECURITY LABEL FOR ttl ON TABLE child IS '{\"default_ttl\": 3600}';
         ALTER TABLE child INHERIT parent",
    );
    let_workers_look(&mut disk);
    assert_eq!(disk.count("parent"), 2);
    assert_eq!(disk.column("SELECT ttl.resume_restored()"), ["parent"]);
    disk.wait_for_ids("parent", "2");
}
