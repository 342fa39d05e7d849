//! M13, M14: workers delete what expires by an expression or in a time zone, by that index, and nothing
//! else.

use ttl_ext_e2e::{PATIENCE, Server};

/// Every form at once, with the conditions written again in plain SQL.
#[test]
fn workers_delete_by_expressions_and_zones() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("expressions");
    let mut disk = database.connect();
    disk.run(
        "SET ttl.show_expired = on;
         SELECT setseed(0.25);
         CREATE TABLE source AS
         SELECT id, id % 8 AS kind, at, (random() * 4000000)::integer AS seconds,
                CASE WHEN id % 8 = 3 THEN extract(epoch FROM at)::bigint::text ELSE 'word' END AS val,
                extract(epoch FROM at)::integer AS epoch, extract(epoch FROM at)::bigint * 1000 AS ms,
                CASE WHEN id % 3 = 0 THEN 'never' ELSE to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') END AS words,
                at AT TIME ZONE 'America/New_York' AS local, (at AT TIME ZONE 'Asia/Tokyo')::date AS day
           FROM generate_series(1, 6000) AS id,
                LATERAL (SELECT now() - interval '30 days' + (id % 1009) * interval '61 minutes' AS at) AS s;
         CREATE TABLE t (LIKE source);
         CREATE VIEW expected AS SELECT * FROM source WHERE (
               kind = 0 AND at + seconds * interval '1 second' <= now()
            OR kind = 1 AND epoch <= extract(epoch FROM now()) - 600
            OR kind = 2 AND ms <= extract(epoch FROM now()) * 1000
            OR CASE WHEN kind = 3 THEN val::bigint <= extract(epoch FROM now()) END
            OR kind = 4 AND words <> 'never' AND at <= now() - interval '1 hour'
            OR kind = 5 AND timezone('America/New_York', local) <= now()
            OR kind = 6 AND timezone('Asia/Tokyo', day::timestamp) <= now()
            OR kind = 7 AND timezone('America/New_York', local + seconds * interval '1 second') <= now()
         ) IS NOT TRUE;
         CREATE INDEX t_sum ON t (ttl.add_seconds(at, seconds)) WHERE kind = 0;
         CREATE INDEX t_epoch ON t (ttl.from_epoch(epoch) DESC) WHERE kind = 1;
         CREATE INDEX t_ms ON t (to_timestamp(ms / 1000.0)) WHERE kind = 2;
         CREATE INDEX t_val ON t (ttl.from_epoch(val::bigint)) WHERE kind = 3;
         CREATE INDEX t_words ON t (ttl.from_iso8601(words)) WHERE kind = 4;
         CREATE INDEX t_local ON t (local) WHERE kind = 5;
         CREATE INDEX t_day ON t (day) WHERE kind = 6;
         CREATE INDEX t_local_sum ON t (ttl.add_seconds(local, seconds)) WHERE kind = 7;
         SELECT ttl.expire_index('t_sum', 0), ttl.expire_index('t_epoch', 600), ttl.expire_index('t_ms', 0),
                ttl.expire_index('t_val', 0), ttl.expire_index('t_words', 3600),
                ttl.expire_index('t_local', 0, time_zone => 'America/New_York'),
                ttl.expire_index('t_day', 0, time_zone => 'Asia/Tokyo'),
                ttl.expire_index('t_local_sum', 0, time_zone => 'America/New_York');
         INSERT INTO t TABLE source",
    );
    let expected = "SELECT count(*) FROM expected";
    let count = disk.value(expected);
    disk.wait_until("SELECT count(*) FROM t", &count, 2 * PATIENCE);
    let wrong = disk.column(
        "SELECT to_jsonb(x) FROM (TABLE t EXCEPT ALL TABLE expected) AS x
         UNION ALL SELECT to_jsonb(x) FROM (TABLE expected EXCEPT ALL TABLE t) AS x LIMIT 5",
    );
    assert!(wrong.is_empty(), "{wrong:?}");
    disk.run("RESET ttl.show_expired");
    assert_eq!(disk.value("SELECT count(*) FROM t"), count);
    // What expires soon is found by the index, at its time.
    disk.run(
        "SET ttl.show_expired = on;
         INSERT INTO t (id, kind, at, seconds) VALUES (-1, 0, now() - interval '58 s', 60);
         INSERT INTO t (id, kind, local) VALUES (-2, 5, now() AT TIME ZONE 'America/New_York' + interval '2 s');
         INSERT INTO t (id, kind, ms) VALUES (-3, 2, (extract(epoch FROM now()) + 2) * 1000)",
    );
    disk.wait_until("SELECT count(*) FROM t WHERE id < 0", "0", PATIENCE);
    let state = "SELECT blocked_rows || coalesce(last_error, '') FROM ttl.stats";
    assert_eq!(disk.value(state), "0");
    let problems = "SELECT problems FROM ttl.tables";
    assert_eq!(disk.value(problems), "{}");
}

