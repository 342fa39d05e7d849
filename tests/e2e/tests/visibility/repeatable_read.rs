//! C5: the time of a statement. In REPEATABLE READ and SERIALIZABLE no row expires within a
//! transaction (complaint 3); in READ COMMITTED the next statement no longer sees it.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// A table with a row that expires soon (1) and one that stays (2).
struct Expiring<'a> {
    database: &'a Database<'a>,
    /// A session that sees the row on disk.
    observer: Session,
}

impl Expiring<'_> {
    /// A session with a cached plan.
    fn session(&self) -> Session {
        let mut session = self.database.connect();
        session.run("PREPARE seen AS SELECT count(*) FROM t");
        session
    }

    /// Wait until the row's time has passed, by the server's clock.
    fn wait(&mut self) {
        self.observer.run(
            "SELECT pg_sleep(greatest(0, 0.1 + extract(epoch FROM ttl.expires_at(_ts, ttl, 3600) - clock_timestamp())))
               FROM t WHERE id = 1",
        );
        let passed = "SELECT ttl.expires_at(_ts, ttl, 3600) <= ttl.now() FROM t WHERE id = 1";
        assert_eq!(self.observer.value(passed), "t");
    }
}

/// Run a test with a row that expires soon. It returns whether it began in time; if not, the
/// machine is busy, and it is repeated with more time.
fn before_it_expires(name: &str, test: impl Fn(&mut Expiring<'_>) -> bool) {
    for seconds in [2, 8, 40] {
        let database = server().database(&format!("{name}_{seconds}"));
        let mut observer = database.connect();
        observer.run(
            "CREATE TABLE t (id integer PRIMARY KEY, what text);
             SELECT ttl.enable('t', 3600);
             CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql AS $$
             BEGIN
                 RETURN (SELECT count(*) FROM t);
             END $$;
             SET ttl.show_expired = on; SET ttl.preserve_ts = on",
        );
        observer.run(&format!(
            "INSERT INTO t (id, _ts)
             VALUES (1, date_trunc('second', clock_timestamp()) - interval '1 hour' + interval '{seconds} seconds'),
                    (2, now())"
        ));
        let mut expiring = Expiring {
            database: &database,
            observer,
        };
        if test(&mut expiring) {
            return;
        }
    }
    panic!("the row had expired before the test began, three times");
}

/// Every kind of query of the session sees this many rows.
#[track_caller]
fn assert_seen(session: &mut Session, count: i64, when: &str) {
    for query in [
        "SELECT count(*) FROM t",
        "SELECT seen()",
        "EXECUTE seen",
        "SELECT count(*) FROM t AS a JOIN t AS b USING (id)",
        "WITH changed AS (UPDATE t SET what = what WHERE false RETURNING 1) SELECT count(*) FROM t",
    ] {
        assert_eq!(session.value(query), count.to_string(), "{when}: {query}");
    }
    let copied = session.copy_out("COPY t TO STDOUT").len() as i64;
    assert_eq!(copied, count, "{when}: COPY");
}

/// A statement that began before the expiry sees the row.
const IN_TIME: &str =
    "SELECT bool_or(id = 1 AND ttl.now() < ttl.expires_at(_ts, ttl, 3600)) FROM t";

fn stays(name: &str, level: &str) {
    before_it_expires(name, |expiring| {
        let mut session = expiring.session();
        session.run(&format!("BEGIN ISOLATION LEVEL {level}"));
        if session.value(IN_TIME) != "t" {
            return false;
        }
        assert_seen(&mut session, 2, "before");
        expiring.wait();
        // Other sessions no longer see the row; this transaction does.
        let mut other = expiring.session();
        assert_seen(&mut other, 1, "others");
        assert_seen(&mut session, 2, "after");
        // It can still be written to, which extends its life (C10).
        let written = session.column("UPDATE t SET what = 'again' RETURNING id");
        assert_eq!(written.len(), 2);
        assert_seen(&mut session, 2, "written");
        session.run("COMMIT");
        assert_seen(&mut session, 2, "committed");
        assert_seen(&mut other, 2, "others, committed");
        true
    });
}

/// Complaint 3, in REPEATABLE READ.
#[test]
fn nothing_vanishes_in_repeatable_read() {
    stays("repeatable", "REPEATABLE READ");
}

/// Complaint 3, in SERIALIZABLE.
#[test]
fn nothing_vanishes_in_serializable() {
    stays("serializable", "SERIALIZABLE");
}

/// READ COMMITTED: the statement after the expiry does not see the row.
#[test]
fn the_next_statement_sees_it_gone() {
    before_it_expires("committed", |expiring| {
        let mut session = expiring.session();
        session.run("BEGIN ISOLATION LEVEL READ COMMITTED");
        if session.value(IN_TIME) != "t" {
            return false;
        }
        expiring.wait();
        assert_seen(&mut session, 1, "after");
        let written = session.column("UPDATE t SET what = 'again' WHERE id = 1 RETURNING id");
        assert!(written.is_empty());
        session.run("COMMIT");
        assert_seen(&mut session, 1, "committed");
        true
    });
}

/// A statement uses one time to its end: a row that expires while it runs stays visible.
#[test]
fn nothing_vanishes_within_a_statement() {
    before_it_expires("within", |expiring| {
        let mut session = expiring.session();
        let rows = session.rows(
            "WITH first AS MATERIALIZED (
                 SELECT count(*) AS n, ttl.now() AS at,
                        max(ttl.expires_at(_ts, ttl, 3600)) FILTER (WHERE id = 1) AS ends FROM t),
             slept AS MATERIALIZED (
                 SELECT n, at, pg_sleep(greatest(0, 0.2 + extract(epoch FROM ends - clock_timestamp()))) FROM first)
             SELECT n, (SELECT count(*) FROM t WHERE slept.at IS NOT NULL), ttl.now() = at FROM slept",
        );
        if rows[0][0] != "2" {
            return false;
        }
        assert_eq!(rows, [["2", "2", "t"]]);
        assert_seen(&mut session, 1, "afterwards");
        true
    });
}
