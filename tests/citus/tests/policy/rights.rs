//! Who may: the table's owner, on all nodes, without being a superuser there.

use ttl_ext_citus::{SqlState, ids};

use crate::{ROWS, cluster, seen};

#[test]
fn an_owner_who_is_no_superuser() {
    let app = cluster().application("rights");
    app.coordinator().run(
        "CREATE ROLE rights_owner LOGIN; CREATE ROLE rights_reader LOGIN; CREATE ROLE rights_other LOGIN;
         GRANT CREATE ON SCHEMA public TO rights_owner",
    );
    let mut owner = app.node_as(0, "rights_owner");
    owner.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    owner.run("SELECT create_distributed_table('o', 'id')");
    owner.run("GRANT SELECT ON o TO rights_reader, rights_other");
    owner.run("SELECT ttl.enable('o', 3600)");
    owner.run_preserving(ROWS);
    for node in 0..app.size() {
        let mut reader = app.node_as(node, "rights_reader");
        assert_eq!(seen(&mut reader), ids(21..=30), "node {node}");
        let total = reader.value("SELECT total FROM ttl.preview('o')");
        assert_eq!(total, "30", "node {node}");
    }
    let mut other = app.node_as(1, "rights_other");
    for call in [
        "ttl.set_default('o', 60)",
        "ttl.disable('o')",
        "ttl.purge('o')",
        "ttl.enable('o', 60)",
    ] {
        let error = other.error(&format!("SELECT {call}"));
        assert_eq!(*error.code(), SqlState::INSUFFICIENT_PRIVILEGE, "{call}");
    }
    // The owner on a worker.
    let mut there = app.node_as(2, "rights_owner");
    there.run("SELECT ttl.set_default('o', 3000)");
    assert_eq!(owner.value("SELECT ttl.purge('o')"), "20");
    there.run("SELECT ttl.disable('o')");
    assert_eq!(owner.value("SELECT count(*) FROM o"), "10");
}
