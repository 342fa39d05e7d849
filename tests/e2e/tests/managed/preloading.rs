//! The library belongs into `shared_preload_libraries`. Loaded by a session it is refused, with the
//! reason: it could not hide what other sessions must not see either.

use ttl_ext_e2e::{Server, SqlState};

/// A session that would load it does not begin; the others do.
#[test]
fn session_preload_libraries_is_refused() {
    let server = Server::start(&[("shared_preload_libraries", "")]);
    server
        .connect("postgres", "postgres")
        .run("CREATE ROLE app LOGIN; ALTER ROLE app SET session_preload_libraries = 'ttl_ext'");
    let refused = server.try_connect("postgres", "app", "").err();
    let refused = refused.expect("a session that has loaded it");
    let error = refused.as_db_error().expect("an error of the server");
    assert_eq!(error.severity(), "FATAL", "{error:?}");
    assert_eq!(*error.code(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    let why = [error.message(), error.hint().unwrap_or_default()];
    for text in why {
        assert!(text.contains("shared_preload_libraries"), "{error:?}");
    }
    // The way out of it.
    let mut boss = server.connect("postgres", "postgres");
    boss.run("ALTER ROLE app RESET session_preload_libraries");
    assert_eq!(
        server
            .connect("postgres", "app")
            .value("SELECT count(*) FROM pg_extension WHERE extname = 'ttl_ext'"),
        "0"
    );
    // Not by users themselves either: such libraries are looked for elsewhere.
    let options = "-c local_preload_libraries=ttl_ext";
    let refused = server.try_connect("postgres", "app", options).err();
    let error = refused.expect("a session that has loaded it");
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_FILE), "{error:?}");
}

/// Where the server has preloaded it, the setting changes nothing.
#[test]
fn in_both_lists() {
    let server = Server::start(&[("session_preload_libraries", "ttl_ext")]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    session.insert_expired("t", 1, 10);
    assert_eq!(session.value("SELECT count(*) FROM t"), "0");
    assert_eq!(database.disk().count("t"), 10);
}
