//! Rule 5: clocks that differ. Writes count from the clock of the node that the client talks to; reads go by
//! that of the node of the shard; copies of a reference table never differ. (Rows of COPY and of INSERT …
//! SELECT through the coordinator had the time of the node that got them.)

use std::time::{Duration, Instant};

use ttl_ext_citus::{Cluster, Session};

/// The first worker.
const AHEAD: usize = 1;

fn with_tables(cluster: &Cluster) -> Session {
    let mut session = cluster.application("clocks").coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text); CREATE TABLE r (id int PRIMARY KEY, n int DEFAULT 0)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT create_reference_table('r')");
    session.run("SELECT ttl.enable('o', 86400); SELECT ttl.enable('r', 86400)");
    session
}

/// An hour ahead, so that no slow machine blurs it; nothing expires by it.
#[test]
fn writes_count_from_the_clients_node() {
    let cluster = Cluster::start(&[]);
    drop(with_tables(&cluster));
    if !cluster.put_ahead(AHEAD, 3600, "writes_count_from_the_clients_node") {
        return;
    }
    let mut session = cluster.existing("clocks", 0);
    session.run("CREATE TABLE s (id int, v text); INSERT INTO s SELECT n, 's' FROM generate_series(1, 100) AS n");
    let text: String = (301..=400).map(|n| format!("{n}\n")).collect();
    for node in 0..3 {
        let mut from = cluster.existing("clocks", node);
        if node == 0 {
            from.run("INSERT INTO o SELECT id, v FROM s");
            from.run("INSERT INTO o SELECT id + 100, v FROM s ORDER BY id LIMIT 100");
        }
        from.run("INSERT INTO o SELECT n, 'g' FROM generate_series(201, 300) AS n");
        from.copy_in("COPY o (id) FROM STDIN", &text).expect("COPY");
        for id in 401..=420 {
            from.run(&format!("INSERT INTO o VALUES ({id}, 'x')"));
            from.run(&format!(
                "INSERT INTO o VALUES ({id}, 'x') ON CONFLICT (id) DO UPDATE SET v = 'y'"
            ));
        }
        from.run("UPDATE o SET v = v || 'u' WHERE id % 2 = 0");
        // The coordinator's time as a constant: a function would be evaluated on the shards' nodes.
        let now = session.value("SELECT clock_timestamp()");
        let kinds = session.rows(&format!(
            "SELECT COALESCE(v, 'copy') AS kind, round(extract(epoch FROM _ts - '{now}'::timestamptz) / 3600) AS hours,
                    count(*) FROM o GROUP BY 1, 2 ORDER BY 1, 2"
        ));
        let hours = if node == AHEAD { "1" } else { "0" };
        assert!(
            kinds.iter().all(|kind| kind[1] == hours),
            "written on node {node}: kind, hours ahead, rows: {kinds:?}"
        );
        session.run("DELETE FROM o");
    }
}

/// Printed: when a row of 8 seconds is gone, by the shard's node.
#[test]
fn reads_go_by_the_shards_node() {
    let cluster = Cluster::start(&[]);
    drop(with_tables(&cluster));
    if !cluster.put_ahead(AHEAD, 4, "reads_go_by_the_shards_node") {
        return;
    }
    let mut session = cluster.existing("clocks", 0);
    for writer in [0, AHEAD] {
        let mut from = cluster.existing("clocks", writer);
        from.run("INSERT INTO o (id, ttl) SELECT n, 8 FROM generate_series(1, 400) AS n");
        let begin = Instant::now();
        let shards = [1, 2].map(|node| {
            let of = format!(
                "SELECT n FROM generate_series(1, 400) AS n WHERE get_shard_id_for_distribution_column('o', n)
                    IN (SELECT shardid FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE nodename = '{}')",
                cluster.nodes()[node].dir().display()
            );
            session.column(&of)
        });
        let mut gone = [None; 2];
        while gone.iter().any(Option::is_none) && begin.elapsed() < Duration::from_secs(60) {
            let ids = session.column("SELECT id FROM o");
            for (n, here) in shards.iter().enumerate() {
                if gone[n].is_none() && !ids.iter().any(|id| here.contains(id)) {
                    gone[n] = Some(begin.elapsed().as_secs_f64());
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let [ahead, right] = gone.map(|at| at.expect("a row that expires"));
        println!(
            "ttl 8, written through node {writer}: gone after {ahead:.1} s on the node that is 4 s ahead, after {right:.1} s on the other"
        );
        assert!(right - ahead > 2.5, "{ahead} {right}");
        session.run("SELECT ttl.purge('o')");
    }
}

/// All nodes write the same reference table, as its rows expire.
#[test]
fn copies_of_a_reference_table_stay_equal() {
    let cluster = Cluster::start(&[]);
    drop(with_tables(&cluster));
    if !cluster.put_ahead(AHEAD, 4, "copies_of_a_reference_table_stay_equal") {
        return;
    }
    let mut session = cluster.existing("clocks", 0);
    session.run("INSERT INTO r (id, ttl) SELECT n, 1 + n % 10 FROM generate_series(1, 240) AS n");
    std::thread::scope(|scope| {
        for node in 0..3 {
            let mut from = cluster.existing("clocks", node);
            scope.spawn(move || {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_secs(11) {
                    from.run(&format!("UPDATE r SET n = n + 1 WHERE id % 3 = {node} AND id % 5 > 2"));
                    from.run(&format!(
                        "INSERT INTO r (id, ttl) VALUES ({}, 3) ON CONFLICT (id) DO UPDATE SET n = r.n + 100",
                        30 + node
                    ));
                    std::thread::sleep(Duration::from_millis(150));
                }
            });
        }
    });
    let copies: Vec<_> = (0..3)
        .map(|node| {
            let mut disk = cluster.existing("clocks", node);
            disk.run("SET ttl.show_expired = on");
            let shard = disk.value(
                "SELECT shard_name(logicalrelid, shardid) FROM pg_dist_shard WHERE logicalrelid = 'r'::regclass",
            );
            disk.column(&format!("SELECT t::text FROM {shard} AS t ORDER BY 1"))
        })
        .collect();
    assert!(!copies[0].is_empty());
    assert_eq!(copies[0], copies[1]);
    assert_eq!(copies[0], copies[2]);
}
