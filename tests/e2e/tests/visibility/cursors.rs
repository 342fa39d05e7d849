//! C13: a cursor keeps the time at which it was opened: rows that expire while it is read stay in
//! its result, as rows that are deleted meanwhile do.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[("max_parallel_workers_per_gather", "2")]))
}

/// Sleeps until the rows have expired: they must live as long as their TTL.
const UNTIL_EXPIRED: &str =
    "SELECT pg_sleep(greatest(0, 0.05 + extract(epoch FROM at - clock_timestamp()))) FROM ends";

/// A session that is about to open a cursor on 1000 rows that will expire.
struct Expiring<'a> {
    database: &'a Database<'a>,
    session: Session,
}

impl Expiring<'_> {
    /// Waits until the rows are expired; returns whether they were live until now.
    fn wait(&mut self) -> bool {
        let mut observer = self.database.connect();
        let in_time = observer.value("SELECT count(*) FROM t") == "1000";
        observer.run(UNTIL_EXPIRED);
        assert_eq!(observer.value("SELECT count(*) FROM t"), "0");
        in_time
    }

    /// Waits, in a transaction that then sees no row in any other way.
    fn wait_here(&mut self) -> bool {
        let in_time = self.wait();
        self.sees_nothing();
        in_time
    }

    #[track_caller]
    fn sees_nothing(&mut self) {
        assert_eq!(self.session.value("SELECT count(*) FROM t"), "0");
    }

    #[track_caller]
    fn fetches(&mut self, direction: &str, expected: usize) {
        let rows = self.session.rows(&format!("FETCH {direction} c"));
        assert_eq!(rows.len(), expected, "FETCH {direction}");
    }
}

