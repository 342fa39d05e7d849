//! Partitioned distributed tables: rows, keys, and partitions that are dropped as a whole.

use ttl_ext_citus::{Cluster, PATIENCE, Session, ids};

use crate::cluster;

/// `p` by days, with partitions for yesterday, today and long ago, distributed by id.
fn create(session: &mut Session, key: &str) {
    session.run(&format!(
        "CREATE TABLE p (id int, v text, _ts timestamptz NOT NULL DEFAULT now(), ttl int {key}) PARTITION BY RANGE (_ts)"
    ));
    session.run(
        "DO $$
         DECLARE today timestamptz := date_trunc('second', now()) - interval '12 hours';
         BEGIN
             FOR n IN 0..4 LOOP
                 EXECUTE format('CREATE TABLE p_%s PARTITION OF p FOR VALUES FROM (%L) TO (%L)',
                     n, today - n * interval '1 day', today - (n - 1) * interval '1 day');
             END LOOP;
         END $$",
    );
    session.run("SELECT create_distributed_table('p', 'id')");
}

const FILL: &str = "INSERT INTO p (id, _ts)
    SELECT 10 * day + n, now() - day * interval '1 day' FROM generate_series(0, 4) AS day, generate_series(1, 4) AS n";

#[test]
fn rows_of_partitions() {
    let app = cluster().application("partitioned");
    let mut session = app.coordinator();
    create(&mut session, ", PRIMARY KEY (id, _ts)");
    session.run("SELECT ttl.enable('p', 129600)"); // a day and a half
    session.run_preserving(FILL);
    let live = "1 2 3 4 11 12 13 14";
    for node in 0..app.size() {
        let mut session = app.node(node);
        let seen = session.column("SELECT id FROM p ORDER BY id").join(" ");
        assert_eq!(seen, live, "node {node}");
        // A partition by its name.
        assert_eq!(
            session.value("SELECT count(*) FROM p_3"),
            "0",
            "node {node}"
        );
        assert_eq!(
            session.value("SELECT count(*) FROM p_1"),
            "4",
            "node {node}"
        );
    }
    session.run("UPDATE p SET v = 'x' WHERE id IN (1, 21)");
    session.run("SELECT ttl.set_default('p', 86400 * 10, revive_expired => true)");
    assert_eq!(session.value("SELECT count(*) FROM p"), "20");
    session.run("SELECT ttl.set_default('p', 129600)");
    assert_eq!(session.value("SELECT ttl.purge('p')"), "12");
    // A partition that comes later.
    session
        .run("CREATE TABLE p_old PARTITION OF p FOR VALUES FROM ('2001-01-01') TO ('2002-01-01')");
    session.run_preserving("INSERT INTO p (id, _ts) VALUES (100, '2001-05-05')");
    assert_eq!(app.node(1).value("SELECT count(*) FROM p"), "8");
    session.run("SELECT ttl.purge('p')");
    assert_eq!(app.problems(0, "p"), "");
}

#[test]
fn partitions_are_dropped_as_a_whole() {
    let cluster = Cluster::start_sweeping(&[]);
    let app = cluster.application("dropped");
    let mut session = app.coordinator();
    create(&mut session, "");
    session.run_preserving(FILL);
    session.run("SELECT ttl.enable('p', 129600, drop_partitions => true)");
    for node in 0..app.size() {
        let partitions =
            "SELECT string_agg(relid::regclass::text, ' ' ORDER BY relid::regclass::text)
            FROM pg_partition_tree('p') WHERE isleaf";
        app.node(node).wait_until(partitions, "p_0 p_1", PATIENCE);
    }
    let rows = "SELECT count(*) FROM p";
    session.wait_until(rows, "8", PATIENCE);
    assert_eq!(app.on_disk("p_1"), ids(11..=14));
    // No shard is left behind.
    for node in 1..app.size() {
        let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'p_4_%' AND relkind = 'r'";
        let mut session = app.node(node);
        session.run("SET citus.override_table_visibility = off");
        session.wait_until(left, "0", PATIENCE);
    }
}