/// A policy with a zone and an expression comes back from a dump: the label names the zone, and the
/// index is there again.
#[test]
fn zones_are_the_policys_in_every_session() {
    let server = Server::start(&[("timezone", "Asia/Tokyo")]);
    let database = server.database("zones");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE s (id integer, expire timestamp);
         CREATE INDEX s_expire ON s (expire);
         SELECT ttl.expire_index('s_expire', 0);
         INSERT INTO s VALUES (1, now() AT TIME ZONE 'Asia/Tokyo' + interval '1 hour'),
                              (2, now() AT TIME ZONE 'Asia/Tokyo' - interval '1 hour')",
    );
    for zone in [
        "Asia/Tokyo",
        "UTC",
        "America/New_York",
        "Pacific/Kiritimati",
    ] {
        let mut other = database.connect();
        other.run(&format!("SET TimeZone = '{zone}'"));
        assert_eq!(other.column("SELECT id FROM s"), ["1"], "{zone}");
    }
    let zone = "SELECT rules->0->>'timeZone' FROM ttl.tables";
    assert_eq!(session.value(zone), "Asia/Tokyo");
}

/// M14: a table that inherits loses the index. From then on no session evaluates the expression, which may fail for
/// rows that the index no longer checks.
#[test]
fn a_child_that_loses_the_index() {
    let server = Server::start(&[]);
    let database = server.database("childless");
    let (mut session, mut other) = (database.connect(), database.connect());
    session.run(
        "CREATE TABLE parent (val text); CREATE TABLE child () INHERITS (parent);
         CREATE INDEX parent_val ON parent (ttl.from_epoch(val::bigint));
         CREATE INDEX child_val ON child (ttl.from_epoch(val::bigint));
         SELECT ttl.expire_index('parent_val', 0);
         INSERT INTO parent VALUES ('1'), ('9999999999'); INSERT INTO child VALUES ('1'), ('9999999999')",
    );
    let count = "SELECT count(*) FROM parent";
    assert_eq!(other.value(count), "2");
    session.run("DROP INDEX child_val; INSERT INTO child VALUES ('word')");
    assert_eq!(session.value(count), "5");
    assert_eq!(other.value(count), "5");
    assert_eq!(other.value("SELECT count(*) FROM ONLY parent"), "2");
}

