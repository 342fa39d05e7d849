//! Item 10: after a restore nothing is deleted until somebody says so.

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

/// Wait until the restored tables must have been found, and are as they were.
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
    // Said once for each table, however often it is met.
    server.wait_for_log(&["HINT:", "ttl.resume"], 2, PATIENCE);
    disk.run("SELECT pg_sleep(3)");
    let hints = server.log_lines(&["HINT:", "ttl.resume"]);
    assert_eq!(hints.len(), 2, "{hints:?}");

    // What an application's migration does at each start does not lift it.
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
    // Once more changes nothing.
    disk.run("SELECT ttl.resume('u')");
    disk.look_again("u");
}

/// `ttl.purge` is somebody saying so for once; `ttl.resume` is the owner's.
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
    // The OID of another table is as good as none.
    disk.run(
        "CREATE TABLE v (id integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
         INSERT INTO v VALUES (1, now() - interval '1 day'), (2, now());
         DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR ttl ON TABLE v IS %L',
            json_build_object('default_ttl', 3600, 'table_oid', 't'::regclass::oid::bigint)); END $$",
    );
    disk.look_again("sentinel");
    assert_eq!(disk.count("v"), 2);
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
