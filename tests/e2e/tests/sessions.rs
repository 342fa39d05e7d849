//! What one session changes, the others see at their next statement, whatever
//! plans they have cached.

use std::sync::OnceLock;

use ttl_ext_e2e::{Server, Session, SqlState};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// A table with a row that was written now and one written two hours ago.
const TABLE: &str = "
CREATE TABLE t (id integer PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
INSERT INTO t VALUES (1, now()), (2, now() - interval '2 hours');
CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM t);
END $$;
";

/// Plans that outlive their statement: by PREPARE, in plpgsql, by the protocol.
struct Cached(postgres::Statement);

impl Cached {
    fn of(session: &mut Session) -> Cached {
        session.run(
            "SET plan_cache_mode = force_generic_plan; PREPARE seen AS SELECT count(*) FROM t",
        );
        let cached = Cached(
            session
                .client
                .prepare("SELECT count(*) FROM t")
                .expect("prepare"),
        );
        // Several runs, so that plpgsql's plan is a generic one too.
        for _ in 0..7 {
            cached.count(session);
        }
        cached
    }

    /// How many rows the plans see; they must agree.
    #[track_caller]
    fn count(&self, session: &mut Session) -> i64 {
        let rows = session
            .client
            .query(&self.0, &[])
            .expect("prepared statement");
        let count: i64 = rows[0].get(0);
        let others = ["EXECUTE seen", "SELECT seen()", "SELECT count(*) FROM t"];
        for other in others {
            assert_eq!(session.value(other), count.to_string(), "{other}");
        }
        count
    }
}

/// C8, C9: enable, a new default, off, the label by hand, rolled back or not.
#[test]
fn changes_reach_cached_plans() {
    let database = server().database("reach");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(TABLE);
    let plans = Cached::of(&mut a);
    assert_eq!(plans.count(&mut a), 2);

    let steps = [
        ("SELECT ttl.enable('t', 3600)", 1),
        ("SELECT ttl.set_default('t', 86400)", 2),
        ("SELECT ttl.set_default('t', 60)", 1),
        ("SELECT ttl.set_default('t', -1)", 2),
        (
            "UPDATE t SET ttl = 1 WHERE false; SELECT ttl.set_default('t', 60)",
            1,
        ),
        ("SELECT ttl.disable('t')", 2),
        ("SELECT ttl.set_default('t', 60)", 1),
        ("SELECT ttl.set_default('t', NULL)", 2),
        ("SELECT ttl.enable('t', 3600)", 1),
        ("SECURITY LABEL FOR ttl ON TABLE t IS NULL", 2),
    ];
    for (change, expected) in steps {
        let before = plans.count(&mut a);
        // Rolled back: it acts within the transaction and nowhere else.
        b.run(&format!("BEGIN; {change}"));
        assert_eq!(
            b.value("SELECT count(*) FROM t"),
            expected.to_string(),
            "{change}"
        );
        assert_eq!(b.value("SELECT seen()"), expected.to_string(), "{change}");
        b.run("ROLLBACK");
        assert_eq!(
            b.value("SELECT seen()"),
            before.to_string(),
            "rolled back: {change}"
        );
        assert_eq!(plans.count(&mut a), before, "rolled back: {change}");
        // To a savepoint only.
        b.run(&format!("BEGIN; SAVEPOINT s; {change}; ROLLBACK TO s"));
        assert_eq!(
            b.value("SELECT seen()"),
            before.to_string(),
            "to the savepoint: {change}"
        );
        b.run("COMMIT");
        assert_eq!(plans.count(&mut a), before, "to the savepoint: {change}");

        b.run(change);
        assert_eq!(plans.count(&mut a), expected, "{change}");
        assert_eq!(b.value("SELECT seen()"), expected.to_string(), "{change}");
    }
}

/// The label as a user writes it, and one that is not a policy.
#[test]
fn the_label_is_the_policy() {
    let database = server().database("label");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(TABLE);
    b.run("SELECT ttl.enable('t', 3600)");
    let plans = Cached::of(&mut a);
    assert_eq!(plans.count(&mut a), 1);
    let label = b.value("SELECT label FROM pg_seclabels WHERE provider = 'ttl'");
    let longer = label.replace("3600", "86400");
    assert_ne!(label, longer);
    b.run(&format!("SECURITY LABEL FOR ttl ON TABLE t IS '{longer}'"));
    assert_eq!(plans.count(&mut a), 2);
    assert_eq!(b.value("SELECT default_ttl FROM ttl.tables"), "86400");
    for bad in [
        "no policy",
        "{}x",
        "{\"unknown_field\": 1}",
        "{\"default_ttl\": 0}",
        "[]",
    ] {
        b.error(&format!("SECURITY LABEL FOR ttl ON TABLE t IS '{bad}'"));
        assert_eq!(plans.count(&mut a), 2, "{bad}");
    }
}

