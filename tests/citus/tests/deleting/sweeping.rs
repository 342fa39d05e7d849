//! C7: what has expired goes from all nodes in the background, and nothing else does.

use ttl_ext_citus::{PATIENCE, ids};

use crate::{expired, sweeping, with_table};

#[test]
fn rows_go_from_all_nodes() {
    let (app, mut session) = with_table(sweeping(), "swept");
    session.run("INSERT INTO o SELECT n, 'live' FROM generate_series(1, 20) AS n");
    expired(&mut session, 101, 400);
    app.wait_for_disk("o", &ids(1..=20));
    // Again, by another node, and rows with an override.
    expired(&mut app.node(2), 101, 200);
    session.run_preserving(
        "INSERT INTO o (id, ttl, _ts) SELECT n, 60, now() - interval '2 minutes' FROM generate_series(201, 220) AS n;
         INSERT INTO o (id, ttl, _ts) SELECT n, -1, now() - interval '1 year' FROM generate_series(21, 25) AS n",
    );
    app.wait_for_disk("o", &ids(1..=25));
    assert_eq!(app.problems(0, "o"), "");
}

/// Nothing waits for `ttl.resume`, on whichever node.
#[test]
fn without_a_word() {
    let app = sweeping().application("unasked");
    let mut session = app.coordinator();
    for (table, create) in [
        ("o", "create_distributed_table('o', 'id')"),
        ("r", "create_reference_table('r')"),
        ("l", "citus_add_local_table_to_metadata('l')"),
        ("s", "create_distributed_table('s', NULL)"),
    ] {
        session.run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, v text)"
        ));
        session.run(&format!("SELECT {create}"));
        session.run(&format!("SELECT ttl.enable('{table}', 3600)"));
        session.insert_expired(table, 1, 50);
        app.wait_for_disk(table, "");
    }
}

#[test]
fn a_longer_default_is_heeded_everywhere() {
    let (app, mut session) = with_table(sweeping(), "longer");
    session.run("SELECT ttl.set_default('o', '1 week')");
    expired(&mut session, 1, 40);
    session.run_preserving("INSERT INTO o (id, ttl, _ts) SELECT n, 60, now() - interval '1 day' FROM generate_series(101, 140) AS n");
    app.wait_for_disk("o", &ids(1..=40));
    session.run("SELECT ttl.disable('o')");
    session.run_preserving("UPDATE o SET _ts = now() - interval '1 year'");
    session.run("INSERT INTO o (id) VALUES (41)");
    assert_eq!(app.on_disk("o"), ids(1..=41));
    session.run("SELECT ttl.enable('o', 3600)");
    app.wait_for_disk("o", "41");
}

/// Where shards have come to, and as they are after a split.
#[test]
fn after_moves_and_splits() {
    let (app, mut session) = with_table(sweeping(), "moved");
    let first = app.placements("o")[0].clone();
    let to = if first.node == 1 { 2 } else { 1 };
    session.run(&format!(
        "SELECT citus_move_shard_placement({}, {}, {}, 'force_logical')",
        first.shard,
        app.address(first.node),
        app.address(to)
    ));
    expired(&mut session, 1, 100);
    app.wait_for_disk("o", "");
    session
        .run("SELECT isolate_tenant_to_new_shard('o', 7, shard_transfer_mode => 'force_logical')");
    expired(&mut session, 1, 100);
    app.wait_for_disk("o", "");
    session.run("SELECT alter_distributed_table('o', shard_count => 3)");
    expired(&mut session, 1, 100);
    app.wait_for_disk("o", "");
}

