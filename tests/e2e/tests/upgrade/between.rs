//! Library and objects of different versions: `ttl.problems` says which is older.

use ttl_ext_e2e::{Server, Session, SqlState};

/// Makes the objects count as those of another version.
fn pretend(session: &mut Session, version: &str) {
    session.run(&format!(
        "BEGIN; SET LOCAL allow_system_table_mods = on;
         UPDATE pg_extension SET extversion = '{version}' WHERE extname = 'ttl_ext'; COMMIT"
    ));
}

#[test]
fn the_older_one_is_named() {
    let server = Server::start(&[("ttl.enabled", "on")]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE t (id integer); SELECT ttl.enable('t', 3600); SELECT ttl_internal.check_library();
         CREATE TABLE u (id integer)",
    );
    let problems = "SELECT array_to_string(ttl.problems('t'), '; ')";
    pretend(&mut session, "0.0.1");
    let found = session.value(problems);
    assert!(found.contains("of 0.0.1"), "{found}");
    assert!(found.contains("ALTER EXTENSION ttl_ext UPDATE"), "{found}");
    assert_eq!(session.value("SELECT ttl.problems('u')"), "{}");
    session.run("SELECT ttl_internal.check_library()");
    // A library that is older than the objects: it was put back, or the server was not restarted.
    // ALTER EXTENSION sets the version before it runs the script.
    pretend(&mut session, "1000.0.0");
    let error = session.error("SELECT ttl_internal.check_library()");
    assert_eq!(*error.code(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert!(error.message().contains("1000.0.0"), "{error:?}");
    assert!(
        error.hint().unwrap_or_default().contains("restart"),
        "{error:?}"
    );
    let found = session.value(problems);
    assert!(found.contains("install the newer version"), "{found}");
    session.run("CREATE ROLE guest LOGIN");
    let error = database
        .connect_as("guest")
        .error("SELECT ttl_internal.check_library()");
    assert_eq!(*error.code(), SqlState::INSUFFICIENT_PRIVILEGE);
}