/// C8 for partitions: the policy of the root, in plans of the leaves.
#[test]
fn changes_reach_partitions() {
    let database = server().database("parts");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(
        "CREATE TABLE t (id integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer) PARTITION BY RANGE (id);
         CREATE TABLE middle PARTITION OF t FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);
         CREATE TABLE leaf PARTITION OF middle DEFAULT;
         INSERT INTO t VALUES (1, now()), (2, now() - interval '2 hours')",
    );
    let names = ["t", "middle", "leaf"];
    a.run("SET plan_cache_mode = force_generic_plan");
    for name in names {
        a.run(&format!("PREPARE p_{name} AS SELECT count(*) FROM {name}"));
    }
    let mut check = |expected: &str, what: &str| {
        for name in names {
            assert_eq!(
                a.value(&format!("EXECUTE p_{name}")),
                expected,
                "{name} after {what}"
            );
        }
    };
    check("2", "nothing");
    b.run("SELECT ttl.enable('t', 3600)");
    check("1", "enable");
    b.run("SELECT ttl.set_default('t', 86400)");
    check("2", "set_default");
    b.run("SELECT ttl.set_default('t', 3600)");
    check("1", "set_default");
    b.run("SELECT ttl.disable('t')");
    check("2", "disable");
    b.run("SELECT ttl.enable('t', 3600)");
    check("1", "enable");
    // Out of the parent, a table no longer has its policy.
    b.run("ALTER TABLE t DETACH PARTITION middle");
    assert_eq!(a.value("EXECUTE p_leaf"), "2");
    assert_eq!(a.value("EXECUTE p_middle"), "2");
    assert_eq!(a.value("EXECUTE p_t"), "0");
    b.run("ALTER TABLE t ATTACH PARTITION middle FOR VALUES FROM (0) TO (10)");
    check("1", "attach");
}

/// The settings of a session act on plans that it has cached before.
#[test]
fn settings_reach_cached_plans() {
    let database = server().database("settings");
    let mut a = database.connect();
    a.run(TABLE);
    a.run("SELECT ttl.enable('t', 3600)");
    let plans = Cached::of(&mut a);
    assert_eq!(plans.count(&mut a), 1);
    for setting in ["ttl.show_expired = on", "row_security = off"] {
        for _ in 0..2 {
            a.run(&format!("SET {setting}"));
            assert_eq!(plans.count(&mut a), 2, "{setting}");
            a.run("RESET ALL; SET plan_cache_mode = force_generic_plan");
            assert_eq!(plans.count(&mut a), 1, "after {setting}");
            a.run(&format!("BEGIN; SET LOCAL {setting}"));
            assert_eq!(plans.count(&mut a), 2, "local {setting}");
            a.run("COMMIT");
            assert_eq!(plans.count(&mut a), 1, "after local {setting}");
        }
    }
}

