//! Joins: of tables that lie together, with reference and local tables, with rows that are sent to other nodes.

use crate::{check_all, shared};

const JOINS: [&str; 6] = [
    "SELECT i.id, n.note FROM {}_items i JOIN {}_notes n ON n.item = i.id ORDER BY 1, 2",
    "SELECT i.id, n.note FROM {}_items i LEFT JOIN {}_notes n ON n.item = i.id ORDER BY 1, 2",
    "SELECT i.id, n.note FROM {}_items i FULL JOIN {}_notes n ON n.item = i.id ORDER BY 1, 2",
    "SELECT i.id, k.name FROM {}_items i JOIN {}_kinds k ON k.id = i.kind ORDER BY 1",
    "SELECT i.id, k.name FROM {}_items i LEFT JOIN {}_kinds k ON k.id = i.kind ORDER BY 1",
    "SELECT k.name, count(n.id) FROM {}_kinds k JOIN {}_items i ON k.id = i.kind
       JOIN {}_notes n ON n.item = i.id GROUP BY k.name ORDER BY 1",
];

#[test]
fn of_tables_that_lie_together() {
    check_all("SELECT", &JOINS);
}

/// On columns by which the rows are not distributed.
#[test]
fn by_repartition() {
    check_all(
        "SET citus.enable_repartition_joins = on",
        &[
            "SELECT count(*), sum(a.id), sum(b.id) FROM {}_items a JOIN {}_items b ON a.n = b.kind",
            "SELECT count(*) FROM {}_items a, {}_notes b WHERE a.n = b.m",
        ],
    );
    // One side only is sent.
    check_all(
        "SET citus.enable_repartition_joins = on; SET citus.enable_single_hash_repartition_joins = on",
        &[
            "SELECT count(*), sum(a.id) FROM {}_items a JOIN {}_notes b ON a.kind = b.m WHERE a.id > 3",
        ],
    );
}

/// Rows of one side are sent to the coordinator first.
#[test]
fn by_intermediate_results() {
    check_all(
        "SELECT",
        &[
            "SELECT count(*) FROM (SELECT n FROM {}_items ORDER BY id LIMIT 50) q JOIN {}_notes b ON b.item = q.n",
            "WITH c AS MATERIALIZED (SELECT n, id FROM {}_items)
             SELECT count(*), sum(c.id) FROM c JOIN {}_items i ON c.n = i.kind",
        ],
    );
}

#[test]
fn with_local_tables() {
    let (app, twins) = shared();
    let mut session = app.coordinator();
    session.run("CREATE TABLE plain AS SELECT n AS id FROM generate_series(1, 50) AS n");
    for policy in ["prefer-local", "prefer-distributed", "auto"] {
        session.run(&format!("SET citus.local_table_join_policy = '{policy}'"));
        twins.check(
            &mut session,
            "SELECT count(*) FROM plain JOIN {}_items USING (id)",
        );
        twins.check(
            &mut session,
            "SELECT i.id FROM {}_items i LEFT JOIN plain p USING (id) WHERE p.id IS NULL ORDER BY 1",
        );
    }
}