/// A table that inherits and has no index on the expression puts the rule out of force; so does a partition's index that is
/// missing. Both ways are said, and what expires by coming into force is deleted after `ttl.change_delay`.
#[test]
fn coming_into_force_is_no_surprise() {
    let server = Server::start_sweeping(&[("ttl.change_delay", "60")]);
    let database = server.database("in_force");
    let mut disk = database.connect();
    disk.run(
        "SET ttl.show_expired = on;
         CREATE TABLE p (id int, at text);
         CREATE INDEX p_at ON p (ttl.from_iso8601(at)); SELECT ttl.expire_index('p_at', 0);
         CREATE TABLE q (id int, at timestamptz) PARTITION BY LIST (id); CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);
         CREATE TABLE r (at timestamptz); CREATE INDEX r_at ON r (at); SELECT ttl.expire_index('r_at', 0);
         CREATE INDEX q_at ON ONLY q (at); SELECT ttl.expire_index('q_at', 0); CREATE INDEX q1_at ON q1 (at)",
    );
    let ends = "no row of table public.p expires by TTL index p_at from now on";
    let begins = |table: &str, index: &str| {
        format!("rows of table public.{table} expire by TTL index {index} from now on")
    };
    for (statement, said) in [
        ("CREATE TABLE c () INHERITS (p)", ends.to_owned()),
        (
            "CREATE INDEX c_at ON c (ttl.from_iso8601(at))",
            begins("p", "p_at"),
        ),
        ("DROP INDEX c_at", ends.to_owned()),
        (
            "CREATE INDEX CONCURRENTLY c_at ON c (ttl.from_iso8601(at))",
            begins("p", "p_at"),
        ),
        ("CREATE TABLE d (id int, at text)", String::new()),
        ("ALTER TABLE d INHERIT p", ends.to_owned()),
        ("ALTER TABLE d NO INHERIT p", begins("p", "p_at")),
        ("ALTER TABLE d INHERIT p", ends.to_owned()),
        ("CREATE TABLE e () INHERITS (c)", ends.to_owned()),
        ("DROP TABLE e", String::new()),
        ("DROP TABLE d", begins("p", "p_at")),
        ("CREATE TABLE d () INHERITS (p)", ends.to_owned()),
        (
            "INSERT INTO p VALUES (1, '2000-01-01T00:00:00Z')",
            String::new(),
        ),
        (
            "CREATE INDEX d_at ON d (ttl.from_iso8601(at))",
            begins("p", "p_at"),
        ),
        ("INSERT INTO q VALUES (1, '2000-01-01')", String::new()),
        (
            "ALTER INDEX q_at ATTACH PARTITION q1_at",
            begins("q", "q_at"),
        ),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'r_at'::regclass",
            String::new(),
        ),
        ("REINDEX SCHEMA public", begins("r", "r_at")),
    ] {
        let count = |server: &Server| server.log_lines(&["WARNING:", "from now on"]).len();
        let before = count(&server);
        disk.run(statement);
        let all = server.log_lines(&["WARNING:", "from now on"]);
        match said.as_str() {
            "" => assert_eq!(all.len(), before, "{statement}: {all:#?}"),
            said => {
                assert_eq!(all.len(), before + 1, "{statement}: {all:#?}");
                assert!(all[before].contains(said), "{statement}: {all:#?}");
            }
        }
    }
    let mut reader = database.connect();
    assert_eq!(reader.value("SELECT count(*) FROM p"), "0");
    assert_eq!(reader.value("SELECT count(*) FROM q"), "0");
    // Nothing goes before its time: tables that expire now are served meanwhile.
    disk.run("CREATE TABLE now (at timestamptz); SELECT ttl.expire_after('now', 'at', 0, confirm => true)");
    disk.run("INSERT INTO now VALUES ('2000-01-01')");
    assert_eq!(disk.value("SELECT count(*) FROM p"), "1");
    assert_eq!(disk.value("SELECT count(*) FROM q"), "1");
}