/// Runs a test that returns whether it opened its cursor in time. If not, the machine is busy, and
/// the test is repeated with more time.
fn on_rows_that_expire(name: &str, test: impl Fn(&mut Expiring<'_>) -> bool) {
    for seconds in [2, 10, 50] {
        let database = server().database(&format!("{name}_{seconds}"));
        let mut session = database.connect();
        session.run(&format!(
            "CREATE TABLE t (id integer PRIMARY KEY, what text);
             SELECT ttl.enable('t', 3600);
             CREATE TABLE ends AS SELECT date_trunc('second', clock_timestamp()) + interval '{seconds} s' AS at;
             SET ttl.preserve_ts = on;
             INSERT INTO t (id, _ts) SELECT n, at - interval '1 h' FROM ends, generate_series(1, 1000) AS n;
             RESET ttl.preserve_ts;
             ANALYZE t"
        ));
        let mut expiring = Expiring {
            database: &database,
            session,
        };
        if test(&mut expiring) {
            return;
        }
    }
    panic!("rows expired before the cursor was opened");
}

/// DECLARE and FETCH, forward and backward; `ttl.now()` in the query is the filter's time.
#[test]
fn c13_declared() {
    on_rows_that_expire("declared", |e| {
        e.session.run(
            "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, ttl.now() AS clock FROM t ORDER BY id",
        );
        // Opened, and not read from yet.
        let in_time = e.wait_here();
        e.fetches("50", 50);
        let clocks = e.session.column("FETCH ALL c");
        assert_eq!(clocks.len(), 950);
        let clock = |row: &String| row.split('|').nth(1).map(str::to_owned);
        assert_eq!(clock(&clocks[0]), clock(&clocks[949]));
        e.fetches("BACKWARD ALL", 1000);
        e.fetches("ABSOLUTE 500", 1);
        e.sees_nothing();
        // A cursor opened now has another time.
        e.session
            .run("CLOSE c; DECLARE c CURSOR FOR SELECT * FROM t");
        e.fetches("ALL", 0);
        e.session.run("COMMIT");
        e.sees_nothing();
        in_time
    });
}

/// All scans of a cursor use one time, also those that start late.
#[test]
fn c13_scans_that_begin_late() {
    on_rows_that_expire("late", |e| {
        e.session.run(
            "BEGIN; DECLARE c CURSOR FOR SELECT id FROM t UNION ALL SELECT id FROM t UNION ALL
                SELECT a.id FROM t AS a WHERE EXISTS (SELECT FROM t AS b WHERE b.id = a.id + 1)",
        );
        e.fetches("10", 10);
        let in_time = e.wait_here();
        e.fetches("ALL", 2989);
        in_time
    });
}

/// A portal of the extended protocol, read in pieces (JDBC with setFetchSize).
#[test]
fn c13_portal() {
    on_rows_that_expire("portal", |e| {
        let mut transaction = e.session.client.transaction().unwrap();
        let statement = transaction.prepare("SELECT id FROM t").unwrap();
        let (first, late) = (
            transaction.bind(&statement, &[]).unwrap(),
            transaction.bind(&statement, &[]).unwrap(),
        );
        assert_eq!(transaction.query_portal(&first, 50).unwrap().len(), 50);
        let mut other = e.database.connect();
        let in_time = other.value("SELECT count(*) FROM t") == "1000";
        other.run(UNTIL_EXPIRED);
        assert_eq!(transaction.query_portal(&first, 50).unwrap().len(), 50);
        assert_eq!(transaction.query_portal(&first, 0).unwrap().len(), 900);
        // Bound before, but executed only now.
        assert_eq!(transaction.query_portal(&late, 0).unwrap().len(), 1000);
        // The same statement in another portal has another time.
        let anew = transaction.bind(&statement, &[]).unwrap();
        assert_eq!(transaction.query_portal(&anew, 0).unwrap().len(), 0);
        transaction.commit().unwrap();
        in_time
    });
}

/// Parallel workers use the time of their query.
#[test]
fn c13_parallel() {
    on_rows_that_expire("parallel", |e| {
        let force = if e.session.value("SHOW server_version_num").as_str() < "160000" {
            "force_parallel_mode"
        } else {
            "debug_parallel_query"
        };
        e.session.run(&format!(
            "SET {force} = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
        ));
        let plan = e
            .session
            .column("EXPLAIN SELECT count(*), min(ttl.now()) = max(ttl.now()) FROM t");
        assert!(plan.join("\n").contains("Workers Planned"), "{plan:?}");
        let mut transaction = e.session.client.transaction().unwrap();
        let statement = transaction
            .prepare("SELECT count(*), min(ttl.now()) = max(ttl.now()), (SELECT count(*) FROM t WHERE what IS NULL) FROM t")
            .unwrap();
        let portal = transaction.bind(&statement, &[]).unwrap();
        let mut other = e.database.connect();
        let in_time = other.value("SELECT count(*) FROM t") == "1000";
        other.run(UNTIL_EXPIRED);
        let rows = transaction.query_portal(&portal, 0).unwrap();
        let seen: (i64, bool, i64) = (rows[0].get(0), rows[0].get(1), rows[0].get(2));
        assert_eq!(seen, (1000, true, 1000));
        transaction.commit().unwrap();
        e.sees_nothing();
        in_time
    });
}

/// WITH HOLD: what is read after the transaction is the same as within it.
#[test]
fn c13_with_hold() {
    on_rows_that_expire("hold", |e| {
        e.session
            .run("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t");
        e.fetches("50", 50);
        let in_time = e.wait_here();
        e.session.run("COMMIT");
        e.sees_nothing();
        e.fetches("ALL", 950);
        in_time
    });
}

/// Cursors of PL/pgSQL: one that a function has opened and the client reads, a loop, and a
/// loop in a procedure that commits.
#[test]
fn c13_plpgsql() {
    on_rows_that_expire("plpgsql", |e| {
        e.session.run(
            "CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS $$
             DECLARE c refcursor := 'c';
             BEGIN
                 OPEN c FOR SELECT id FROM t;
                 RETURN c;
             END $$;
             CREATE TABLE loops (one int, committing int);
             CREATE PROCEDURE reads() LANGUAGE plpgsql AS $$
             DECLARE r record; one int := 0; committing int := 0;
             BEGIN
                 FOR r IN SELECT id FROM t LOOP
                     IF committing = 0 THEN
                         -- As UNTIL_EXPIRED.
                         PERFORM pg_sleep(greatest(0, 0.05 + extract(epoch FROM at - clock_timestamp()))) FROM ends;
                     END IF;
                     committing := committing + 1;
                     COMMIT;
                 END LOOP;
                 INSERT INTO loops VALUES ((SELECT count(*) FROM t), committing);
             END $$",
        );
        e.session.run("BEGIN; SELECT opened()");
        e.fetches("50", 50);
        let mut other = e.database.connect();
        let in_time = other.value("SELECT count(*) FROM t") == "1000";
        other.run("CALL reads()");
        // The procedure's next transaction sees that they have expired.
        assert_eq!(other.rows("SELECT * FROM loops"), [["0", "1000"]]);
        e.sees_nothing();
        e.fetches("ALL", 950);
        in_time
    });
}

/// A STABLE or IMMUTABLE function sees the cursor's data and uses its time; a VOLATILE one sees the
/// present. An error caught in one does not end the cursor's time.
#[test]
fn c13_functions() {
    on_rows_that_expire("functions", |e| {
        e.session.run(
            "CREATE FUNCTION stable_count() RETURNS bigint STABLE LANGUAGE plpgsql AS $$
             BEGIN RETURN (SELECT count(*) FROM t); END $$;
             CREATE FUNCTION sql_count() RETURNS bigint STABLE LANGUAGE sql SET work_mem = '4MB'
             AS 'SELECT count(*) FROM t';
             CREATE FUNCTION volatile_count() RETURNS bigint VOLATILE LANGUAGE plpgsql AS $$
             BEGIN RETURN (SELECT count(*) FROM t); END $$;
             CREATE FUNCTION fails(id int) RETURNS bigint VOLATILE LANGUAGE plpgsql AS $$
             BEGIN RETURN (SELECT sum(1 / (t.id - t.id)) FROM t WHERE false OR ttl.now() > '2000-01-01')
                        + (SELECT 1 / (count(*) - count(*)) FROM t);
             EXCEPTION WHEN division_by_zero THEN RETURN -1; END $$;
             BEGIN;
             DECLARE c CURSOR FOR
                SELECT id, stable_count(), sql_count(), volatile_count(), fails(id) FROM t ORDER BY id",
        );
        assert_eq!(
            e.session.rows("FETCH c"),
            [["1", "1000", "1000", "1000", "-1"]]
        );
        let in_time = e.wait_here();
        assert_eq!(
            e.session.rows("FETCH c"),
            [["2", "1000", "1000", "0", "-1"]]
        );
        e.fetches("ALL", 998);
        e.sees_nothing();
        in_time
    });
}

/// An error ends the execution and its time.
#[test]
fn c13_errors() {
    on_rows_that_expire("errors", |e| {
        e.session.run(
            "BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id;
             DECLARE broken CURSOR FOR SELECT 1 / (id - 500) FROM t ORDER BY id; SAVEPOINT s",
        );
        e.fetches("10", 10);
        let in_time = e.wait_here();
        let error = e.session.error("FETCH ALL broken");
        assert_eq!(error.code().code(), "22012");
        e.session.run("ROLLBACK TO s");
        e.sees_nothing();
        e.fetches("10", 10);
        assert_eq!(e.session.error("FETCH ALL nosuch").code().code(), "34000");
        e.session.run("ROLLBACK");
        e.sees_nothing();
        in_time
    });
}

/// A statement that writes uses its own time, whoever runs it: a cursor's row that has expired
/// counts as deleted, and its key is free. But not a row that the cursor has locked (C15).
#[test]
fn c13_writes() {
    on_rows_that_expire("writes", |e| {
        e.session.run(
            "CREATE FUNCTION put(n int) RETURNS text VOLATILE LANGUAGE plpgsql AS $$
             BEGIN INSERT INTO t (id, what) VALUES (n, 'new'); RETURN 'put'; END $$;
             BEGIN;
             DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id;
             DECLARE locks CURSOR FOR SELECT id FROM t ORDER BY id FOR UPDATE;
             DECLARE writes CURSOR FOR SELECT put(id) FROM t WHERE id > 2 ORDER BY id",
        );
        e.fetches("1", 1);
        assert_eq!(e.session.column("FETCH locks"), ["1"]);
        let in_time = e.wait();
        assert_eq!(e.session.column("SELECT id FROM t"), ["1"]);
        let updated = "WITH u AS (UPDATE t SET what = 'x' WHERE CURRENT OF locks RETURNING 1) SELECT count(*) FROM u";
        assert_eq!(e.session.value(updated), "1");
        e.fetches("1", 1);
        let updated = updated.replace("OF locks", "OF c");
        assert_eq!(e.session.value(&updated), "0");
        assert_eq!(
            e.session.value(
                "WITH d AS (DELETE FROM t WHERE CURRENT OF c RETURNING 1) SELECT count(*) FROM d"
            ),
            "0"
        );
        // Later rows of a locking cursor are also there, and locked.
        assert_eq!(e.session.column("FETCH locks"), ["2"]);
        assert_eq!(e.session.column("FETCH 2 FROM writes"), ["put", "put"]);
        let there = e.session.column("SELECT id FROM t ORDER BY id");
        assert_eq!(there, ["1", "2", "3", "4"]);
        in_time
    });
}

/// None of this in REPEATABLE READ; and a prepared statement has no time of its own.
#[test]
fn c13_other_clocks() {
    on_rows_that_expire("others", |e| {
        e.session.run("PREPARE seen AS SELECT count(*) FROM t");
        assert_eq!(e.session.value("EXECUTE seen"), "1000");
        let mut keeps = e.database.connect();
        keeps.run("BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT id FROM t");
        assert_eq!(keeps.rows("FETCH 10 c").len(), 10);
        let in_time = e.wait_here();
        assert_eq!(e.session.value("EXECUTE seen"), "0");
        assert_eq!(keeps.rows("FETCH ALL c").len(), 990);
        assert_eq!(keeps.value("SELECT count(*) FROM t"), "1000");
        in_time
    });
}

/// No user can use the setting that passes the time to parallel workers.
#[test]
fn c13_the_setting_is_nobodys() {
    let database = server().database("setting");
    let mut session = database.connect();
    for statement in [
        "SET ttl.execution_time = 1",
        "SET LOCAL ttl.execution_time = 1",
        "ALTER SYSTEM SET ttl.execution_time = 1",
        "ALTER ROLE CURRENT_USER SET ttl.execution_time = 1",
    ] {
        let error = session.error(statement);
        assert!(
            ["22023", "55P02"].contains(&error.code().code()),
            "{statement}: {error:?}"
        );
    }
    session.run("DISCARD ALL");
    session.run("RESET ttl.execution_time");
    let listed = "SELECT count(*) FROM pg_settings WHERE name = 'ttl.execution_time'";
    assert_eq!(session.value(listed), "0");
}
