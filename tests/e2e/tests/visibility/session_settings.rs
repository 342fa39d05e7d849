//! C6: what the settings of a session show, to which users, and in cached plans.

use std::sync::OnceLock;

use ttl_ext_e2e::{CachedPlans, Server, Session, SqlState};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// A session with a table of one live and one expired row, and plans cached for it.
fn with_cached_plans(server: &Server, name: &str) -> (Session, CachedPlans) {
    let mut session = server.database(name).connect();
    session.run(CachedPlans::TABLE);
    session.run("SELECT ttl.enable('t', 3600)");
    let plans = CachedPlans::of(&mut session);
    assert_eq!(plans.count(&mut session), 1);
    (session, plans)
}

/// C6: `ttl.show_expired` of a superuser acts on cached plans.
#[test]
fn show_expired_reaches_cached_plans() {
    let (mut a, plans) = with_cached_plans(server(), "show_expired");
    let setting = "ttl.show_expired = on";
    for _ in 0..2 {
        a.run(&format!("SET {setting}"));
        assert_eq!(plans.count(&mut a), 2);
        a.run("RESET ALL; SET plan_cache_mode = force_generic_plan");
        assert_eq!(plans.count(&mut a), 1, "after it");
        for end in ["COMMIT", "ROLLBACK"] {
            a.run(&format!("BEGIN; SET LOCAL {setting}"));
            assert_eq!(plans.count(&mut a), 2, "local");
            a.run(end);
            assert_eq!(plans.count(&mut a), 1, "after {end}");
        }
    }
}

/// `row_security` and cached plans: a plan made with it on still hides rows when it is off, which
/// is safe; a plan made with it off must hide rows when it is on.
#[test]
fn row_security_never_shows_more_by_cached_plans() {
    // Runs alone: a session that falls behind with invalidations plans again, and its plan then
    // depends on the present setting.
    let server = Server::start(&[("autovacuum", "off")]);
    let (mut a, plans) = with_cached_plans(&server, "row_security");
    a.run("SET row_security = off");
    assert_eq!(a.value("EXECUTE seen"), "1", "planned while on");
    a.run("DISCARD PLANS");
    assert_eq!(plans.count(&mut a), 2, "planned while off");
    a.run("RESET ALL; SET plan_cache_mode = force_generic_plan");
    assert_eq!(plans.count(&mut a), 1, "planned while off, run while on");
    for end in ["COMMIT", "ROLLBACK"] {
        a.run("BEGIN; SET LOCAL row_security = off");
        assert_eq!(plans.count(&mut a), 2, "local");
        a.run(end);
        assert_eq!(plans.count(&mut a), 1, "after {end}");
    }
}

/// Who may see expired rows, whatever plan is cached: superusers by `ttl.show_expired`, the owner
/// by `row_security`, nobody else.
#[test]
fn who_may_see_expired_rows() {
    let database = server().database("roles");
    let mut boss = database.connect();
    boss.run("CREATE ROLE holder LOGIN; CREATE ROLE visitor LOGIN; CREATE SCHEMA own AUTHORIZATION holder;
              ALTER ROLE holder SET search_path = own; ALTER ROLE visitor SET search_path = own");
    let mut holder = database.connect_as("holder");
    holder.run(CachedPlans::TABLE);
    holder.run("SELECT ttl.enable('t', 3600); GRANT USAGE ON SCHEMA own TO visitor; GRANT SELECT ON t TO visitor");
    let mut visitor = database.connect_as("visitor");
    for (session, by_row_security) in [(&mut holder, 2), (&mut visitor, 1)] {
        let plans = CachedPlans::of(session);
        assert_eq!(plans.count(session), 1);
        // The test above covers plans that were made before.
        session.run("SET row_security = off; DISCARD PLANS");
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
    let plans = CachedPlans::of(&mut boss);
    boss.run("SET row_security = off; DISCARD PLANS");
    assert_eq!(plans.count(&mut boss), 2);
    boss.run("SET ROLE visitor");
    assert_eq!(plans.count(&mut boss), 1);
    boss.run("SET ROLE holder; DISCARD PLANS");
    assert_eq!(plans.count(&mut boss), 2);
    boss.run("RESET ROLE");
    assert_eq!(plans.count(&mut boss), 2);
    // By GRANT SET, which PostgreSQL knows since 15.
    boss.run("GRANT SET ON PARAMETER ttl.show_expired TO visitor");
    visitor.run("SET ttl.show_expired = on");
    assert_eq!(visitor.value("SELECT count(*) FROM t"), "2");
    boss.run("REVOKE SET ON PARAMETER ttl.show_expired FROM visitor");
}

/// The caller's `row_security` has no effect in a function that runs as the table's owner, such as
/// one that checks a token: expired rows stay hidden (C6).
#[test]
fn not_through_functions_of_the_owner() {
    let database = server().database("definer");
    let mut boss = database.connect();
    boss.run(
        "CREATE ROLE maker LOGIN; CREATE ROLE caller LOGIN; CREATE SCHEMA own AUTHORIZATION maker",
    );
    let mut maker = database.connect_as("maker");
    maker.run("SET search_path = own");
    maker.run(CachedPlans::TABLE);
    maker.run(
        "SELECT ttl.enable('t', 3600);
         CREATE VIEW v AS SELECT * FROM t;
         CREATE FUNCTION by_sql() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = own
             AS 'SELECT count(*) FROM t';
         CREATE FUNCTION by_plpgsql() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = own
             AS 'BEGIN RETURN (SELECT count(*) FROM t); END';
         CREATE FUNCTION by_execute() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = own
             AS 'DECLARE n bigint; BEGIN EXECUTE ''SELECT count(*) FROM t'' INTO n; RETURN n; END';
         GRANT USAGE ON SCHEMA own TO caller; GRANT SELECT ON v TO caller",
    );
    // No plan is cached when the caller begins.
    let mut caller = database.connect_as("caller");
    caller.run("SET row_security = off");
    for query in [
        "SELECT own.by_sql()",
        "SELECT own.by_plpgsql()",
        "SELECT own.by_execute()",
        "SELECT count(*) FROM own.v",
    ] {
        assert_eq!(caller.value(query), "1", "{query}");
    }
}