/// What other sessions know of a table, and the transaction itself, is forgotten with a table that inherits from it, however far
/// below: when it comes or goes, and when it gets its index or loses it.
#[test]
fn whoever_inherits_is_known_everywhere() {
    let server = Server::start(&[]);
    let database = server.database("inherits");
    let (mut session, mut other) = (database.connect(), database.connect());
    session.run(
        "CREATE TABLE p (id int, at text); CREATE INDEX p_at ON p (ttl.from_iso8601(at)); SELECT ttl.expire_index('p_at', 0);
         CREATE TABLE c () INHERITS (p); CREATE INDEX c_at ON c (ttl.from_iso8601(at));
         INSERT INTO p VALUES (1, '2000-01-01T00:00:00Z');
         CREATE TABLE above (id int); CREATE TABLE between () INHERITS (above)",
    );
    let rows = "SELECT count(*) FROM p";
    for (statement, seen) in [
        ("CREATE TABLE gc () INHERITS (c)", "1"),
        ("CREATE INDEX gc_at ON gc (ttl.from_iso8601(at))", "0"),
        ("DROP INDEX gc_at", "1"),
        ("DROP TABLE gc", "0"),
        ("CREATE TABLE gc () INHERITS (c)", "1"),
        ("DROP TABLE c CASCADE", "0"),
    ] {
        other.value(rows);
        session.run(&format!("BEGIN; {statement}"));
        assert_eq!(session.value(rows), seen, "within: {statement}");
        session.run("COMMIT");
        assert_eq!(other.value(rows), seen, "elsewhere: {statement}");
    }
    // What is rolled back is as it was.
    session.run("CREATE TABLE c () INHERITS (p); CREATE TABLE live (id int); CREATE TABLE dies () INHERITS (live); SELECT ttl.enable('dies', 60)");
    assert_eq!(session.value(rows), "1");
    session.run("BEGIN; SAVEPOINT a; DROP TABLE c; DROP TABLE dies");
    assert_eq!(session.value(rows), "0");
    session.run("UPDATE live SET id = 1; ROLLBACK TO a");
    assert_eq!(session.value(rows), "1");
    session.run("DROP TABLE dies; UPDATE live SET id = 1; ROLLBACK");
    assert_eq!(session.value(rows), "1");
    assert_eq!(
        session.error("UPDATE live SET id = 1").code().code(),
        "0A000"
    );
    let write = "UPDATE above SET id = id";
    for (statement, code) in [
        (
            "CREATE TABLE below () INHERITS (between); SELECT ttl.enable('below', 60)",
            Some("0A000"),
        ),
        ("DROP TABLE below", None),
    ] {
        let _ = other.try_run(write);
        session.run(statement);
        let failed = other.try_run(write).err();
        let failed = failed.and_then(|error| error.code().map(|code| code.code().to_owned()));
        assert_eq!(failed.as_deref(), code, "{statement}");
    }
}

/// A temporary table of another session that inherits is no child, as to PostgreSQL's own queries.
#[test]
fn another_sessions_temporary_table_is_no_child() {
    let server = Server::start(&[]);
    let database = server.database("temporary_child");
    let (mut session, mut other) = (database.connect(), database.connect());
    session.run(
        "CREATE TABLE p (id int, at text); CREATE INDEX p_at ON p (ttl.from_iso8601(at)); SELECT ttl.expire_index('p_at', 0);
         INSERT INTO p VALUES (1, '2000-01-01T00:00:00Z');
         CREATE TABLE q (id int); CREATE TABLE r (id int PRIMARY KEY); SELECT ttl.enable('r', 60); INSERT INTO r VALUES (1)",
    );
    other.run(
        "CREATE TEMP TABLE pc () INHERITS (p); CREATE TEMP TABLE qc () INHERITS (q); SELECT ttl.enable('qc', 60);
         CREATE TEMP TABLE rc () INHERITS (r); INSERT INTO rc VALUES (2)",
    );
    assert_eq!(session.value("SELECT count(*) FROM p"), "0");
    session.run("UPDATE q SET id = 2; SELECT ttl.purge('r'), ttl.set_default('r', 120)");
    assert_eq!(
        session.value("SELECT count(*) FROM ttl.check() WHERE problem LIKE '%pg_temp%'"),
        "0"
    );
}
