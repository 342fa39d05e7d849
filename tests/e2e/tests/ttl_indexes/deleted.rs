//! M1 to M5, M9, M12: which rows are deleted by TTL indexes, and which stay.

use std::sync::OnceLock;
use std::time::Instant;

use ttl_ext_e2e::{PATIENCE, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// Wait until deletion has visited the table twice from now on; uses rows with the `id` -1 whose
/// column `at` is in the past.
#[track_caller]
fn look_again(disk: &mut Session, table: &str) {
    for _ in 0..2 {
        disk.run(&format!(
            "INSERT INTO {table} (id, at) VALUES (-1, '1900-01-01')"
        ));
        let query = format!("SELECT count(*) FROM {table} WHERE id = -1");
        disk.wait_until(&query, "0", PATIENCE);
    }
}

/// A table of its own without TTL, and what of its rows lives: by the default of ten
/// days, by overrides, and by the TTL indexes of [`rules`], with plain arithmetic.
fn source(disk: &mut Session, rows: i32) -> String {
    disk.run(&format!(
        "SELECT setseed(0.5);
         CREATE FUNCTION pick(best integer) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
         SELECT CASE (random() * best)::integer
                WHEN 0 THEN now() - interval '40 days' - random() * interval '10 days'
                WHEN 1 THEN now() + interval '1 day' + random() * interval '9 days'
                WHEN 2 THEN '-infinity' WHEN 3 THEN 'infinity' WHEN 4 THEN '1950-01-01'
                WHEN 5 THEN '4713-01-01 BC' WHEN 6 THEN '294276-12-31' WHEN 7 THEN '2039-01-01'
                WHEN 8 THEN NULL
                ELSE now() - interval '1 day' - random() * interval '2 days' END $$;
         CREATE TABLE source AS
         SELECT id, id % 10 AS grp, CASE WHEN random() < 0.8 THEN now() ELSE now() - interval '20 days' END AS _ts,
                (ARRAY[NULL, NULL, NULL, -1, 3600, 864000])[1 + (id + random() * 2)::integer % 6] AS ttl,
                pick(14) AS at, pick(30) AT TIME ZONE 'UTC' AS moment,
                CASE WHEN random() < 0.9 THEN (pick(30) AT TIME ZONE 'UTC')::date ELSE '5874897-12-31' END AS day,
                CASE WHEN random() < 0.3 THEN '{{}}' ELSE ARRAY[pick(20), NULL, pick(20)] END AS dates,
                CASE WHEN random() < 0.3 THEN NULL ELSE ARRAY[NULL, (pick(20) AT TIME ZONE 'UTC')::date] END AS days
           FROM generate_series(1, {rows}) AS id;
         CREATE TABLE t (id integer, grp integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer,
                         at timestamptz, moment timestamp, day date, dates timestamptz[], days date[]);
         CREATE VIEW expected AS SELECT * FROM source WHERE (
            CASE WHEN ttl = -1 THEN false ELSE _ts + coalesce(ttl, 864000) * interval '1 second' <= now() END
            OR grp IN (1, 2, 3) AND isfinite(at) AND at <= now() - interval '1 hour'
            OR isfinite(moment) AND moment <= (now() AT TIME ZONE 'UTC') - interval '10 days'
            OR isfinite(day) AND (grp > 7 OR at IS NULL) AND day < (now() AT TIME ZONE 'UTC')::date
            OR (SELECT isfinite(min(d)) AND min(d) <= now() - interval '10 days' FROM unnest(dates) AS d)
            OR grp = 5 AND (SELECT isfinite(min(d)) AND min(d) <= now() - interval '10 days' FROM unnest(days) AS d)
         ) IS NOT TRUE"
    ));
    disk.value("SELECT count(*) FROM expected")
}

/// All kinds of rules for `t`.
const RULES: &str = "
    SELECT ttl.enable('t', 864000);
    SELECT ttl.create_index('t', '{\"at\": 1}', '{\"expireAfterSeconds\": 3600, \"partialFilterExpression\": \"grp IN (1, 2, 3)\"}');
    CREATE INDEX by_moment ON t (moment DESC);
    SELECT ttl.expire_index('by_moment', 864000);
    SELECT ttl.create_index('t', '{\"day\": 1}', '{\"expireAfterSeconds\": 0, \"partialFilterExpression\": \"grp > 7 OR at IS NULL\"}');
    SELECT ttl.create_index('t', '{\"dates\": -1}', '{\"expireAfterSeconds\": 864000}');
    SELECT ttl.create_index('t', '{\"days\": 1}', '{\"expireAfterSeconds\": 864000, \"partialFilterExpression\": \"grp = 5\"}')";

/// The rows of `source` on disk are the expected ones, and stay.
#[track_caller]
fn only_the_living(disk: &mut Session, expected: &str) {
    disk.wait_until("SELECT count(*) FROM t", expected, 2 * PATIENCE);
    for _ in 0..2 {
        let wrong = disk.column(
            "SELECT to_jsonb(x) FROM (TABLE t EXCEPT ALL TABLE expected) AS x
             UNION ALL SELECT to_jsonb(x) FROM (TABLE expected EXCEPT ALL TABLE t) AS x LIMIT 5",
        );
        assert!(wrong.is_empty(), "{wrong:?}");
        disk.run("INSERT INTO t (id, grp, at) VALUES (-1, 1, now() - interval '1 day')");
        disk.wait_until("SELECT count(*) FROM t WHERE id = -1", "0", PATIENCE);
    }
    // Disk and queries agree.
    disk.run("RESET ttl.show_expired");
    assert_eq!(disk.value("SELECT count(*) FROM t"), expected);
    let state = "SELECT blocked_rows || coalesce(last_error, '') FROM ttl.stats";
    assert_eq!(disk.value(state), "0");
}

/// M5: the worker deletes exactly the union of all rules. The rows come after the rules, a few at a
/// time.
#[test]
fn union_by_and_by() {
    let mut disk = server().database("trickle").disk();
    let expected = source(&mut disk, 3000);
    disk.run(RULES);
    for part in 0..10 {
        disk.run_preserving(&format!(
            "INSERT INTO t SELECT * FROM source WHERE id % 10 = {part}"
        ));
    }
    only_the_living(&mut disk, &expected);
}

/// The same with the rows before the rules, so that each rule finds many.
#[test]
fn union_of_a_backlog() {
    for (name, more) in [
        ("backlog", ""),
        (
            "backlog_sql",
            "CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
             CREATE TRIGGER gone BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION gone();",
        ),
    ] {
        let mut disk = server().database(name).disk();
        let expected = source(&mut disk, 60_000);
        disk.run("INSERT INTO t SELECT * FROM source ORDER BY random()");
        disk.run(more);
        disk.run(RULES);
        only_the_living(&mut disk, &expected);
    }
}

/// Rows that are expired on arrival are deleted within seconds, not after a naptime; so are rows
/// whose date an UPDATE moves into the past, or that an UPDATE makes match the predicate.
#[test]
fn born_expired() {
    let server = Server::start_sweeping(&[("ttl.naptime", "1h")]);
    let database = server.database("born");
    let (mut disk, mut user) = (database.disk(), database.connect());
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, kind text, at timestamptz, days date[]);
         SELECT ttl.create_index('t', '{\"at\": 1}', '{\"expireAfterSeconds\": 3600, \"partialFilterExpression\": \"kind = ''debug''\"}');
         SELECT ttl.create_index('t', '{\"days\": 1}', '{\"expireAfterSeconds\": 0}')",
    );
    let began = Instant::now();
    for (statement, stays) in [
        (
            "INSERT INTO t VALUES (1, 'debug', now() - interval '1 day'), (2, 'error', now() - interval '1 day')",
            "2",
        ),
        (
            "INSERT INTO t VALUES (3, NULL, NULL, '{infinity,1990-01-01}'), (4, NULL, NULL, '{-infinity,1990-01-01}')",
            "2 4",
        ),
        ("INSERT INTO t VALUES (5, 'debug', now())", "2 4 5"),
        (
            "UPDATE t SET at = now() - interval '2 hours' WHERE id = 5",
            "2 4",
        ),
        ("UPDATE t SET kind = 'debug' WHERE id = 2", "4"),
        ("UPDATE t SET days[1] = '1960-01-01'", ""),
        (
            "INSERT INTO t SELECT n, 'debug', now() - n * interval '1 day' FROM generate_series(1, 1000) AS n",
            "",
        ),
    ] {
        user.run(statement);
        disk.wait_for_ids("t", stays);
    }
    assert!(
        user.copy_in("COPY t (id, kind, at) FROM STDIN", "1\tdebug\t2001-01-01\n")
            .is_ok()
    );
    disk.wait_for_none("t");
    // All waits together took less than a naptime.
    println!("all of it took {:?}", began.elapsed());
}

