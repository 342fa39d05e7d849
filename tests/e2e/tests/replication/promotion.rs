//! M10: a standby deletes nothing, and starts after its promotion.

use ttl_ext_e2e::{PATIENCE, Server, Stop, catch_up};

#[test]
fn a_standby_deletes_after_promotion_only() {
    let primary = Server::start(&[("wal_level", "replica"), ("ttl.naptime", "1s")]);
    let database = primary.database("app");
    let mut writer = database.disk();
    writer.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         INSERT INTO t VALUES (1001); CREATE TABLE news (n integer)",
    );
    writer.insert_expired("t", 1, 1000);
    let standby = primary.start_standby(&[("ttl.enabled", "on")]);
    let replica = standby.existing_database("app");
    let mut reader = replica.disk();
    catch_up(&mut writer, &mut reader);

    // Neither by itself nor by a worker, whatever arrives and whoever connects.
    let processes = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'ttl_ext%'";
    for n in 0..20 {
        writer.run(&format!("INSERT INTO news VALUES ({n})"));
        let mut visitor = replica.connect();
        catch_up(&mut writer, &mut visitor);
        assert_eq!(reader.count("t"), 1001);
        assert_eq!(visitor.value(processes), "0");
    }
    // What only shows works there, too.
    for view in ["tables", "stats", "progress", "placements", "check()"] {
        reader.run(&format!("SELECT * FROM ttl.{view}"));
    }
    let read_only = standby.log_lines(&["ERROR:"]);
    assert!(read_only.is_empty(), "{read_only:?}");

    // What the primary deletes arrives.
    primary.reload(&[("ttl.enabled", "on")]);
    writer.wait_for_ids("t", "1001");
    // A worker's commits are flushed a moment later.
    reader.wait_until("SELECT count(*) FROM t", "1", PATIENCE);
    // A worker does not flush its commits; later writes do.
    primary.reload(&[("ttl.enabled", "off")]);
    writer.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker'",
        "0",
        PATIENCE,
    );
    writer.insert_expired("t", 1, 1000);
    catch_up(&mut writer, &mut reader);
    assert_eq!(reader.count("t"), 1001);

    standby.promote();
    reader.wait_for_ids("t", "1001");
    assert_eq!(reader.pids("ttl_ext launcher", None).len(), 1);
    reader.insert_expired("t", 1, 10);
    reader.wait_for_ids("t", "1001");
    // The old primary is now separate, and settings act on it again.
    assert_eq!(writer.count("t"), 1001);
}

/// A primary with a standby far behind goes on deleting with the least effort: slowly, but to the
/// end.
#[test]
fn a_late_standby_slows_but_does_not_stop_deletion() {
    let primary = Server::start_sweeping(&[
        ("wal_level", "replica"),
        ("ttl.max_replica_lag", "1s"),
        ("ttl.min_effort", "5"),
    ]);
    let database = primary.database("app");
    let mut writer = database.disk();
    writer.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    let standby = primary.start_standby(&[("recovery_min_apply_delay", "1h")]);
    writer.wait_until("SELECT count(*) FROM pg_stat_replication", "1", PATIENCE);
    writer.insert_expired("t", 1, 20_000);
    writer.wait_for_none("t");
    drop(standby);
}

/// A recovery ends on another timeline, where nothing is deleted before that is confirmed.
#[test]
fn another_timeline_is_confirmed_first() {
    let primary = Server::start(&[
        ("wal_level", "replica"),
        ("ttl.naptime", "1s"),
        ("ttl.timeline", "1"),
    ]);
    let database = primary.database("app");
    let mut writer = database.disk();
    writer.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         INSERT INTO t VALUES (1001)",
    );
    writer.insert_expired("t", 1, 1000);
    let recovered = primary.start_standby(&[("ttl.enabled", "on")]);
    let mut reader = recovered.existing_database("app").disk();
    catch_up(&mut writer, &mut reader);
    primary.stop(Stop::Fast);

    recovered.promote();
    recovered.wait_for_log(&["on timeline 2", "is 1"], 1, PATIENCE);
    let problem =
        "SELECT worker, problems[1] LIKE '%another timeline than ttl.timeline%' FROM ttl.tables";
    assert_eq!(reader.rows(problem), [["recovered", "t"]]);
    let processes = "SELECT string_agg(backend_type, ',') FROM pg_stat_activity WHERE backend_type LIKE 'ttl_ext%'";
    reader.wait_until(processes, "ttl_ext launcher", PATIENCE);
    // A restart is no confirmation.
    recovered.restart();
    let mut reader = recovered.existing_database("app").disk();
    reader.wait_until(processes, "ttl_ext launcher", PATIENCE);
    std::thread::sleep(std::time::Duration::from_secs(2));
    // Nor do sessions delete what has been recovered.
    let mut user = recovered.existing_database("app").connect();
    user.run("ALTER TABLE t ADD CHECK (id > 0)");
    let refused = user.error("SELECT ttl.set_default('t', 864000)");
    assert!(
        refused.message().contains("can still be brought back"),
        "{refused}"
    );
    let left = reader.value("SELECT count(*) FROM t");
    recovered.reload(&[("ttl.timeline", "2")]);
    reader.wait_for_ids("t", "1001");
    assert_eq!(left, "1001");
}
