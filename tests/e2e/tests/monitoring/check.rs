//! `ttl.check()`: each of the commonest mistakes is shown in words, and what it says to run ends it.

use ttl_ext_e2e::{Server, Session};

/// What `ttl.check()` says of a table, or with `NULL` of the server, by how it begins: what to do.
#[track_caller]
fn to_do(session: &mut Session, relation: &str, problem: &str) -> String {
    let found = session.rows("SELECT relation, problem, to_do FROM ttl.check()");
    let row = found
        .iter()
        .find(|row| row[0] == relation && row[1].starts_with(problem));
    let Some(row) = row else {
        panic!("no '{problem}' of {relation} in {found:#?}");
    };
    row[2].clone()
}

/// Follows the advice as psql does, a statement at a time.
fn follow(session: &mut Session, advice: &str) {
    let statements = advice.split_inclusive(';').map(str::trim);
    for statement in statements.filter(|statement| !statement.is_empty()) {
        session.run(statement);
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn of_tables() {
    let server = Server::start_sweeping(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    assert!(
        to_do(&mut session, "∅", "no table of this database").starts_with("SELECT ttl.enable(")
    );
    session.run(
        "CREATE TABLE t (id int PRIMARY KEY, who text);
         SELECT ttl.enable('t', 3600, index => 'btree');",
    );
    let all = "SELECT problem FROM ttl.check()";
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);

    let mistakes = [
        ("SELECT ttl.pause('t')", "nothing is deleted: paused without an end"),
        (
            "DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR ttl ON TABLE t IS %L',
                 (SELECT label FROM pg_seclabel WHERE objoid = 't'::regclass AND provider = 'ttl')); END $$",
            "nothing is deleted: restored from a dump",
        ),
        (
            "SET row_security = off; DROP TRIGGER \"~ttl_free_expired_keys\" ON t; RESET row_security",
            "trigger \"~ttl_free_expired_keys\" of public.t is missing",
        ),
        (
            "SET row_security = off; DROP INDEX t_expiry_key_idx; RESET row_security",
            "no valid index on (ttl.expiry_key(_ts, ttl))",
        ),
        (
            "SET row_security = off; ALTER TABLE t DROP CONSTRAINT t_ttl_check; RESET row_security",
            "column ttl takes any number",
        ),
        ("ALTER TABLE t ALTER COLUMN _ts DROP DEFAULT", "column _ts has no default"),
    ];
    for (mistake, problem) in mistakes {
        session.run(mistake);
        let advice = to_do(&mut session, "t", problem);
        follow(&mut session, &advice);
        assert_eq!(session.column(all), NOTHING, "{mistake}: {advice}");
    }
}

#[test]
fn of_a_row_that_is_referred_to() {
    let server = Server::start_sweeping(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(
        "CREATE TABLE t (id int PRIMARY KEY);
         SELECT ttl.enable('t', 1);
         CREATE TABLE child (id int REFERENCES t);
         INSERT INTO t VALUES (1);
         INSERT INTO child VALUES (1);",
    );
    session.wait_until(
        "SELECT count(*) FROM ttl.check() WHERE problem LIKE '1 expired rows of public.t cannot be deleted: %'",
        "1",
        60,
    );
    let advice = to_do(&mut session, "t", "1 expired rows");
    let error = session.rows(&advice).remove(0).remove(0);
    assert!(error.contains("violates foreign key constraint"), "{error}");
}

/// What concerns all tables is one row.
#[test]
fn of_the_server() {
    let server = Server::start(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(
        "CREATE ROLE reader;
         CREATE TABLE a (id int);
         CREATE TABLE b (id int);
         SELECT ttl.enable('a', 60), ttl.enable('b', 60);",
    );
    // Everybody may ask.
    session.run("SET ROLE reader");
    assert_eq!(
        session.column("SELECT concat_ws('|', relation, problem) FROM ttl.check()"),
        ["deletion is off: ttl.enabled"]
    );
    let advice = to_do(&mut session, "∅", "deletion is off");
    session.run("RESET ROLE");
    follow(&mut session, &advice);
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);

    server.reload(&[("ttl.timeline", "77")]);
    let advice = to_do(&mut session, "∅", "deletion is off: after a recovery");
    let (_, statements) = advice.split_once(": ").expect("a condition");
    assert_eq!(
        statements,
        "ALTER SYSTEM SET ttl.timeline = 1; SELECT pg_reload_conf();"
    );
    server.reload(&[("ttl.timeline", "1")]);
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);

    // One for the launcher's place, and none for it: PostgreSQL's own comes first.
    server.configure(&[("max_worker_processes", "0")]);
    drop(session);
    server.restart();
    let mut session = server.connect("app", "postgres");
    let advice = to_do(
        &mut session,
        "∅",
        "deletion is off: its launcher is not running",
    );
    assert_eq!(
        advice,
        "ALTER SYSTEM SET max_worker_processes = 8; then restart the server"
    );
}
