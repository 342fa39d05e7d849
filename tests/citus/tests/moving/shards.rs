//! Moves, splits, isolated tenants, rebalancing, nodes that are drained, added and removed.

use ttl_ext_citus::{Application, Session};

use crate::{MODES, check, cluster, contents, with_table};

/// Move a table's first shard to the other worker.
#[track_caller]
fn move_first(app: &Application<'_>, session: &mut Session, table: &str, mode: &str) {
    let first = &app.placements(table)[0];
    let (from, to) = (first.node, if first.node == 1 { 2 } else { 1 });
    session.run(&format!(
        "SELECT citus_move_shard_placement({}, {}, {}, '{mode}')",
        first.shard,
        app.address(from),
        app.address(to)
    ));
    let moved = app.placements(table);
    let moved = moved.iter().find(|of| of.shard == first.shard);
    assert_eq!(moved.map(|of| of.node), Some(to), "{mode}");
}

#[test]
fn moved() {
    for mode in MODES {
        let (app, mut session) = with_table(&format!("moved_{mode}"));
        let before = contents(&app, "o");
        move_first(&app, &mut session, "o", mode);
        check(&app, &mut session, &before);
    }
}

#[test]
fn split() {
    for mode in MODES {
        let (app, mut session) = with_table(&format!("split_{mode}"));
        let before = contents(&app, "o");
        let shard = app.placements("o")[0].shard;
        let middle = session.value(&format!(
            "SELECT (shardminvalue::bigint + shardmaxvalue::bigint) / 2 FROM pg_dist_shard WHERE shardid = {shard}"
        ));
        session.run(&format!(
            "SELECT citus_split_shard_by_split_points({shard}, ARRAY['{middle}'],
                (SELECT array_agg(nodeid::int ORDER BY nodeid) FROM pg_dist_node WHERE groupid > 0), '{mode}')"
        ));
        assert_eq!(app.placements("o").len(), 5, "{mode}");
        check(&app, &mut session, &before);
    }
}

#[test]
fn isolated() {
    for mode in MODES {
        let (app, mut session) = with_table(&format!("isolated_{mode}"));
        let before = contents(&app, "o");
        session.run(&format!(
            "SELECT isolate_tenant_to_new_shard('o', 5, shard_transfer_mode => '{mode}')"
        ));
        assert!(app.placements("o").len() > 4, "{mode}");
        check(&app, &mut session, &before);
    }
}

#[test]
fn a_node_is_added_and_drained() {
    for mode in MODES {
        let (mut app, mut session) = with_table(&format!("nodes_{mode}"));
        let before = contents(&app, "o");
        let new = app.add_node(Box::leak(Box::new(cluster().spare())));
        session.run(&format!(
            "SELECT rebalance_table_shards('o', shard_transfer_mode => '{mode}')"
        ));
        let on = |node: usize| {
            app.placements("o")
                .iter()
                .filter(|of| of.node == node)
                .count()
        };
        assert!(on(new) > 0, "{mode}");
        assert_eq!(contents(&app, "o"), before, "{mode}");
        session.run(&format!(
            "SELECT citus_drain_node({}, shard_transfer_mode => '{mode}')",
            app.address(1)
        ));
        assert_eq!(on(1), 0, "{mode}");
        session.run(&format!("SELECT citus_remove_node({})", app.address(1)));
        assert_eq!(on(2) + on(new), 4, "{mode}");
        assert_eq!(contents(&app, "o"), before, "{mode}");
        assert_eq!(session.value("SELECT count(*) FROM o"), "20", "{mode}");
        assert_eq!(session.value("SELECT ttl.purge('o')"), "20", "{mode}");
    }
}

#[test]
fn rebalanced_in_the_background() {
    let (mut app, mut session) = with_table("background");
    let before = contents(&app, "o");
    let new = app.add_node(Box::leak(Box::new(cluster().spare())));
    let job = session.value("SELECT citus_rebalance_start(shard_transfer_mode => 'force_logical')");
    session.run(&format!("SELECT citus_job_wait({job})"));
    assert!(app.placements("o").iter().any(|of| of.node == new));
    check(&app, &mut session, &before);
}

/// Reference tables come to a new node as a copy.
#[test]
fn reference_tables_come_to_a_new_node() {
    for mode in MODES {
        let mut app = cluster().application(&format!("reference_{mode}"));
        let mut session = app.coordinator();
        session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
        session.run("SELECT create_reference_table('o')");
        session.run("SELECT ttl.enable('o', 3600)");
        session.run_preserving(
            "INSERT INTO o (id, _ts) SELECT n, now() - n * interval '10 minutes' FROM generate_series(1, 20) AS n",
        );
        let new = app.add_node(Box::leak(Box::new(cluster().spare())));
        session.run(&format!("SELECT replicate_reference_tables('{mode}')"));
        app.assert_copies_equal("o");
        assert_eq!(app.placements("o").len(), 4);
        assert_eq!(app.node(new).value("SELECT count(*) FROM o"), "5");
        assert_eq!(app.problems(new, "o"), "");
        session.run("INSERT INTO o (id) VALUES (20)");
        app.assert_copies_equal("o");
        session.run("SELECT ttl.purge('o')");
        app.assert_copies_equal("o");
        assert_eq!(session.value("SELECT count(*) FROM o"), "6");
    }
}

/// With TTL indexes, whose names are the shards' own.
#[test]
fn with_ttl_indexes() {
    let app = cluster().application("moved_indexes");
    let mut session = app.coordinator();
    session.run(
        "CREATE TABLE o (id int PRIMARY KEY, ends timestamptz); CREATE INDEX o_ends ON o (ends)",
    );
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.expire_index('o_ends', 0)");
    session.run("INSERT INTO o SELECT n, now() + (n - 20.5) * interval '1 hour' FROM generate_series(1, 40) AS n");
    let before = contents(&app, "o");
    for mode in MODES {
        move_first(&app, &mut session, "o", mode);
        assert_eq!(contents(&app, "o"), before, "{mode}");
        assert_eq!(session.value("SELECT count(*) FROM o"), "20", "{mode}");
    }
    session
        .run("SELECT isolate_tenant_to_new_shard('o', 5, shard_transfer_mode => 'force_logical')");
    assert_eq!(contents(&app, "o"), before);
    assert_eq!(session.value("SELECT count(*) FROM o"), "20");
    assert_eq!(session.value("SELECT ttl.purge('o')"), "20");
}
