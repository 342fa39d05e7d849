//! C6, C8: hiding works on a streaming standby, which cannot write.

use ttl_ext_e2e::{PATIENCE, Server, SqlState, catch_up};

#[test]
fn a_standby_hides_expired_rows() {
    let primary = Server::start(&[("wal_level", "replica"), ("hot_standby_feedback", "on")]);
    let database = primary.database("app");
    let mut writer = database.connect();
    writer.run(
        "CREATE TABLE t (id integer PRIMARY KEY, what text);
         SELECT ttl.enable('t', 3600);
         CREATE TABLE parts (id integer) PARTITION BY RANGE (id);
         CREATE TABLE parts1 PARTITION OF parts DEFAULT;
         SELECT ttl.enable('parts', 3600);
         SET ttl.preserve_ts = on;
         INSERT INTO t (id, _ts) SELECT n, now() - n * interval '50 minutes' FROM generate_series(0, 4) AS n;
         INSERT INTO parts (id, _ts) SELECT n, now() - n * interval '50 minutes' FROM generate_series(0, 4) AS n;
         RESET ttl.preserve_ts",
    );
    let standby = primary.start_standby(&[]);
    let replica = standby.existing_database("app");
    let mut reader = replica.connect();
    catch_up(&mut writer, &mut reader);
    assert_eq!(reader.value("SELECT pg_is_in_recovery()"), "t");

    // C6: by every access path.
    reader.run(
        "SET plan_cache_mode = force_generic_plan;
         PREPARE seen AS SELECT count(*) FROM t;
         PREPARE leaf AS SELECT count(*) FROM parts1",
    );
    let mut counts = |expected: &str, when: &str| {
        for query in [
            "SELECT count(*) FROM t",
            "EXECUTE seen",
            "EXECUTE leaf",
            "SELECT count(*) FROM parts",
            "SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT 1 WHERE false) AS u",
        ] {
            assert_eq!(reader.value(query), expected, "{when}: {query}");
        }
        assert_eq!(
            reader.copy_out("COPY t TO STDOUT").len().to_string(),
            expected,
            "{when}"
        );
    };
    counts("2", "at first");

    // C8: a policy that changes on the primary.
    let changes = [
        (
            "SELECT ttl.set_default(r, 6600, revive_expired => true) FROM unnest('{t,parts}'::regclass[]) r",
            "3",
        ),
        (
            "SELECT ttl.disable(r, revive_expired => true) FROM unnest('{t,parts}'::regclass[]) r",
            "5",
        ),
        ("SELECT ttl.enable('t', 60), ttl.enable('parts', 60)", "1"),
        (
            "SELECT ttl.set_default(r, -1, revive_expired => true) FROM unnest('{t,parts}'::regclass[]) r",
            "5",
        ),
        ("UPDATE t SET ttl = 1; UPDATE parts SET ttl = 1", "0"),
    ];
    let mut second = replica.connect();
    for (change, expected) in changes {
        writer.run(change);
        // All at once, but for the last one.
        writer.wait_until("SELECT count(*) FROM t", expected, PATIENCE);
        writer.wait_until("SELECT count(*) FROM parts", expected, PATIENCE);
        catch_up(&mut writer, &mut second);
        counts(expected, change);
    }

    // Functions that write fail with PostgreSQL's own error.
    for statement in [
        "SELECT ttl.purge('t')",
        "SELECT ttl.set_default('t', 60)",
        "DELETE FROM t",
        "COPY t (id, what) FROM '/dev/null'",
        "CREATE UNIQUE INDEX ON parts (id)",
    ] {
        let error = second.error(statement);
        assert_eq!(
            *error.code(),
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "{statement}: {error:?}"
        );
    }
    // Superusers can see expired rows there too.
    second.run("SET ttl.show_expired = on");
    assert_eq!(second.value("SELECT count(*) FROM t"), "5");
    assert_eq!(second.value("SELECT count(*) FROM ttl.tables"), "2");
    // M10: a deletion on the primary arrives.
    writer.run("SELECT ttl.purge('t')");
    catch_up(&mut writer, &mut second);
    assert_eq!(second.value("SELECT count(*) FROM t"), "0");
}
