//! Shards on the session's own node are read without a connection, in its own transaction.

use crate::{sessions, shared};

#[test]
fn local_execution() {
    let (_, twins) = shared();
    for mut session in sessions() {
        for local in ["on", "off"] {
            session.run(&format!("SET citus.enable_local_execution = {local}"));
            session.run("BEGIN");
            for id in [3, 6, 9, 12, 15, 18, 21, 24] {
                let query = format!("SELECT id, v FROM {{}}_items WHERE id = {id}");
                twins.check(&mut session, &query);
            }
            twins.check(&mut session, "SELECT count(*) FROM {}_items");
            session.run("COMMIT");
        }
    }
}

/// Nodes send queries one by one, and over several connections.
#[test]
fn executors() {
    let (_, twins) = shared();
    for mut session in sessions() {
        for settings in [
            "SET citus.max_adaptive_executor_pool_size = 1",
            "RESET citus.max_adaptive_executor_pool_size; SET citus.force_max_query_parallelization = on",
            "RESET citus.force_max_query_parallelization; SET citus.multi_shard_modify_mode = 'sequential'",
            "SET citus.enable_binary_protocol = off",
            "SET citus.task_assignment_policy = 'round-robin'",
        ] {
            session.run(settings);
            twins.check(
                &mut session,
                "SELECT kind, count(*) FROM {}_items GROUP BY 1 ORDER BY 1",
            );
            twins.check(&mut session, "SELECT count(*) FROM {}_kinds");
        }
    }
}

/// A shard by its name, on its node.
#[test]
fn the_shard_itself() {
    let (app, _) = shared();
    let mut total = 0;
    for placement in app.placements("o_items") {
        let mut node = app.node(placement.node);
        let count = node.value(&format!("SELECT count(*) FROM {}", placement.relation));
        total += count.parse::<i32>().expect("a count");
    }
    assert_eq!(total, 134);
}

/// REPEATABLE READ: nothing expires within a transaction on one node. Citus gives no snapshot across nodes.
#[test]
fn repeatable_read() {
    let (_, twins) = shared();
    for mut session in sessions() {
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        twins.check(&mut session, "SELECT count(*) FROM {}_items");
        twins.check(&mut session, "SELECT v FROM {}_items WHERE id = 33");
        session.run("COMMIT");
    }
}
