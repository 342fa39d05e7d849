//! C8, C9: other sessions see a change of policy at their next statement, whatever plans they have
//! cached.

use std::sync::OnceLock;

use ttl_ext_e2e::{CachedPlans, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[("max_prepared_transactions", "5")]))
}

/// C8, C9: enable, a new default, off, the label by hand, rolled back or not.
#[test]
fn changes_reach_cached_plans() {
    let database = server().database("reach");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(CachedPlans::TABLE);
    let plans = CachedPlans::of(&mut a);
    assert_eq!(plans.count(&mut a), 2);

    let steps = [
        ("SELECT ttl.enable('t', 3600)", 1),
        (
            "SELECT ttl.set_default('t', 86400, revive_expired => true)",
            2,
        ),
        ("SELECT ttl.set_default('t', 60)", 1),
        ("SELECT ttl.set_default('t', -1, revive_expired => true)", 2),
        (
            "UPDATE t SET ttl = 1 WHERE false; SELECT ttl.set_default('t', 60)",
            1,
        ),
        ("SELECT ttl.disable('t', revive_expired => true)", 2),
        ("SELECT ttl.set_default('t', 60)", 1),
        (
            "SELECT ttl.set_default('t', NULL, revive_expired => true)",
            2,
        ),
        ("SELECT ttl.enable('t', 3600)", 1),
        ("SECURITY LABEL FOR ttl ON TABLE t IS NULL", 2),
    ];
    for (change, expected) in steps {
        let before = plans.count(&mut a);
        // Rolled back: it acts only within the transaction.
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
    b.run(CachedPlans::TABLE);
    b.run("SELECT ttl.enable('t', 3600)");
    let plans = CachedPlans::of(&mut a);
    assert_eq!(plans.count(&mut a), 1);
    let label =
        b.value("SELECT label FROM pg_seclabels WHERE provider = 'ttl' AND objtype = 'table'");
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
    a.run("SET plan_cache_mode = force_generic_plan");
    for name in ["t", "middle", "leaf"] {
        a.run(&format!("PREPARE p_{name} AS SELECT count(*) FROM {name}"));
    }
    fn check(session: &mut Session, expected: &str, when: &str) {
        for name in ["t", "middle", "leaf"] {
            let query = format!("EXECUTE p_{name}");
            assert_eq!(session.value(&query), expected, "{name} after {when}");
        }
    }
    check(&mut a, "2", "nothing");
    b.run("SELECT ttl.enable('t', 3600)");
    check(&mut a, "1", "enable");
    b.run("SELECT ttl.set_default('t', 86400, revive_expired => true)");
    check(&mut a, "2", "set_default");
    b.run("SELECT ttl.set_default('t', 3600)");
    check(&mut a, "1", "set_default");
    b.run("SELECT ttl.disable('t', revive_expired => true)");
    check(&mut a, "2", "disable");
    b.run("SELECT ttl.enable('t', 3600)");
    check(&mut a, "1", "enable");
    // A detached table no longer has the parent's policy.
    b.run("ALTER TABLE t DETACH PARTITION middle");
    assert_eq!(a.value("EXECUTE p_leaf"), "2");
    assert_eq!(a.value("EXECUTE p_middle"), "2");
    assert_eq!(a.value("EXECUTE p_t"), "0");
    b.run("ALTER TABLE t ATTACH PARTITION middle FOR VALUES FROM (0) TO (10)");
    check(&mut a, "1", "attach");
}

/// A table that goes, and another of its name.
#[test]
fn a_table_of_the_same_name() {
    let database = server().database("same_name");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(CachedPlans::TABLE);
    b.run("SELECT ttl.enable('t', 3600)");
    let plans = CachedPlans::of(&mut a);
    assert_eq!(plans.count(&mut a), 1);
    b.run("BEGIN; ALTER TABLE t RENAME TO old; CREATE TABLE t AS TABLE old; COMMIT");
    // It was created from the visible rows.
    assert_eq!(plans.count(&mut a), 1);
    b.run("INSERT INTO t SELECT 7, now() - interval '1 year'");
    assert_eq!(plans.count(&mut a), 2);
    assert_eq!(a.value("SELECT count(*) FROM old"), "1");
    b.run("DROP TABLE t; ALTER TABLE old RENAME TO t");
    assert_eq!(plans.count(&mut a), 1);
}

/// A policy set in a prepared transaction.
#[test]
fn changes_by_two_phase_commit() {
    let database = server().database("two_phase");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(CachedPlans::TABLE);
    let plans = CachedPlans::of(&mut a);
    b.run("BEGIN; SELECT ttl.enable('t', 3600); PREPARE TRANSACTION 'one'");
    b.run("ROLLBACK PREPARED 'one'");
    assert_eq!(plans.count(&mut a), 2);
    b.run("SELECT ttl.enable('t', 3600)");
    assert_eq!(plans.count(&mut a), 1);
    b.run("BEGIN; SELECT ttl.set_default('t', 86400, revive_expired => true); PREPARE TRANSACTION 'two'");
    assert_eq!(plans.count(&mut a), 1);
    a.run("COMMIT PREPARED 'two'");
    assert_eq!(plans.count(&mut a), 2);
    assert_eq!(b.value("SELECT count(*) FROM t"), "2");
}

/// C1 in plans that were cached before the table had TTL.
#[test]
fn the_clock_reaches_cached_plans() {
    let database = server().database("clock");
    let (mut a, mut b) = (database.connect(), database.connect());
    b.run(CachedPlans::TABLE);
    a.run(
        "SET plan_cache_mode = force_generic_plan;
         PREPARE add AS INSERT INTO t VALUES (100, '2020-01-01') RETURNING _ts;
         PREPARE touch AS UPDATE t SET _ts = '2020-01-01' WHERE id = 1 RETURNING _ts",
    );
    let given = "2020-01-01 00:00:00+00";
    let mut stamps = |stamped: bool, when: &str| {
        for statement in ["EXECUTE add", "EXECUTE touch"] {
            a.run("BEGIN");
            let ts = a.value(statement);
            a.run("ROLLBACK");
            assert_eq!(ts != given, stamped, "{statement} {when}: {ts}");
        }
    };
    stamps(false, "without TTL");
    b.run("SELECT ttl.enable('t', 864000)");
    stamps(true, "with TTL");
    b.run("SELECT ttl.set_default('t', 60)");
    stamps(true, "with another default");
    b.run("SECURITY LABEL FOR ttl ON TABLE t IS NULL");
    stamps(false, "without a policy");
}
