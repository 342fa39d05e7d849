//! M9, complaints 6 and 9: users can see what deletion has done, and tell it from users' own
//! deletions.

use std::sync::OnceLock;

use ttl_ext_e2e::{PATIENCE, Server, Session, lacks_library};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        Server::start_sweeping(&[("wal_level", "logical"), ("ttl.logical_messages", "on")])
    })
}

const COLUMNS: [&str; 16] = [
    "relation regclass",
    "rows_deleted bigint",
    "batches bigint",
    "passes bigint",
    "sub_passes bigint",
    "partitions_dropped bigint",
    "last_pass_at timestamp with time zone",
    "last_pass_ms double precision",
    "lag interval",
    "backlog_estimate bigint",
    "blocked_rows bigint",
    "time_used_ms double precision",
    "slow boolean",
    "last_error text",
    "last_error_at timestamp with time zone",
    "stats_reset timestamp with time zone",
];

/// M9: the view's columns: zeros at first, then counters that count.
#[test]
fn counters() {
    let database = server().database("counters");
    let mut disk = database.disk();
    let columns = disk.column(
        "SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
          WHERE attrelid = 'ttl.stats'::regclass AND attnum > 0 ORDER BY attnum",
    );
    assert_eq!(columns, COLUMNS);
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         INSERT INTO t VALUES (0)",
    );
    assert_eq!(
        disk.rows("SELECT relation, rows_deleted, batches, partitions_dropped, blocked_rows, last_error, last_error_at FROM ttl.stats"),
        [["t", "0", "0", "0", "0", "∅", "∅"]]
    );
    for (from, to) in [(1, 1000), (1001, 1300)] {
        disk.insert_expired("t", from, to);
        disk.wait_for_ids("t", "0");
        disk.wait_until(
            "SELECT rows_deleted FROM ttl.stats WHERE relation = 't'::regclass",
            &to.to_string(),
            PATIENCE,
        );
    }
    disk.wait_until(
        "SELECT batches >= 2 AND passes >= 2 AND sub_passes >= passes AND last_pass_at <= now()
                AND last_pass_ms >= 0 AND backlog_estimate = 0 AND COALESCE(lag, '0') < interval '1 minute'
           FROM ttl.stats WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    // At a glance: the row that is left.
    disk.wait_until(
        "SELECT default_interval = '1 hour' AND next_expiry > now() + interval '50 minutes'
                AND backlog = 0 AND backlog_estimate = 0 AND worker IN ('running', 'sleeping')
           FROM ttl.tables JOIN ttl.stats USING (relation) WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    assert_eq!(disk.value("SELECT stats_reset FROM ttl.stats"), "∅");
    // A user's DELETE is not counted; 2 rows are those of `look_again`.
    disk.run("INSERT INTO t VALUES (5); DELETE FROM t WHERE id = 5");
    disk.look_again("t");
    disk.wait_until(
        "SELECT rows_deleted FROM ttl.stats WHERE relation = 't'::regclass",
        "1302",
        PATIENCE,
    );
    // The table's row disappears with its policy.
    disk.run("SECURITY LABEL FOR ttl ON TABLE t IS NULL");
    assert_eq!(disk.value("SELECT count(*) FROM ttl.stats"), "0");
}

/// `ttl.reset_stats` sets counters to zero, a partitioned table's with its partitions', for
/// those who have the privilege; what happened last stays, and a restart keeps the time.
#[test]
fn counters_are_reset() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("d");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE TABLE p (id integer) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p DEFAULT;
         SELECT ttl.enable('p', 3600); CREATE TABLE plain (id integer); CREATE ROLE guest LOGIN",
    );
    for table in ["t", "p"] {
        disk.insert_expired(table, 1, 100);
        disk.wait_until(
            &format!("SELECT rows_deleted FROM ttl.stats WHERE relation = '{table}'::regclass"),
            "100",
            PATIENCE,
        );
        disk.wait_until(
            &format!("SELECT last_pass_at IS NOT NULL FROM ttl.stats WHERE relation = '{table}'::regclass"),
            "t",
            PATIENCE,
        );
    }
    server.reload(&[("ttl.enabled", "off")]);
    disk.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker'",
        "0",
        PATIENCE,
    );
    let refused = database
        .connect_as("guest")
        .error("SELECT ttl.reset_stats('t')");
    assert_eq!(refused.code().code(), "42501");
    assert_eq!(
        disk.error("SELECT ttl.reset_stats('plain')").code().code(),
        "55000"
    );
    // A partition is reset with its table only.
    assert_eq!(
        disk.error("SELECT ttl.reset_stats('p1')").code().code(),
        "42809"
    );
    let shown = "SELECT relation, rows_deleted + batches + passes + sub_passes + partitions_dropped = 0, time_used_ms = 0,
                        last_pass_at IS NOT NULL, stats_reset BETWEEN now() - interval '1 hour' AND clock_timestamp()
                   FROM ttl.stats ORDER BY relation::text";
    disk.run("SELECT ttl.reset_stats('p')");
    let reset = ["p", "t", "t", "t", "t"];
    assert_eq!(disk.rows(shown), [reset, ["t", "f", "f", "t", "∅"]]);
    disk.run("SELECT ttl.reset_stats()");
    let both = [reset, ["t", "t", "t", "t", "t"]];
    assert_eq!(disk.rows(shown), both);
    drop(disk);
    server.restart();
    assert_eq!(database.disk().rows(shown), both);
}

