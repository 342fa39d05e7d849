//! C29, C30: a paused table, and one outside its window, is left alone by the workers, and is gone on
//! with in time.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

/// A table that is worked on, whose visits tell that workers were there; and the disk.
fn with_sentinel(database: &Database<'_>) -> Session {
    let mut disk = database.disk();
    disk.run("CREATE TABLE sentinel (id integer PRIMARY KEY); SELECT ttl.enable('sentinel', 3600)");
    disk
}

fn resting(disk: &mut Session, table: &str, rest: &str) {
    disk.run(&format!(
        "CREATE TABLE {table} (id integer PRIMARY KEY); SELECT ttl.enable('{table}', 3600); SELECT {rest}"
    ));
    disk.insert_expired(table, 1, 100);
}

/// Hours of the day around now, by the server's clocks, that are `open` or not.
fn hours(open: bool) -> String {
    let (from, to) = if open { (-60, 60) } else { (60, 120) };
    let zone = "current_setting('log_timezone')";
    let time = |minutes: i32| {
        format!(
            "to_char(clock_timestamp() AT TIME ZONE {zone} + interval '{minutes} min', 'HH24:MI')"
        )
    };
    format!("{} || '-' || {}", time(from), time(to))
}

fn worker_says(disk: &mut Session, table: &str) -> String {
    disk.value(&format!(
        "SELECT worker FROM ttl.tables WHERE relation = '{table}'::regclass"
    ))
}

fn figures_are_known(disk: &mut Session, table: &str) {
    disk.wait_until(
        &format!(
            "SELECT lag > '0' AND backlog_estimate = 100 FROM ttl.stats WHERE relation = '{table}'::regclass"
        ),
        "t",
        PATIENCE,
    );
}

#[test]
fn a_paused_table_waits_for_resume() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = with_sentinel(&database);
    resting(&mut disk, "t", "ttl.pause('t')");
    for _ in 0..2 {
        disk.look_again("sentinel");
        assert_eq!(disk.count("t"), 100);
    }
    assert_eq!(worker_says(&mut disk, "t"), "paused");
    // Monitoring sees what is left on disk.
    figures_are_known(&mut disk, "t");
    // Users do not.
    assert_eq!(database.connect().value("SELECT count(*) FROM t"), "0");
    // A restart does not end it.
    drop(disk);
    server.restart();
    let mut disk = database.disk();
    disk.look_again("sentinel");
    assert_eq!(disk.count("t"), 100);
    disk.run("SELECT ttl.resume('t')");
    disk.wait_for_none("t");
}

#[test]
fn a_pause_ends_by_itself() {
    let server = Server::start_sweeping(&[("ttl.naptime", "1h")]);
    let database = server.database("app");
    let mut disk = database.disk();
    // Nobody needs to write for it.
    resting(
        &mut disk,
        "t",
        "ttl.pause('t', clock_timestamp() + interval '8 s')",
    );
    disk.wait_for_none("t");
    let late = "SELECT clock_timestamp() >= to_timestamp((label::jsonb ->> 'paused_until')::float8)
                  FROM pg_seclabels WHERE objoid = 't'::regclass AND provider = 'ttl'";
    assert_eq!(disk.value(late), "t", "deleted before the pause was over");
}

/// A turn that is going on stops: `ttl.pause` returns when its batch is over, and no row is deleted
/// afterwards.
#[test]
fn nothing_is_deleted_once_pause_has_returned() {
    let server = Server::start_sweeping(&[("ttl.batch_size", "10"), ("ttl.guard_fraction", "1")]);
    let database = server.database("app");
    let mut disk = with_sentinel(&database);
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN PERFORM pg_sleep(0.002); RETURN OLD; END $$;
         CREATE TRIGGER slow BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    disk.insert_expired("t", 1, 5000);
    disk.wait_until("SELECT count(*) < 5000 FROM t", "t", PATIENCE);
    disk.run("SELECT ttl.pause('t')");
    let left = disk.count("t");
    assert!(left > 0, "the worker was faster than the test");
    for _ in 0..2 {
        disk.look_again("sentinel");
        assert_eq!(disk.count("t"), left);
    }
    let failed = "SELECT last_error IS NOT NULL FROM ttl.stats WHERE relation = 't'::regclass";
    assert_eq!(disk.value(failed), "f", "a pause is no error");
}

#[test]
fn rows_are_deleted_within_the_window_only() {
    let server = Server::start_sweeping(&[("log_timezone", "Asia/Kathmandu"), ("timezone", "UTC")]);
    let database = server.database("app");
    let mut disk = with_sentinel(&database);
    resting(
        &mut disk,
        "closed",
        &format!(
            "ttl.set_option('closed', 'delete_between', {})",
            hours(false)
        ),
    );
    resting(
        &mut disk,
        "open",
        &format!("ttl.set_option('open', 'delete_between', {})", hours(true)),
    );
    disk.wait_for_none("open");
    for _ in 0..2 {
        disk.look_again("sentinel");
        assert_eq!(disk.count("closed"), 100);
    }
    assert_eq!(worker_says(&mut disk, "closed"), "outside delete_between");
    figures_are_known(&mut disk, "closed");
    disk.run("SELECT ttl.set_option('closed', 'delete_between', NULL)");
    disk.wait_for_none("closed");
}

/// M11: whole partitions wait, too.
#[test]
fn a_partition_waits_as_a_whole() {
    let server = Server::start_sweeping(&[("ttl.empty_partition_age", "0")]);
    let database = server.database("app");
    let mut disk = with_sentinel(&database);
    disk.run(
        "CREATE TABLE p (id integer, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
         SELECT ttl.enable('p', 60, drop_partitions => true); SELECT ttl.pause('p');
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')",
    );
    disk.look_again("sentinel");
    disk.look_again("sentinel");
    assert_eq!(disk.value("SELECT to_regclass('p1') IS NULL"), "f");
    disk.run("SELECT ttl.resume('p')");
    disk.wait_until("SELECT to_regclass('p1') IS NULL", "t", PATIENCE);
}