/// More TTL indexes than have a stored position: all are swept.
#[test]
fn many_indexes() {
    let mut disk = server().database("many").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, at timestamptz);
         DO $$ BEGIN
             FOR n IN 0..24 LOOP
                 PERFORM ttl.create_index('t', '{\"at\": 1}', jsonb_build_object('name', 'i' || n, 'expireAfterSeconds', 600 * n,
                     'partialFilterExpression', format('id %% 25 = %s', n)));
             END LOOP;
         END $$",
    );
    for _ in 0..3 {
        disk.run(
            "INSERT INTO t SELECT n, now() - interval '1 day' FROM generate_series(1, 2000) AS n
             ON CONFLICT DO NOTHING",
        );
        disk.wait_for_none("t");
    }
    // The last rule has the longest time.
    disk.run("INSERT INTO t SELECT n, now() - interval '3 hours 55 minutes' FROM generate_series(0, 24) AS n");
    disk.wait_for_ids("t", "24");
    disk.run("SELECT ttl.expire_index('i24', 60)");
    disk.wait_for_none("t");
}

/// With `hidden => false` expired rows are seen, and their keys conflict, until they are deleted,
/// as in MongoDB.
#[test]
fn not_hidden() {
    let server = Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")]);
    let database = server.database("app");
    let mut user = database.connect();
    user.run(
        "CREATE TABLE t (id integer PRIMARY KEY, at timestamptz);
         CREATE INDEX by_date ON t (at);
         SELECT ttl.expire_index('by_date', 10, hidden => false);
         INSERT INTO t VALUES (1, now() - interval '1 day'), (2, now() + interval '1 day')",
    );
    assert_eq!(user.value("SELECT count(*) FROM t"), "2");
    assert_eq!(user.copy_out("COPY t TO STDOUT").len(), 2);
    assert_eq!(user.value("SELECT hidden FROM ttl.tables"), "f");
    let error = user.error("INSERT INTO t VALUES (1, now())");
    assert_eq!(error.code().code(), "23505", "{error:?}");
    assert_eq!(
        user.column("UPDATE t SET id = 3 WHERE id = 1 RETURNING id"),
        ["3"]
    );
    assert_eq!(
        user.column("INSERT INTO t VALUES (3, now()) ON CONFLICT DO NOTHING RETURNING id"),
        [""; 0]
    );
    server.reload(&[("ttl.enabled", "on")]);
    user.wait_until("SELECT string_agg(id::text, ' ') FROM t", "2", PATIENCE);
    // Now hidden, then visible again.
    server.reload(&[("ttl.enabled", "off")]);
    user.run("INSERT INTO t VALUES (4, now() - interval '1 day')");
    user.run("SELECT ttl.expire_index('by_date', 10, hidden => true)");
    assert_eq!(user.column("SELECT id FROM t"), ["2"]);
    user.run("SELECT ttl.expire_index('by_date', 10)");
    assert_eq!(user.column("SELECT id FROM t"), ["2"]);
    user.run("INSERT INTO t VALUES (4, now() - interval '1 day')");
    user.run("SELECT ttl.expire_index('by_date', 10, hidden => false, revive_expired => true)");
    assert_eq!(user.column("SELECT id FROM t ORDER BY id"), ["2", "4"]);
}