/// Counters survive a restart but not a crash; the backlog is looked at again after both.
#[test]
fn counters_survive_a_restart() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("d");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE TABLE p (id integer) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p DEFAULT;
         SELECT ttl.enable('p', 3600); CREATE TABLE gone (id integer); SELECT ttl.enable('gone', 3600)",
    );
    for table in ["t", "p", "gone"] {
        disk.insert_expired(table, 1, 100);
        disk.wait_until(&format!("SELECT count(*) FROM {table}"), "0", PATIENCE);
    }
    let counted = "SELECT relation, rows_deleted, batches >= 1, sub_passes >= 1, last_pass_at, last_pass_ms > 0, time_used_ms > 0
         FROM ttl.stats WHERE relation IN ('t'::regclass, 'p'::regclass) ORDER BY relation::text";
    let all = |session: &mut Session| {
        let rows = session.rows(counted);
        rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>()
    };
    disk.run("DROP TABLE gone");
    server.reload(&[("ttl.enabled", "off")]);
    disk.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker'",
        "0",
        PATIENCE,
    );
    let before = all(&mut disk);
    assert!(before[0].contains(" 100 t t"), "{before:?}");
    server.restart();
    let mut disk = database.disk();
    assert_eq!(all(&mut disk), before);
    server.reload(&[("ttl.enabled", "on")]);
    disk.insert_expired("t", 1, 100);
    disk.wait_until(
        "SELECT rows_deleted FROM ttl.stats WHERE relation = 't'::regclass",
        "200",
        PATIENCE,
    );
    disk.wait_until("SELECT count(*) FROM ttl.stats", "2", PATIENCE);
    // Otherwise deletions are lost in the crash, repeated, and counted again.
    disk.run("CHECKPOINT");
    drop(disk);
    server.kill_postmaster();
    server.launch();
    let mut disk = database.disk();
    disk.wait_until(
        "SELECT coalesce(sum(rows_deleted), 0) FROM ttl.stats",
        "0",
        PATIENCE,
    );
}

/// Partitions are summed up under the table that has the policy.
#[test]
fn sums_of_partitions() {
    let database = server().database("sums");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE p (id integer) PARTITION BY HASH (id);
         CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 0);
         CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 1) PARTITION BY HASH (id);
         CREATE TABLE p1a PARTITION OF p1 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
         CREATE TABLE p2 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 2);
         SELECT ttl.enable('p', 3600)",
    );
    disk.insert_expired("p", 1, 3000);
    disk.wait_for_none("p");
    disk.wait_until(
        "SELECT string_agg(relation::text || ' ' || rows_deleted, ', ') FROM ttl.stats",
        "p 3000",
        PATIENCE,
    );
}