/// A row that has expired in the copy that a move is making, and at the source not any more: the change that Citus
/// replicates must find it.
#[test]
fn a_copy_in_the_making_is_left_alone() {
    let (app, mut session) = with_table(sweeping(), "copied");
    session.run("INSERT INTO o SELECT n, 'live' FROM generate_series(1, 40) AS n");
    session.run("CREATE TABLE other (id int PRIMARY KEY)");
    session.run("SELECT create_distributed_table('other', 'id', colocate_with => 'none')");
    session.run("SELECT ttl.enable('other', 3600)");
    let moved = app.placements("o")[0].clone();
    let to = if moved.node == 1 { 2 } else { 1 };
    let of_shard = |from: i32| {
        app.coordinator().value(&format!(
            "SELECT min(n) FROM generate_series({from}, {from} + 39) AS n
              WHERE get_shard_id_for_distribution_column('o', n) = {}",
            moved.shard
        ))
    };
    let (row, absent) = (of_shard(1), of_shard(41));
    let direct = |node: usize| {
        let mut session = app.node(node);
        session.run("SET citus.enable_manual_changes_to_shards = on; SET ttl.preserve_ts = on");
        session
    };
    std::thread::scope(|scope| {
        // Keeps the move from its end. Closed if this fails, so that the move ends.
        let mut writer = app.coordinator();
        writer.run(&format!("BEGIN; UPDATE o SET v = 'x' WHERE id = {absent}"));
        let move_shard = format!(
            "SELECT citus_move_shard_placement({}, {}, {}, 'force_logical')",
            moved.shard,
            app.address(moved.node),
            app.address(to)
        );
        let mut mover = app.coordinator();
        let moving = scope.spawn(move || mover.run(&move_shard));
        session.wait_until(
            "SELECT count(*) > 0 FROM pg_locks JOIN pg_database AS d ON d.oid = database
              WHERE NOT granted AND locktype = 'advisory' AND datname = current_database()",
            "t",
            PATIENCE,
        );
        direct(to).run(&format!(
            "UPDATE {} SET ttl = 1, _ts = now() - interval '1 hour' WHERE id = {row}",
            moved.relation
        ));
        // The workers of all nodes look at their tables meanwhile.
        for _ in 0..3 {
            session.insert_expired("other", 1, 40);
            app.wait_for_disk("other", "");
        }
        let on_disk = app.database(to).disk().value(&format!(
            "SELECT count(*) FROM {} WHERE id = {row}",
            moved.relation
        ));
        direct(moved.node).run(&format!(
            "UPDATE {} SET v = 'refreshed', _ts = now() WHERE id = {row}",
            moved.relation
        ));
        writer.run("COMMIT");
        moving.join().expect("the shard moves");
        assert_eq!(on_disk, "1", "rows of the copy");
    });
    assert_eq!(
        app.placements("o")
            .iter()
            .find(|p| p.shard == moved.shard)
            .map(|p| p.node),
        Some(to)
    );
    assert_eq!(app.on_disk("o"), ids(1..=40));
    assert_eq!(
        session.value(&format!("SELECT v FROM o WHERE id = {row}")),
        "refreshed"
    );
}

#[test]
fn pause_and_resume() {
    let (app, mut session) = with_table(sweeping(), "paused");
    session.run("SELECT ttl.pause('o')");
    expired(&mut session, 1, 40);
    // Another table of the same nodes is deleted from meanwhile.
    session.run(
        "CREATE TABLE other (id int PRIMARY KEY); SELECT create_distributed_table('other', 'id')",
    );
    session.run("SELECT ttl.enable('other', 3600)");
    session.insert_expired("other", 1, 40);
    app.wait_for_disk("other", "");
    assert_eq!(app.on_disk("o"), ids(1..=40));
    assert_eq!(session.value("SELECT count(*) FROM o"), "0");
    app.node(1).run("SELECT ttl.resume('o')");
    app.wait_for_disk("o", "");
}

#[test]
fn after_a_restart() {
    let cluster = ttl_ext_citus::Cluster::start_sweeping(&[]);
    let app = cluster.application("restarted");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 3600)");
    drop(session);
    for node in cluster.nodes() {
        node.restart();
    }
    let mut session = app.coordinator();
    expired(&mut session, 1, 100);
    app.wait_for_disk("o", "");
    session.wait_until("SELECT count(*) FROM o", "0", PATIENCE);
}
