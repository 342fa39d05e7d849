//! Library and objects of different versions: `ttl.problems` says which is older.

use ttl_ext_e2e::{Server, Session, SqlState};

/// Makes the objects count as those of another version.
fn pretend(session: &mut Session, version: &str) {
    session.run(&format!(
        "BEGIN; SET LOCAL allow_system_table_mods = on;
         UPDATE pg_extension SET extversion = '{version}' WHERE extname = 'ttl_ext'; COMMIT"
    ));
}

/// Rows that have expired are not seen because a superuser has moved what hides them.
#[test]
fn not_without_its_functions() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE TABLE u (id integer); INSERT INTO u VALUES (1)",
    );
    session.run_preserving("INSERT INTO t (id, _ts) VALUES (1, now() - interval '1 day')");
    for (change, undo) in [
        (
            "ALTER SCHEMA ttl RENAME TO elsewhere",
            "ALTER SCHEMA elsewhere RENAME TO ttl",
        ),
        (
            "ALTER FUNCTION ttl.live(timestamptz, integer) RENAME TO lives",
            "ALTER FUNCTION ttl.lives(timestamptz, integer) RENAME TO live",
        ),
        (
            "ALTER FUNCTION ttl_internal.locked_here(oid, tid) SET SCHEMA public",
            "ALTER FUNCTION public.locked_here(oid, tid) SET SCHEMA ttl_internal",
        ),
    ] {
        // A session that has seen it before, and a new one.
        session.run(change);
        for session in [&mut session, &mut database.connect()] {
            for statement in [
                "SELECT * FROM t",
                "INSERT INTO t (id) VALUES (1)",
                "UPDATE t SET id = 2",
                "COPY t TO STDOUT",
                "COPY t FROM STDIN",
                "DELETE FROM u USING t",
            ] {
                let error = session.error(statement);
                let code = error.code();
                assert_eq!(
                    *code,
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "{change}: {statement}"
                );
                assert!(
                    error
                        .hint()
                        .unwrap_or_default()
                        .contains("ALTER EXTENSION ttl_ext UPDATE")
                );
            }
            assert_eq!(session.column("SELECT id FROM u"), ["1"]);
        }
        session.run(undo);
        for session in [&mut session, &mut database.connect()] {
            assert!(session.column("SELECT id FROM t").is_empty(), "{undo}");
        }
    }
    // It can be dropped as it is.
    session.run("ALTER FUNCTION ttl.cutoff(integer) RENAME TO other");
    session.run("DROP EXTENSION ttl_ext CASCADE");
    session.run("INSERT INTO t (id, _ts) VALUES (2, now())");
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