/// While rows cannot be deleted: how many, and for how long.
#[test]
fn lag_and_backlog() {
    let database = server().database("lag");
    let mut disk = database.disk();
    // Rows that expire while a lock keeps the workers from them.
    let mut locker = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    database.without_workers(|| {
        disk.insert_expired("t", 1, 5000);
        disk.run("ANALYZE t");
        locker.run("BEGIN; LOCK TABLE t IN SHARE MODE");
        assert_eq!(locker.count("t"), 5000);
    });
    disk.wait_until(
        "SELECT lag > interval '5 seconds' AND backlog_estimate > 0 FROM ttl.stats WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    disk.wait_until(
        "SELECT next_expiry < now() AND backlog > 0 AND worker IN ('running', 'sleeping')
           FROM ttl.tables WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    locker.run("COMMIT");
    disk.wait_for_none("t");
    disk.wait_until(
        "SELECT COALESCE(lag, '0') < interval '2 seconds' AND backlog_estimate = 0 FROM ttl.stats WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
}

/// Error texts may quote rows, so not everyone sees them.
#[test]
fn errors_are_for_the_owner() {
    let database = server().database("errors");
    let mut disk = database.disk();
    disk.run(
        "CREATE ROLE stats_owner LOGIN; CREATE ROLE stats_guest LOGIN; CREATE ROLE stats_monitor LOGIN;
         CREATE ROLE stats_reader LOGIN; GRANT pg_read_all_stats TO stats_monitor;
         CREATE SCHEMA s AUTHORIZATION stats_owner; SET ROLE stats_owner;
         CREATE TABLE s.t (id integer PRIMARY KEY); SELECT ttl.enable('s.t', 3600);
         CREATE TABLE s.child (id integer REFERENCES s.t);
         INSERT INTO s.t SELECT n FROM generate_series(1, 10) AS n; INSERT INTO s.child VALUES (5);
         GRANT SELECT ON s.t TO stats_reader; RESET ROLE; GRANT USAGE ON SCHEMA s TO PUBLIC",
    );
    disk.run_preserving("UPDATE s.t SET _ts = now() - interval '1 day'");
    disk.wait_for_ids("s.t", "5");
    let query = "SELECT blocked_rows, last_error LIKE '%foreign key%' FROM ttl.stats WHERE relation = 's.t'::regclass";
    disk.wait_until(
        &format!("SELECT (SELECT count(*) FROM ({query}) AS q (a, b) WHERE a = 1 AND b)"),
        "1",
        PATIENCE,
    );
    for (user, expected) in [
        ("stats_owner", ["1", "t"]),
        ("stats_monitor", ["1", "t"]),
        ("stats_reader", ["1", "∅"]),
        ("stats_guest", ["∅", "∅"]),
    ] {
        let rows = database.connect_as(user).rows(query);
        assert_eq!(rows, [expected], "{user}");
    }
}

/// Logical decoding: deletions by workers and `ttl.purge` are marked if that is asked for, those of
/// users are not.
#[test]
fn deletions_are_marked() {
    if lacks_library("test_decoding", "stats::deletions_are_marked") {
        return;
    }
    let database = server().database("decoded");
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    disk.run("SELECT pg_create_logical_replication_slot('ttl_slot', 'test_decoding')");
    disk.run("INSERT INTO t SELECT n FROM generate_series(5001, 5020) AS n; DELETE FROM t WHERE id < 5011");
    disk.insert_expired("t", 1, 1000);
    disk.wait_for_ids("t", "5011 5012 5013 5014 5015 5016 5017 5018 5019 5020");
    // In one transaction the worker cannot come between.
    disk.run_preserving(
        "INSERT INTO t (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(2001, 2100) AS n;
         SELECT ttl.purge('t')",
    );
    // P2: some consumers fail at messages.
    disk.run("SET ttl.logical_messages = off");
    disk.run_preserving(
        "INSERT INTO t (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(3001, 3005) AS n;
         SELECT ttl.purge('t')",
    );
    let lines = disk.column(
        "SELECT data FROM pg_logical_slot_get_changes('ttl_slot', NULL, NULL, 'include-xids', '0', 'include-timestamp', '0')",
    );
    let (mut marked, mut unmarked) = (0, 0);
    for transaction in lines.split(|line| line.starts_with("COMMIT")) {
        let of = |what: &str| {
            transaction
                .iter()
                .filter(|line| line.contains(what))
                .count()
        };
        let deleted = of("table public.t: DELETE:");
        let position = |event: &str| {
            let event = format!("\"event\":\"{event}\"");
            let found = |line: &String| {
                line.contains("prefix: ttl,")
                    && line.contains("public.t")
                    && line.replace(' ', "").contains(&event)
            };
            transaction.iter().position(found)
        };
        match (position("begin"), position("end")) {
            (Some(begin), Some(end)) => {
                let between = transaction[begin..end].iter();
                let announced = between
                    .filter(|line| line.contains("table public.t: DELETE:"))
                    .count();
                assert_eq!(announced, deleted, "{transaction:#?}");
                let rows = format!("\"rows\":{deleted}}}");
                assert!(
                    transaction[end].replace(' ', "").contains(&rows),
                    "{}",
                    transaction[end]
                );
                marked += deleted;
            }
            (None, None) => {
                assert_eq!(of("prefix: ttl"), 0, "{transaction:#?}");
                unmarked += deleted;
            }
            other => panic!("{other:?} in {transaction:#?}"),
        }
    }
    assert_eq!((marked, unmarked), (1100, 15));
    disk.run("SELECT pg_drop_replication_slot('ttl_slot')");
}
