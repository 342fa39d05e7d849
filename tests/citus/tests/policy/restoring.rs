//! Complaint 12 on Citus: what a dump brings to another cluster waits for `ttl.resume`; nodes that come to
//! the same cluster wait for nothing.

use ttl_ext_citus::{Cluster, ids};

use crate::{ROWS, seen, with_table};

#[test]
fn a_dump_in_another_cluster_waits() {
    let (app, mut session) = with_table("dumped");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    let dump = |arguments: &[&str]| {
        let mut command = app.database(0).tool("pg_dump");
        command.args(["-t", "public.o"]).args(arguments);
        let output = app.database(0).server().must_run(&mut command);
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let schema = dump(&["--schema-only"]);
    assert!(schema.contains("SECURITY LABEL FOR ttl"), "{schema}");

    let other = Cluster::start(&[]);
    let restored = other.application("restored");
    let mut target = restored.coordinator();
    let psql = |text: &str| {
        let file = other.nodes()[0].dir().join("dump.sql");
        std::fs::write(&file, text).expect("a file");
        let mut command = restored.database(0).tool("psql");
        command
            .args(["-X", "-v", "ON_ERROR_STOP=1", "-f"])
            .arg(file);
        other.nodes()[0].must_run(&mut command);
    };
    psql(&schema);
    target.run("SELECT create_distributed_table('o', 'id')");
    // Citus's tables are dumped without their rows.
    session.run("SET row_security = off");
    let rows = session.copy_out("COPY (SELECT id, v, _ts FROM o) TO STDOUT");
    target
        .copy_in("COPY o (id, v, _ts) FROM STDIN", &(rows.join("\n") + "\n"))
        .expect("COPY");
    assert_eq!(seen(&mut target), ids(21..=30));
    let problems = restored.problems(0, "o");
    assert!(problems.contains("ttl.resume"), "{problems}");
    target.run("SELECT ttl.resume('o')");
    for node in 0..restored.size() {
        assert_eq!(restored.problems(node, "o"), "", "node {node}");
    }
}

#[test]
fn a_new_node_does_not_wait() {
    let (app, mut session) = with_table("grown");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    let spare = crate::cluster().spare();
    let mut app = app;
    let new = app.add_node(Box::leak(Box::new(spare)));
    session.run("SELECT rebalance_table_shards('o', shard_transfer_mode => 'block_writes')");
    let there = app
        .placements("o")
        .iter()
        .filter(|of| of.node == new)
        .count();
    assert!(there > 0, "no shard came to the new node");
    assert_eq!(app.problems(new, "o"), "");
    assert_eq!(seen(&mut app.node(new)), ids(21..=30));
    assert_eq!(app.on_disk("o"), ids(1..=30));
    assert_eq!(session.value("SELECT ttl.purge('o')"), "20");
}
