//! Between the restart with another library and ALTER EXTENSION … UPDATE: who is older says so, and
//! the way back stays open.

use ttl_ext_e2e::{PATIENCE, Server, Session, SqlState};

fn problems(session: &mut Session, table: &str) -> String {
    session.value(&format!(
        "SELECT array_to_string(problems, '; ') FROM ttl.tables WHERE relation = '{table}'::regclass"
    ))
}

#[test]
fn old_objects_are_a_problem() {
    let server = Server::start(&[("ttl.enabled", "on")]);
    let database = server.plain_database("app");
    let mut session = database.connect();
    session.run(
        "CREATE EXTENSION ttl_ext VERSION '0.1.0'; CREATE TABLE t (id integer); SELECT ttl.enable('t', 3600);
         CREATE TABLE u (id integer)",
    );
    let found = problems(&mut session, "t");
    assert!(found.contains("of 0.1.0"), "{found}");
    assert!(found.contains("ALTER EXTENSION ttl_ext UPDATE"), "{found}");
    assert_eq!(session.value("SELECT ttl.problems('u')"), "{}");
    session.run("ALTER EXTENSION ttl_ext UPDATE");
    // In its first second a server may have others.
    let left = "SELECT count(*) FROM ttl.tables WHERE problems <> '{}'";
    session.wait_until(left, "0", PATIENCE);
}

/// A library that is older than the objects: it was put back, or the server was not restarted.
#[test]
fn an_old_library_refuses_new_objects() {
    let server = Server::start(&[("ttl.enabled", "on")]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE t (id integer); SELECT ttl.enable('t', 3600); SELECT ttl.check_library()",
    );
    // As ALTER EXTENSION has it before it runs the script of a later version.
    session.run(
        "BEGIN; SET LOCAL allow_system_table_mods = on;
         UPDATE pg_extension SET extversion = '1000.0.0' WHERE extname = 'ttl_ext'; COMMIT",
    );
    let error = session.error("SELECT ttl.check_library()");
    assert_eq!(*error.code(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert!(error.message().contains("1000.0.0"), "{error:?}");
    assert!(
        error.hint().unwrap_or_default().contains("restart"),
        "{error:?}"
    );
    let found = problems(&mut session, "t");
    assert!(found.contains("install the newer version"), "{found}");
    session.run("CREATE ROLE guest LOGIN");
    let error = database
        .connect_as("guest")
        .error("SELECT ttl.check_library()");
    assert_eq!(*error.code(), SqlState::INSUFFICIENT_PRIVILEGE);
}

/// What the library of 0.1.0 could not read is not written as long as one may go back to it.
#[test]
fn labels_stay_readable_for_the_old_library() {
    let server = Server::start(&[("ttl.change_delay", "300"), ("ttl.guard_fraction", "0.5")]);
    let database = server.plain_database("app");
    let mut session = database.connect();
    session.run(
        "CREATE EXTENSION ttl_ext VERSION '0.1.0';
         CREATE TABLE t (id integer); SELECT ttl.enable('t', 3600);
         INSERT INTO t SELECT generate_series(1, 10)",
    );
    session.run_preserving("INSERT INTO t (id, _ts) VALUES (11, now() - interval '10 minutes')");
    // C24 is not there yet.
    session.run("SELECT ttl.set_default('t', 60)");
    let label = "SELECT label FROM pg_seclabel WHERE objoid = 't'::regclass";
    assert!(!session.value(label).contains("shortened"));
    for statement in [
        "ALTER TABLE t SET (ttl.keep_expired = 60)",
        "ALTER TABLE t SET (ttl.notify = 'gone')",
        r#"SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 60, "keep_expired": 60}'"#,
    ] {
        let error = session.error(statement);
        assert_eq!(
            *error.code(),
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "{statement}: {error:?}"
        );
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("ALTER EXTENSION ttl_ext UPDATE"), "{error:?}");
    }
    // The rest of the same DDL works.
    session.run("ALTER TABLE t SET (ttl.default = '1 hour', ttl.granularity = '1 minute')");
    session.run("CREATE TABLE v (id integer PRIMARY KEY) WITH (ttl.default = 60)");
    // C19: the HINT is a call that works.
    session.run("CREATE TABLE w (id integer); SELECT ttl.enable('w', 3600)");
    session.run_preserving(
        "INSERT INTO w (id, _ts) SELECT n, now() - interval '30 minutes' FROM generate_series(1, 6000) AS n",
    );
    let error = session.error("SELECT ttl.set_default('w', 60)");
    assert_eq!(*error.code(), SqlState::CONFIGURATION_LIMIT_EXCEEDED);
    let hint = error.hint().unwrap_or_default();
    let (_, call) = hint.split_once("If that is meant: ").expect("a call");
    session.run(call);
    assert_eq!(session.value("SELECT count(*) FROM w"), "0");
    session.run("ALTER TABLE t SET (ttl.keep_expired = 60); SELECT ttl.set_default('t', 1800)");
    let label = session.value(label);
    assert!(
        label.contains("shortened") && label.contains("keep_expired"),
        "{label}"
    );
}