/// Who may see expired rows: superusers by ttl.show_expired, the owner by
/// row_security, nobody else by either, whatever plan a session has cached.
#[test]
fn who_may_see_expired_rows() {
    let database = server().database("roles");
    let mut boss = database.connect();
    boss.run("CREATE ROLE holder LOGIN; CREATE ROLE visitor LOGIN; CREATE SCHEMA own AUTHORIZATION holder;
              ALTER ROLE holder SET search_path = own; ALTER ROLE visitor SET search_path = own");
    let mut holder = database.connect_as("holder");
    holder.run(TABLE);
    holder.run("SELECT ttl.enable('t', 3600); GRANT USAGE ON SCHEMA own TO visitor; GRANT SELECT ON t TO visitor");
    let mut visitor = database.connect_as("visitor");
    for (session, by_row_security) in [(&mut holder, 2), (&mut visitor, 1)] {
        let plans = Cached::of(session);
        assert_eq!(plans.count(session), 1);
        session.run("SET row_security = off");
        assert_eq!(plans.count(session), by_row_security);
        assert_eq!(
            session.copy_out("COPY t TO STDOUT").len() as i64,
            by_row_security
        );
        session.run("SET row_security = on");
        assert_eq!(plans.count(session), 1);
        let error = session.error("SET ttl.show_expired = on");
        assert_eq!(*error.code(), SqlState::INSUFFICIENT_PRIVILEGE);
    }
    // A session that changes its role: the same cached plan for both.
    boss.run("SET search_path = own");
    let plans = Cached::of(&mut boss);
    boss.run("SET row_security = off");
    assert_eq!(plans.count(&mut boss), 2);
    boss.run("SET ROLE visitor");
    assert_eq!(plans.count(&mut boss), 1);
    boss.run("SET ROLE holder");
    assert_eq!(plans.count(&mut boss), 2);
    boss.run("RESET ROLE");
    assert_eq!(plans.count(&mut boss), 2);
    // By GRANT SET, which PostgreSQL knows since 15.
    boss.run("GRANT SET ON PARAMETER ttl.show_expired TO visitor");
    visitor.run("SET ttl.show_expired = on");
    assert_eq!(visitor.value("SELECT count(*) FROM t"), "2");
    boss.run("REVOKE SET ON PARAMETER ttl.show_expired FROM visitor");
}

/// The extension goes and comes while other sessions work.
#[test]
fn drop_and_create_extension() {
    let database = server().database("comes_and_goes");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(TABLE);
    b.run("SELECT ttl.enable('t', 3600)");
    let plans = Cached::of(&mut a);
    assert_eq!(plans.count(&mut a), 1);
    b.run("BEGIN; DROP EXTENSION ttl_ext CASCADE; ROLLBACK");
    assert_eq!(plans.count(&mut a), 1);
    b.run("DROP EXTENSION ttl_ext CASCADE");
    assert_eq!(plans.count(&mut a), 2);
    a.run("UPDATE t SET ttl = NULL; INSERT INTO t VALUES (3, now())");
    assert_eq!(plans.count(&mut a), 3);
    for _ in 0..2 {
        b.run("CREATE EXTENSION ttl_ext");
        a.run("SELECT ttl.enable('t', 3600)");
        assert_eq!(plans.count(&mut a), 2);
        let fresh = database.connect().value("SELECT count(*) FROM t");
        assert_eq!(fresh, "2");
        b.run("DROP EXTENSION ttl_ext CASCADE");
        assert_eq!(plans.count(&mut a), 3);
    }
}

/// A table that goes, and another of its name.
#[test]
fn a_table_of_the_same_name() {
    let database = server().database("same_name");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(TABLE);
    b.run("SELECT ttl.enable('t', 3600)");
    let plans = Cached::of(&mut a);
    assert_eq!(plans.count(&mut a), 1);
    b.run("BEGIN; ALTER TABLE t RENAME TO old; CREATE TABLE t AS TABLE old; COMMIT");
    // It was made of what was seen.
    assert_eq!(plans.count(&mut a), 1);
    b.run("INSERT INTO t SELECT 7, now() - interval '1 year'");
    assert_eq!(plans.count(&mut a), 2);
    assert_eq!(a.value("SELECT count(*) FROM old"), "1");
    b.run("DROP TABLE t; ALTER TABLE old RENAME TO t");
    assert_eq!(plans.count(&mut a), 1);
}

/// Databases of one server: one without the extension is left alone.
#[test]
fn other_databases() {
    let with = server().database("with_it");
    let without = server().plain_database("without_it");
    let (mut a, mut b) = (with.connect(), without.connect());
    a.run(TABLE);
    b.run(TABLE);
    a.run("SELECT ttl.enable('t', 3600)");
    let (one, two) = (Cached::of(&mut a), Cached::of(&mut b));
    assert_eq!(one.count(&mut a), 1);
    assert_eq!(two.count(&mut b), 2);
    // C1 does not hold there either: nobody asked for it.
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
    // Loaded by the session is not preloaded.
    let error = server
        .connect("postgres", "postgres")
        .error("LOAD 'ttl_ext'; CREATE EXTENSION ttl_ext");
    assert_eq!(*error.code(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
}

/// A database that has it, on a server that no longer preloads it: what needs
/// the library says so, and plain queries go on.
#[test]
fn no_longer_preloaded() {
    let server = Server::start(&[]);
    let database = server.database("later");
    let mut session = database.connect();
    session.run(TABLE);
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
