//! Rule 8: purge, statistics, problems, pauses and the second life, over all placements.

use std::sync::OnceLock;

use ttl_ext_citus::{Cluster, PATIENCE, SqlState, ids};

use crate::{expired, sweeping, with_table};

fn resting() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&[]))
}

#[test]
fn purge_on_each_node() {
    let (app, mut session) = with_table(resting(), "purged");
    for node in 0..app.size() {
        // An INSERT of many rows would make room for them.
        session.run("INSERT INTO o SELECT n, 'x' FROM generate_series(101, 110) AS n");
        expired(&mut session, 1, 60);
        assert_eq!(
            app.node(node).value("SELECT ttl.purge('o')"),
            "60",
            "node {node}"
        );
        assert_eq!(app.on_disk("o"), ids(101..=110), "node {node}");
        session.run("TRUNCATE o");
    }
    // Not in the caller's transaction: by connections of its own.
    expired(&mut session, 1, 60);
    session.run("BEGIN; SELECT ttl.purge('o'); ROLLBACK");
    assert_eq!(app.on_disk("o"), "");
}

#[test]
fn preview_and_problems() {
    let (app, mut session) = with_table(resting(), "previewed");
    session.run("INSERT INTO o SELECT n, 'x' FROM generate_series(101, 110) AS n");
    expired(&mut session, 1, 60);
    for node in 0..app.size() {
        let mut session = app.node(node);
        let preview = "SELECT total, expired, oldest_expiry < now() - interval '22 hours' FROM ttl.preview('o')";
        assert_eq!(session.rows(preview), [["70", "60", "t"]], "node {node}");
        let longer = "SELECT expired FROM ttl.preview('o', 86400 * 2)";
        assert_eq!(session.value(longer), "0", "node {node}");
        assert_eq!(app.problems(node, "o"), "", "node {node}");
    }
}

#[test]
fn second_life() {
    let (app, mut session) = with_table(resting(), "second_life");
    expired(&mut session, 1, 60);
    for node in 0..app.size() {
        let mut session = app.node(node);
        let first = 10 * node + 1;
        let revived = session.value(&format!(
            "SELECT ttl.revive('o', 'id BETWEEN {first} AND {}')",
            first + 4
        ));
        assert_eq!(revived, "5", "node {node}");
    }
    let live = [ids(1..=5), ids(11..=15), ids(21..=25)].join(" ");
    let seen = session.column("SELECT id FROM o ORDER BY id").join(" ");
    assert_eq!(seen, live);
    // A function cannot return the rows of other nodes' tables.
    let error = session.error("SELECT count(*) FROM ttl.expired(NULL::o)");
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    assert!(error.hint().is_some(), "{error:?}");
    assert_eq!(session.value("SELECT ttl.revive('o')"), "45");
    assert_eq!(session.value("SELECT count(*) FROM o"), "60");
}

#[test]
fn placements() {
    let (app, mut session) = with_table(sweeping(), "placements");
    session.run("CREATE TABLE r (id int PRIMARY KEY); SELECT create_reference_table('r')");
    session.run("SELECT ttl.enable('r', 3600)");
    expired(&mut session, 1, 200);
    session.insert_expired("r", 1, 10);
    app.wait_for_disk("o", "");
    app.wait_for_disk("r", "");
    for node in 0..app.size() {
        let mut session = app.node(node);
        session.wait_until(
            "SELECT count(*) || ' ' || count(DISTINCT nodename) || ' ' || sum(rows_deleted) || ' ' || max(coalesce(backlog_estimate, 0))
               FROM ttl.placements WHERE relation LIKE '%o' AND nodename <> (SELECT nodename FROM pg_dist_node WHERE groupid = 0)",
            "2 2 200 0",
            PATIENCE,
        );
        session.wait_until(
            "SELECT count(*) || ' ' || count(DISTINCT nodename) || ' ' || sum(rows_deleted)
               FROM ttl.placements WHERE relation LIKE '%r'",
            "3 3 30",
            PATIENCE,
        );
        let wrong = "SELECT count(*) FROM ttl.placements WHERE cardinality(problems) > 0 OR error IS NOT NULL";
        assert_eq!(session.value(wrong), "0", "node {node}");
    }
    // A node's own figures are those of its shards.
    let mut deleted = 0;
    for node in 1..app.size() {
        let own = "SELECT rows_deleted FROM ttl.stats WHERE relation = 'o'::regclass";
        deleted += app.node(node).value(own).parse::<i32>().expect("a count");
    }
    assert_eq!(deleted, 200);
}

/// Foreign to the cluster, or half of it: said, not passed over.
#[test]
fn a_node_that_is_down() {
    let cluster = Cluster::start(&[]);
    let app = cluster.application("down");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 3600)");
    cluster.nodes()[2].stop(ttl_ext_citus::Stop::Fast);
    for call in [
        "ttl.purge('o')",
        "ttl.set_default('o', 60)",
        "ttl.disable('o')",
        "ttl.preview('o')",
    ] {
        session.error(&format!("SELECT {call}"));
    }
    cluster.nodes()[2].launch();
    assert_eq!(
        session.value("SELECT default_ttl FROM ttl.tables WHERE relation = 'o'::regclass"),
        "3600"
    );
}
