//! C6, C9: the extension is created and dropped, and the library preloaded or not.

use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use ttl_ext_e2e::{CachedPlans, PATIENCE, Server, SqlState};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// The extension goes and comes while other sessions work.
#[test]
fn drop_and_create_extension() {
    let database = server().database("comes_and_goes");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(CachedPlans::TABLE);
    b.run("SELECT ttl.enable('t', 3600)");
    let plans = CachedPlans::of(&mut a);
    assert_eq!(plans.count(&mut a), 1);
    b.run("BEGIN; DROP EXTENSION ttl_ext CASCADE; ROLLBACK");
    assert_eq!(plans.count(&mut a), 1);
    b.run("DROP EXTENSION ttl_ext CASCADE");
    assert_eq!(plans.count(&mut a), 2);
    a.run("UPDATE t SET ttl = NULL; INSERT INTO t VALUES (3, now())");
    assert_eq!(plans.count(&mut a), 3);
    for _ in 0..2 {
        b.run("CREATE EXTENSION ttl_ext; SELECT ttl.resume_restored()");
        // The label stays, but the constraint was dropped with the extension; expired rows are
        // deleted before it is added again.
        a.run("SELECT ttl.enable('t', 3600)");
        b.run("SET ttl.preserve_ts = on; INSERT INTO t VALUES (4, '2000-01-01'); RESET ttl.preserve_ts");
        assert_eq!(plans.count(&mut a), 2);
        let fresh = database.connect().value("SELECT count(*) FROM t");
        assert_eq!(fresh, "2");
        b.run("DROP EXTENSION ttl_ext CASCADE");
        assert_eq!(plans.count(&mut a), 3);
    }
}

/// What was written while the extension was not there is not deleted by its return: an UPDATE then did not count as a
/// write.
#[test]
fn rows_in_use_outlive_the_extension() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("returns");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE cart (id int PRIMARY KEY, v text); SELECT ttl.enable('cart', 2);
         INSERT INTO cart SELECT generate_series(1, 100); DROP EXTENSION ttl_ext CASCADE",
    );
    sleep(Duration::from_secs(3));
    session.run("UPDATE cart SET v = 'in use'; CREATE EXTENSION ttl_ext");
    assert_eq!(
        session
            .column("SELECT to_do FROM ttl.check() WHERE problem LIKE 'nothing is deleted%'")
            .len(),
        1
    );
    // A table that is deleted from shows that workers are there.
    session.run(
        "CREATE TABLE other (id int); SELECT ttl.enable('other', 1); INSERT INTO other VALUES (1)",
    );
    let mut disk = database.disk();
    disk.wait_until("SELECT count(*) FROM other", "0", PATIENCE);
    sleep(Duration::from_secs(2));
    assert_eq!(disk.count("cart"), 100);
    session.run("SELECT ttl.disable('cart', revive_expired => true)");
    assert_eq!(
        session.value("SELECT count(*) FROM cart WHERE v = 'in use'"),
        "100"
    );
}

/// Databases of one server: one without the extension is left alone.
#[test]
fn other_databases() {
    let with = server().database("with_it");
    let without = server().plain_database("without_it");
    let (mut a, mut b) = (with.connect(), without.connect());
    a.run(CachedPlans::TABLE);
    b.run(CachedPlans::TABLE);
    a.run("SELECT ttl.enable('t', 3600)");
    let (one, two) = (CachedPlans::of(&mut a), CachedPlans::of(&mut b));
    assert_eq!(one.count(&mut a), 1);
    assert_eq!(two.count(&mut b), 2);
    // C1 does not hold there, as TTL is not on.
    b.run("UPDATE t SET ttl = 1 WHERE id = 2");
    let old = b.value("SELECT count(*) FROM t WHERE _ts < now() - interval '1 hour'");
    assert_eq!(old, "1");
    b.error("SELECT ttl.enable('t', 3600)");
    b.run("CREATE EXTENSION ttl_ext; SELECT ttl.enable('t', 3600)");
    assert_eq!(two.count(&mut b), 1);
    b.run("DROP EXTENSION ttl_ext CASCADE");
    assert_eq!(two.count(&mut b), 2);
    assert_eq!(one.count(&mut a), 1);
}

/// Not preloaded: an error that says what to do.
#[test]
fn not_preloaded() {
    let server = Server::start(&[("shared_preload_libraries", "")]);
    let error = server
        .connect("postgres", "postgres")
        .error("CREATE EXTENSION ttl_ext");
    assert_eq!(*error.code(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("shared_preload_libraries"), "{error:?}");
    // A library loaded by the session is not preloaded.
    let error = server
        .connect("postgres", "postgres")
        .error("LOAD 'ttl_ext'; CREATE EXTENSION ttl_ext");
    assert_eq!(*error.code(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
}

/// The extension exists, but the library is no longer preloaded: what needs the library says so,
/// and plain queries work.
#[test]
fn no_longer_preloaded() {
    let server = Server::start(&[]);
    let database = server.database("later");
    let mut session = database.connect();
    session.run(CachedPlans::TABLE);
    session.run("SELECT ttl.enable('t', 3600)");
    drop(session);
    server.configure(&[("shared_preload_libraries", "")]);
    server.restart();
    for call in [
        "SELECT ttl.enable('t', 60)",
        "SELECT ttl.purge('t')",
        "SELECT ttl.set_default('t', 60)",
    ] {
        let error = database.connect().error(call);
        assert_eq!(
            *error.code(),
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "{call}"
        );
        assert!(
            error
                .hint()
                .unwrap_or_default()
                .contains("shared_preload_libraries")
        );
    }
    assert_eq!(database.connect().value("SELECT count(*) FROM t"), "2");
    server.configure(&[("shared_preload_libraries", "ttl_ext")]);
    server.restart();
    assert_eq!(database.connect().value("SELECT count(*) FROM t"), "1");
}
