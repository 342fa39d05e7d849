//! Columnar storage has no deletion: only whole partitions without keys can expire there.

use ttl_ext_citus::{Cluster, PATIENCE, SqlState};

#[test]
fn partitions_of_old_rows() {
    let cluster = Cluster::start_sweeping(&[]);
    let app = cluster.application("columnar");
    let mut session = app.coordinator();
    session.run("CREATE EXTENSION citus_columnar");
    session.run(
        "CREATE TABLE p (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts)",
    );
    session.run("CREATE TABLE p_0 PARTITION OF p FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') USING columnar");
    session.run("CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM ('2001-01-01') TO ('2002-01-01') USING columnar");
    session.run("CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM ('2020-01-01') TO ('2101-01-01')");
    session.run("SELECT create_distributed_table('p', 'id')");
    // Rows one by one cannot be deleted there.
    let error = session.error("SELECT ttl.enable('p', 3600, ttl_column => NULL, index => 'none')");
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    assert!(error.hint().is_some(), "{error:?}");
    session.run("INSERT INTO p SELECT n, '2001-05-05' FROM generate_series(1, 10) AS n");
    session.run("INSERT INTO p SELECT n FROM generate_series(11, 20) AS n");
    session.run(
        "SELECT ttl.enable('p', 3600, ttl_column => NULL, index => 'none', drop_partitions => true)",
    );
    assert_eq!(session.value("SELECT count(*) FROM p"), "10");
    session.wait_until("SELECT to_regclass('p_1') IS NULL", "t", PATIENCE);
    // An empty one may be about to be filled.
    assert_eq!(session.value("SELECT to_regclass('p_0') IS NULL"), "f");
    for node in 0..app.size() {
        assert_eq!(app.node(node).value("SELECT count(*) FROM p"), "10");
    }
}
