//! C5: the clock of a statement. Within REPEATABLE READ and SERIALIZABLE nothing
//! vanishes (complaint 3); in READ COMMITTED the next statement sees it gone.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

const LEFT: &str = "SELECT ttl.expires_at(_ts, ttl, 3600) - ttl.now() FROM t WHERE id = 1";

/// A row that expires in two to three seconds, and one that stays.
fn table(database: &Database<'_>) -> Session {
    let mut session = database.connect();
    session.run(
        "CREATE TABLE t (id integer PRIMARY KEY, what text);
         SELECT ttl.enable('t', 3600);
         CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql AS $$
         BEGIN
             RETURN (SELECT count(*) FROM t);
         END $$;
         SET ttl.preserve_ts = on;
         INSERT INTO t (id, _ts) VALUES (1, date_trunc('second', clock_timestamp()) - interval '3597 seconds'), (2, now())",
    );
    session
}

/// Wait, by the server's clock, until the row's time has clearly passed.
fn wait(session: &mut Session) {
    session
        .run("SELECT pg_sleep(greatest(0, extract(epoch FROM to_timestamp(4) - to_timestamp(0))))");
}

/// Everything that a session can ask sees this many rows.
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
    assert_eq!(
        session.copy_out("COPY t TO STDOUT").len() as i64,
        count,
        "{when}: COPY"
    );
}

fn stays(level: &str, name: &str) {
    let database = server().database(name);
    let mut writer = table(&database);
    let mut session = database.connect();
    session.run("PREPARE seen AS SELECT count(*) FROM t");
    session.run(&format!("BEGIN ISOLATION LEVEL {level}"));
    let left = session.value(LEFT);
    assert!(
        !left.starts_with('-'),
        "the machine is too slow for this test: {left} left"
    );
    assert_seen(&mut session, 2, "before");
    wait(&mut session);
    // The others see it gone; this transaction does not.
    assert_eq!(writer.value("SELECT count(*) FROM t"), "1");
    assert_seen(&mut session, 2, "after");
    // It can still be written to, and lives on by that (C10).
    assert_eq!(
        session
            .column("UPDATE t SET what = 'again' RETURNING id")
            .len(),
        2
    );
    assert_seen(&mut session, 2, "written");
    session.run("COMMIT");
    assert_seen(&mut session, 2, "committed");
    assert_eq!(writer.value("SELECT count(*) FROM t"), "2");
}

/// Complaint 3, in REPEATABLE READ.
#[test]
fn nothing_vanishes_in_repeatable_read() {
    stays("REPEATABLE READ", "repeatable");
}

/// Complaint 3, in SERIALIZABLE.
#[test]
fn nothing_vanishes_in_serializable() {
    stays("SERIALIZABLE", "serializable");
}

/// READ COMMITTED: the statement after the expiry does not see the row.
#[test]
fn the_next_statement_sees_it_gone() {
    let database = server().database("committed");
    table(&database);
    let mut session = database.connect();
    session.run("PREPARE seen AS SELECT count(*) FROM t");
    session.run("BEGIN ISOLATION LEVEL READ COMMITTED");
    let left = session.value(LEFT);
    assert!(
        !left.starts_with('-'),
        "the machine is too slow for this test: {left} left"
    );
    assert_seen(&mut session, 2, "before");
    wait(&mut session);
    assert_seen(&mut session, 1, "after");
    assert!(
        session
            .column("UPDATE t SET what = 'again' WHERE id = 1 RETURNING id")
            .is_empty()
    );
    session.run("COMMIT");
    assert_seen(&mut session, 1, "committed");
}

/// One statement sees one moment, however long it takes: the row expires while
/// it runs, and is there to its end.
#[test]
fn nothing_vanishes_within_a_statement() {
    let database = server().database("within");
    table(&database);
    let mut session = database.connect();
    let counts = session.rows(
        "WITH first AS MATERIALIZED (SELECT count(*) AS n, ttl.now() AS at FROM t),
              slept AS MATERIALIZED (SELECT n, at, pg_sleep(4) FROM first)
         SELECT n, (SELECT count(*) FROM t WHERE slept.at IS NOT NULL), ttl.now() = at FROM slept",
    );
    assert_eq!(counts, [["2", "2", "t"]]);
    assert_eq!(session.value("SELECT count(*) FROM t"), "1");
}

/// A cursor sees the moment at which it was opened.
#[test]
fn a_cursor_keeps_its_moment() {
    let database = server().database("cursor");
    table(&database);
    let mut session = database.connect();
    session.run("BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id");
    wait(&mut session);
    let seen = session.column("FETCH ALL FROM c");
    // The time of a fetch may be the cursor's or the statement's own, but a row
    // that does not expire is there, and each row once.
    assert!(seen == ["1", "2"] || seen == ["2"], "{seen:?}");
    session.run("COMMIT");
}
