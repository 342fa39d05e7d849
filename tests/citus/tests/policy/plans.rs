//! C8: plans that a session has cached, those of shards on its own node too, follow a change.

use ttl_ext_citus::{Session, ids};

use crate::{ROWS, with_table};

/// A session on a node with a row's shard, in which a query of that row has been executed by a cached plan.
fn with_cached_plan(name: &str) -> (Session, Session) {
    let (app, mut session) = with_table(name);
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    let shard: i64 = session
        .value("SELECT get_shard_id_for_distribution_column('o', 25)")
        .parse()
        .expect("a shard");
    let placements = app.placements("o");
    let placement = placements.iter().find(|of| of.shard == shard);
    let mut local = app.node(placement.expect("a placement").node);
    local.run("SET citus.task_assignment_policy = 'greedy'");
    local.run("PREPARE one (int) AS SELECT count(*) FROM o WHERE id = $1");
    local.run("PREPARE every AS SELECT count(*) FROM o");
    for _ in 0..8 {
        assert_eq!(local.value("EXECUTE one (25)"), "1");
        assert_eq!(local.value("EXECUTE every"), "10");
    }
    // `application`'s databases stay with the cluster.
    (session, local)
}

#[test]
fn a_shorter_default() {
    let (mut session, mut local) = with_cached_plan("plan_shorter");
    session.run("SELECT ttl.set_default('o', 60)");
    assert_eq!(local.value("EXECUTE one (25)"), "0");
    assert_eq!(local.value("EXECUTE every"), "0");
}

#[test]
fn turned_off_and_on() {
    let (mut session, mut local) = with_cached_plan("plan_off");
    session.run("SELECT ttl.disable('o', revive_expired => true)");
    assert_eq!(local.value("EXECUTE every"), "30");
    session.run("SELECT ttl.enable('o', 60)");
    assert_eq!(local.value("EXECUTE one (25)"), "0");
    assert_eq!(local.value("EXECUTE every"), "0");
    session.run("SELECT ttl.set_default('o', -1, revive_expired => true)");
    assert_eq!(local.value("EXECUTE one (25)"), "1");
    assert_eq!(local.value("EXECUTE every"), "30");
}

/// In a transaction that has cached them, too.
#[test]
fn within_a_transaction() {
    let (_, mut local) = with_cached_plan("plan_within");
    local.run("BEGIN");
    assert_eq!(local.value("EXECUTE one (25)"), "1");
    local.run("SELECT ttl.set_default('o', 60)");
    assert_eq!(local.value("EXECUTE one (25)"), "0");
    local.run("ROLLBACK");
    assert_eq!(local.value("EXECUTE one (25)"), "1");
    assert_eq!(
        local.column("SELECT id FROM o ORDER BY id").join(" "),
        ids(21..=30)
    );
}
