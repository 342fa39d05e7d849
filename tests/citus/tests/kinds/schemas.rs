//! Sharding by schema: tables are distributed as they are created.

use crate::{cluster, lives_and_expires};

#[test]
fn created_there() {
    let app = cluster().application("by_schema");
    let mut session = app.coordinator();
    session.run("SET citus.enable_schema_based_sharding = on; CREATE SCHEMA tenant");
    session.run("CREATE TABLE tenant.o (id int PRIMARY KEY, v text)");
    let distributed =
        "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'tenant.o'::regclass";
    assert_eq!(session.value(distributed), "1");
    lives_and_expires(&app, &mut session, "tenant.o");
}

/// `CREATE TABLE … WITH (ttl.default_ttl = …)` in such a schema, and a schema that is given to Citus.
#[test]
fn with_ttl_from_the_beginning() {
    let app = cluster().application("schema_ddl");
    let mut session = app.coordinator();
    session.run("SET citus.enable_schema_based_sharding = on; CREATE SCHEMA tenant");
    session.run("CREATE TABLE tenant.o (id int PRIMARY KEY, v text) WITH (ttl.default_ttl = 3600)");
    session.run_preserving(
        "INSERT INTO tenant.o (id, _ts) SELECT n, now() - n * interval '10 minutes' FROM generate_series(1, 10) AS n",
    );
    for node in 0..app.size() {
        let count = app.node(node).value("SELECT count(*) FROM tenant.o");
        assert_eq!(count, "5", "node {node}");
    }
    session.run("INSERT INTO tenant.o (id) VALUES (10)");

    session.run("CREATE SCHEMA later_named; ALTER SCHEMA later_named RENAME TO later");
    session.run("RESET citus.enable_schema_based_sharding; CREATE SCHEMA given");
    session.run("CREATE TABLE given.o (id int PRIMARY KEY, v text)");
    session.run("SELECT ttl.enable('given.o', 3600)");
    session.run_preserving(
        "INSERT INTO given.o (id, _ts) SELECT n, now() - n * interval '10 minutes' FROM generate_series(1, 10) AS n",
    );
    session.run("SELECT citus_schema_distribute('given')");
    for node in 0..app.size() {
        let count = app.node(node).value("SELECT count(*) FROM given.o");
        assert_eq!(count, "5", "node {node}");
    }
    session.run("INSERT INTO given.o (id) VALUES (10)");
    session.run("SELECT citus_schema_undistribute('given')");
    assert_eq!(session.value("SELECT count(*) FROM given.o"), "6");
    session.run("INSERT INTO given.o (id) VALUES (9)");
}