/// M12: a NULL date, and dates from which nothing can be computed, delete nothing.
#[test]
fn bad_values_live() {
    let mut disk = server().database("bad").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, at timestamptz, moment timestamp, day date, dates timestamptz[], moments timestamp[], days date[]);
         SELECT ttl.create_index('t', jsonb_build_object(c, 1), '{\"expireAfterSeconds\": 2147483647}') FROM unnest('{at,moment,day,dates,moments,days}'::text[]) AS c;
         INSERT INTO t (id, at) VALUES (1, 'infinity'), (2, '-infinity'), (3, NULL), (4, '294276-12-31'), (5, '1969-12-31'), (6, '2039-01-01'), (100, '1957-01-01'), (101, '4713-01-01 BC');
         INSERT INTO t (id, moment) VALUES (11, 'infinity'), (12, '-infinity'), (13, NULL), (14, '294276-12-31'), (15, '1969-12-31'), (16, '2039-01-01'), (110, '1957-01-01'), (111, '4713-01-01 BC');
         INSERT INTO t (id, day) VALUES (21, 'infinity'), (22, '-infinity'), (23, NULL), (24, '5874897-12-31'), (25, '1969-12-31'), (26, '2039-01-01'), (120, '1957-01-01'), (121, '4713-01-01 BC');
         INSERT INTO t (id, dates) VALUES (31, '{}'), (32, '{NULL,NULL}'), (33, '{-infinity,1957-01-01}'), (34, '{infinity,294276-12-31}'), (130, '{infinity,1957-01-01}'), (131, '{{NULL,2100-01-01},{1957-01-01,NULL}}');
         INSERT INTO t (id, moments) VALUES (41, '{}'), (42, '{NULL,NULL}'), (43, '{-infinity,1957-01-01}'), (44, '{infinity,294276-12-31}'), (140, '{infinity,1957-01-01}');
         INSERT INTO t (id, days) VALUES (51, '{}'), (52, '{NULL,NULL}'), (53, '{-infinity,1957-01-01}'), (54, '{infinity,5874897-12-31}'), (150, '{infinity,1957-01-01}')",
    );
    // 1957 is 68 years and more ago. 1969 will have been so in 2038.
    let living =
        "1 2 3 4 5 6 11 12 13 14 15 16 21 22 23 24 25 26 31 32 33 34 41 42 43 44 51 52 53 54";
    disk.wait_for_ids("t", living);
    look_again(&mut disk, "t");
    disk.wait_for_ids("t", living);
    disk.run("RESET ttl.show_expired");
    assert_eq!(
        disk.column("SELECT id FROM t ORDER BY id").join(" "),
        living
    );
}
