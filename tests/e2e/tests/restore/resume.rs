//! Complaint 12: after a restore nothing is deleted until `ttl.resume` is called.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, SqlState, Upgrade};

const TABLES: &str = "
CREATE TABLE t (id integer PRIMARY KEY);
CREATE TABLE u (id integer) PARTITION BY RANGE (id);
CREATE TABLE u1 PARTITION OF u DEFAULT;
SELECT ttl.enable('t', 3600), ttl.enable('u', 3600);
INSERT INTO t (id, ttl) VALUES (1001, -1);
INSERT INTO u (id, ttl) VALUES (1001, -1)";

/// A database restored from a dump of one with live and expired rows, on a
/// server that deletes from then on; and a session that sees the disk.
fn restored(server: &Server) -> (Database<'_>, Session) {
    let source = server.database("source");
    let mut session = source.connect();
    session.run(TABLES);
    session.insert_expired("t", 1, 100);
    session.insert_expired("u", 1, 100);
    let file = server.dir().join("source.dump");
    server.must_run(source.tool("pg_dump").arg("-Fc").arg("-f").arg(&file));
    let target = server.plain_database("target");
    let mut restore = target.tool("pg_restore");
    server.must_run(restore.args(["--exit-on-error", "-d", "target"]).arg(&file));
    server.reload(&[("ttl.enabled", "on")]);
    // The source is no restored database.
    source.disk().wait_for_ids("t", "1001");
    let mut disk = target.disk();
    disk.run("CREATE TABLE sentinel (id integer PRIMARY KEY); SELECT ttl.enable('sentinel', 3600)");
    (target, disk)
}

fn start() -> Server {
    Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")])
}

fn problems(session: &mut Session, table: &str) -> String {
    let problems =
        format!("SELECT problems::text FROM ttl.tables WHERE relation = '{table}'::regclass");
    session.value(&problems)
}

/// Wait until workers must have found the restored tables, and check that they are unchanged.
#[track_caller]
fn assert_guarded(disk: &mut Session) {
    disk.look_again("sentinel");
    for table in ["t", "u"] {
        assert_eq!(disk.count(table), 101, "{table}");
        let problems = problems(disk, table);
        assert!(problems.contains("ttl.resume"), "{table}: {problems}");
    }
}

#[test]
fn nothing_is_deleted_before_resume() {
    let server = start();
    let (target, mut disk) = restored(&server);
    assert_guarded(&mut disk);
    // C6: hidden all the same.
    let mut user = target.connect();
    assert_eq!(
        user.column("SELECT id FROM t UNION ALL SELECT id FROM u"),
        ["1001", "1001"]
    );
    // Logged once for each table, however often it is looked at.
    server.wait_for_log(&["HINT:", "ttl.resume"], 2, PATIENCE);
    // A change of policy makes the workers read all policies again.
    for default in [3599, 3600] {
        disk.run(&format!("SELECT ttl.set_default('sentinel', {default})"));
        assert_guarded(&mut disk);
    }
    let hints = server.log_lines(&["HINT:", "ttl.resume"]);
    assert_eq!(hints.len(), 2, "{hints:?}");

    // A migration that runs at each start of an application does not start deletion.
    for call in [
        "SELECT ttl.enable('t', 3600), ttl.enable('u', 3600)",
        "SELECT ttl.set_default('t', 3599), ttl.set_default('u', 3599)",
        "SELECT ttl.disable('t', revive_expired => true), ttl.disable('u', revive_expired => true); SELECT ttl.enable('t', 3600), ttl.enable('u', 3600)",
    ] {
        disk.run(call);
        assert_guarded(&mut disk);
    }
    server.restart();
    let mut disk = target.disk();
    assert_guarded(&mut disk);

    disk.run("SELECT ttl.resume('t')");
    disk.wait_for_ids("t", "1001");
    assert_eq!(problems(&mut disk, "t"), "{}");
    assert_eq!(disk.count("u"), 101);
    disk.run("SELECT ttl.resume('u')");
    disk.wait_for_ids("u", "1001");
    // Calling it again changes nothing.
    disk.run("SELECT ttl.resume('u')");
    disk.look_again("u");
}

/// `ttl.purge` deletes once; `ttl.resume` is for the owner.
#[test]
fn purge_and_resume_by_whom() {
    let server = start();
    let (target, mut disk) = restored(&server);
    assert_eq!(disk.value("SELECT ttl.purge('t')"), "100");
    disk.insert_expired("t", 1, 100);
    assert_guarded(&mut disk);
    disk.run("CREATE ROLE guest LOGIN; GRANT SELECT ON t, u TO guest");
    let error = target.connect_as("guest").error("SELECT ttl.resume('t')");
    assert_eq!(*error.code(), SqlState::INSUFFICIENT_PRIVILEGE, "{error:?}");
    assert_guarded(&mut disk);
    disk.run("CREATE TABLE plain (id integer)");
    let error = disk.error("SELECT ttl.resume('plain')");
    assert_eq!(
        *error.code(),
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "{error:?}"
    );
}

