//! C6, C15: ways to reach rows that PostgreSQL 19 has and 18 had not
//! (`docs/compatibility.md`).

use ttl_ext_e2e::{Database, Server, Session};

/// The tables have rows 1 (live) and 2 (expired).
const TABLES: &str = "
CREATE TABLE t (id integer PRIMARY KEY, what text);
CREATE TABLE parts (id integer PRIMARY KEY, what text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (2);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (2) TO (100);
SELECT ttl.enable('t', 3600), ttl.enable('parts', 3600);
SET ttl.preserve_ts = on;
INSERT INTO t VALUES (1, 'live', now()), (2, 'expired', now() - interval '1 day');
INSERT INTO parts VALUES (1, 'live', now()), (2, 'expired', now() - interval '1 day');
RESET ttl.preserve_ts";

/// Runs the test on a server with these tables, from 19 on.
fn on_19(settings: &[(&str, &str)], test: impl FnOnce(&Database<'_>, &mut Session)) {
    let server = Server::start(settings);
    if server.major() < 19 {
        println!("SKIPPED: since PostgreSQL 19");
        return;
    }
    let database = server.database("app");
    let mut session = database.connect();
    session.run(TABLES);
    test(&database, &mut session);
}

#[test]
fn copy_of_a_partitioned_table() {
    on_19(&[], |_, session| {
        assert_eq!(
            session.copy_out("COPY parts (id, what) TO STDOUT"),
            ["1\tlive"]
        );
        assert_eq!(session.copy_out("COPY parts_2 (id) TO STDOUT"), [""; 0]);
        assert_eq!(
            session.copy_out("COPY t (id, what) TO STDOUT (FORMAT json)"),
            [r#"{"id":1,"what":"live"}"#]
        );
        session.run("SET ttl.show_expired = on");
        assert_eq!(session.copy_out("COPY parts (id) TO STDOUT"), ["1", "2"]);
    });
}

/// An expired row whose deletion a trigger refuses keeps its key, and is returned to nobody.
#[test]
fn on_conflict_do_select() {
    on_19(&[], |_, session| {
        session.run(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             CREATE TRIGGER keep BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep();
             CREATE TRIGGER keep BEFORE DELETE ON parts FOR EACH ROW EXECUTE FUNCTION keep()",
        );
        for table in ["t", "parts"] {
            for (clause, live) in [
                ("", "1|live"),
                ("FOR UPDATE", "1|live"),
                ("WHERE t.what <> ''", "1|live"),
                ("FOR KEY SHARE WHERE t.what = excluded.what", ""),
            ] {
                let select = |id: i32| {
                    format!(
                        "INSERT INTO {table} AS t (id, what) VALUES ({id}, 'new')
                         ON CONFLICT (id) DO SELECT {clause} RETURNING id, what"
                    )
                };
                assert_eq!(
                    session.column(&select(1)).join(""),
                    live,
                    "{table} {clause}"
                );
                assert_eq!(session.column(&select(2)), [""; 0], "{table} {clause}");
                let within = format!("WITH x AS ({}) SELECT * FROM x", select(2));
                assert_eq!(session.column(&within), [""; 0], "{table} {clause}");
            }
        }
        // Without the trigger, the key is free.
        session.run("DROP TRIGGER keep ON t");
        let insert = "INSERT INTO t VALUES (2, 'new') ON CONFLICT (id) DO SELECT RETURNING what";
        assert_eq!(session.value(insert), "new");
        session.run("SET ttl.show_expired = on");
        let expired =
            "INSERT INTO parts VALUES (2, 'new') ON CONFLICT (id) DO SELECT RETURNING what";
        assert_eq!(session.value(expired), "expired");
    });
}

/// C15: it locks rows as SELECT … FOR UPDATE does, also in WITH.
#[test]
fn rows_that_on_conflict_do_select_locks() {
    on_19(&[], |database, session| {
        for statement in [
            "INSERT INTO t VALUES (1, 'new') ON CONFLICT (id) DO SELECT FOR UPDATE RETURNING id",
            "WITH x AS (INSERT INTO t VALUES (1, 'new') ON CONFLICT (id) DO SELECT FOR SHARE RETURNING id) SELECT * FROM x",
        ] {
            let mut session = database.connect();
            session.run_preserving(
                "INSERT INTO t (id, what, _ts) VALUES (1, 'live', now() - interval '3598 seconds')
                 ON CONFLICT (id) DO UPDATE SET _ts = excluded._ts",
            );
            session.run("BEGIN");
            assert_eq!(session.value(statement), "1");
            session.run("SELECT pg_sleep(3)"); // until the row expires
            assert_eq!(
                session.value("SELECT what FROM t WHERE id = 1"),
                "live",
                "{statement}"
            );
            session.run("COMMIT");
            assert_eq!(session.value("SELECT count(*) FROM t"), "0");
        }
        assert_eq!(session.value("SELECT count(*) FROM t"), "0");
    });
}

/// The constraint of overrides is as good as dropped when it is not enforced.
#[test]
fn constraints_that_are_not_enforced() {
    on_19(&[], |_, session| {
        let constraint = session.value(
            "SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c'",
        );
        let dropped = session.error(&format!("ALTER TABLE t DROP CONSTRAINT {constraint}"));
        let unenforced = session.error(&format!(
            "ALTER TABLE t ALTER CONSTRAINT {constraint} NOT ENFORCED"
        ));
        assert_eq!(unenforced.code(), dropped.code(), "{unenforced:?}");
        session.run(&format!(
            "ALTER TABLE t ALTER CONSTRAINT {constraint} ENFORCED"
        ));
    });
}

/// REPACK writes the table anew with all its rows: none comes back, none is lost.
#[test]
fn repack() {
    on_19(&[("wal_level", "logical")], |_, session| {
        for repack in [
            "REPACK t",
            "REPACK (CONCURRENTLY) t",
            "REPACK t USING INDEX t_pkey",
        ] {
            session.run(repack);
            assert_eq!(session.column("SELECT id FROM t"), ["1"], "{repack}");
            session.run("SET ttl.show_expired = on");
            assert_eq!(
                session.column("SELECT id FROM t ORDER BY id"),
                ["1", "2"],
                "{repack}"
            );
            session.run("RESET ttl.show_expired");
        }
    });
}

/// Virtual generated columns, eager and parallel aggregation: all plans are of live rows.
#[test]
fn plans_of_19() {
    on_19(&[("max_parallel_workers_per_gather", "2")], |_, session| {
        session.run(
            "ALTER TABLE t ADD COLUMN twice integer GENERATED ALWAYS AS (id * 2) VIRTUAL;
             CREATE TABLE lines (t integer, n integer);
             INSERT INTO lines SELECT 1 + i % 2, i FROM generate_series(1, 10000) i;
             ANALYZE lines, t; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
             SET min_parallel_table_scan_size = 0; SET min_eager_agg_group_size = 1",
        );
        assert_eq!(session.column("SELECT twice FROM t WHERE twice > 0"), ["2"]);
        for eager in ["on", "off"] {
            session.run(&format!("SET enable_eager_aggregate = {eager}"));
            let rows = session.column(
                "SELECT t.id, count(*), sum(n) FROM lines JOIN t ON lines.t = t.id GROUP BY t.id",
            );
            assert_eq!(rows, ["1|5000|25005000"], "{eager}");
        }
    });
}

/// A logical slot makes the server log for decoding, whatever wal_level says.
#[test]
fn messages_without_wal_level_logical() {
    let settings = [("wal_level", "replica"), ("ttl.logical_messages", "on")];
    on_19(&settings, |_, session| {
        session.run("SELECT pg_create_logical_replication_slot('s', 'test_decoding')");
        session.run("SELECT ttl.purge('t')");
        let messages = session.value(
            "SELECT count(*) FROM pg_logical_slot_get_changes('s', NULL, NULL) WHERE data LIKE '%message%ttl%'",
        );
        assert_ne!(messages, "0");
        session.run("SELECT pg_drop_replication_slot('s')");
    });
}