/// A label that somebody has written by hand.
#[test]
fn label_by_hand() {
    let server = Server::start_sweeping(&[]);
    let mut disk = server.database("app").disk();
    disk.run(
        "CREATE TABLE sentinel (id integer PRIMARY KEY); SELECT ttl.enable('sentinel', 3600);
         CREATE TABLE t (id integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
         INSERT INTO t VALUES (1, now() - interval '1 day'), (2, now());
         SECURITY LABEL FOR ttl ON TABLE t IS '{\"default_ttl\": 3600}'",
    );
    disk.look_again("sentinel");
    assert_eq!(disk.count("t"), 2);
    let found = problems(&mut disk, "t");
    assert!(found.contains("ttl.resume"), "{found}");
    server.wait_for_log(&["HINT:", "ttl.resume"], 1, PATIENCE);
    disk.run("SELECT ttl.resume('t')");
    disk.wait_for_ids("t", "2");
    disk.run(
        "CREATE TABLE v (id integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
         INSERT INTO v VALUES (1, now() - interval '1 day'), (2, now());
         SECURITY LABEL FOR ttl ON TABLE v IS '{\"default_ttl\": 3600}'",
    );
    disk.look_again("sentinel");
    assert_eq!(disk.count("v"), 2);
}

/// What a restore has made waits, empty or not; and a served table waits once rows are restored into it.
#[test]
fn definitions_and_data_apart() {
    let server = start();
    let source = server.database("source");
    let mut session = source.connect();
    session.run(TABLES);
    session.run(
        "CREATE TABLE dated (id integer PRIMARY KEY, expires timestamptz); CREATE INDEX gone ON dated (expires);
         SELECT ttl.expire_index('gone', 0); CREATE TABLE bare (id integer); SELECT ttl.enable('bare', 3600);
         INSERT INTO bare (id) VALUES (1001)",
    );
    session.insert_expired("t", 1, 100);
    session.insert_expired("u", 1, 100);
    session.run("INSERT INTO dated SELECT n, '2020-01-01' FROM generate_series(1, 100) AS n");
    let dump = |name: &str, arguments: &[&str]| {
        let file = server.dir().join(name);
        server.must_run(source.tool("pg_dump").args(arguments).arg("-f").arg(&file));
        file
    };
    let schema = dump("schema.sql", &["--schema-only"]);
    let data = dump("data.sql", &["--data-only"]);
    let inserts = dump("inserts.sql", &["--data-only", "--inserts"]);
    let columns = dump(
        "columns.sql",
        &["--data-only", "--column-inserts", "-t", "t"],
    );
    server.reload(&[("ttl.enabled", "on")]);
    for (name, data, tables) in [
        ("copied", &data, &["t", "u", "dated"][..]),
        ("inserted", &inserts, &["t", "u"][..]),
        ("by_column", &columns, &["t"][..]),
    ] {
        let target = server.plain_database(name);
        let psql = |file| {
            let mut psql = target.tool("psql");
            server.must_run(psql.args(["-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(file));
        };
        psql(&schema);
        let mut disk = target.disk();
        let waiting = "SELECT count(*) FROM ttl.tables WHERE problems::text LIKE '%ttl.resume%'";
        disk.insert_expired("t", 1, 100);
        disk.run(
            "CREATE TABLE watched (id integer PRIMARY KEY); SELECT ttl.enable('watched', 3600)",
        );
        disk.look_again("watched");
        assert_eq!(disk.count("t"), 100);
        assert_eq!(disk.value(waiting), "4");
        let resumed = disk.column("SELECT ttl.resume_restored()");
        assert_eq!(resumed.len(), 4, "{resumed:?}");
        // New rows expire, and are deleted.
        disk.wait_for_ids("t", "");
        let mut user = target.connect();
        user.run("INSERT INTO u VALUES (7); SET row_security = off; INSERT INTO u VALUES (8)");
        user.run("DELETE FROM u");
        assert_eq!(disk.value(waiting), "0", "{name}");
        psql(data);
        for table in tables {
            let problems = problems(&mut disk, table);
            assert!(
                problems.contains("ttl.resume"),
                "{name}, {table}: {problems}"
            );
        }
        disk.run(
            "CREATE TABLE sentinel (id integer PRIMARY KEY); SELECT ttl.enable('sentinel', 3600)",
        );
        disk.look_again("sentinel");
        for table in tables {
            assert!(disk.count(table) >= 100, "{name}, {table}");
        }
        disk.run("SELECT ttl.resume('t')");
        disk.wait_for_ids("t", "1001");
    }
}

/// The owner of a partition alone cannot stop deletion in the rest this way.
#[test]
fn a_partition_restored_by_its_owner() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(
        "CREATE ROLE tenant LOGIN; CREATE TABLE p (id integer) PARTITION BY LIST (id);
         CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
         SELECT ttl.enable('p', 3600); ALTER TABLE p1 OWNER TO tenant",
    );
    let mut tenant = database.connect_as("tenant");
    tenant.run("SET row_security = off; INSERT INTO p1 (id, _ts) VALUES (1, '2020-01-01')");
    assert_eq!(problems(&mut disk, "p"), "{}");
    disk.run("SET ttl.preserve_ts = on; INSERT INTO p (id, _ts) VALUES (2, '2020-01-01')");
    disk.wait_for_ids("p", "");
}

/// pg_upgrade is no restore.
#[test]
fn pg_upgrade_needs_no_resume() {
    let filled = Upgrade::of_app(|source| {
        source.connect().run(TABLES);
        source.connect().insert_expired("t", 1, 100);
        source.connect().insert_expired("u", 1, 100);
    });
    let Some(new) = filled else { return };
    let mut disk = new.existing_database("app").disk();
    disk.wait_for_ids("t", "1001");
    disk.wait_for_ids("u", "1001");
    assert_eq!(problems(&mut disk, "t"), "{}");
}
