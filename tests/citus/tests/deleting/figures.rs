//! `lag` and `backlog_estimate` of distributed tables, and nodes that are out of reach.

use std::time::{Duration, Instant};

use ttl_ext_citus::{Cluster, Stop};

/// On the coordinator the largest and the sum; on each node what is there.
#[test]
fn figures_of_all_nodes() {
    let cluster = Cluster::start_sweeping(&[("ttl.naptime", "1s")]);
    let app = cluster.application("figures");
    let mut session = app.coordinator();
    session.run(
        "CREATE TABLE o (id int PRIMARY KEY, v text); SELECT create_distributed_table('o', 'id')",
    );
    session.run("SELECT ttl.enable('o', 3600)");
    session.run("INSERT INTO o SELECT n FROM generate_series(1, 60) AS n");
    let known = "SELECT backlog_estimate = 0 AND lag = '0 seconds' FROM ttl.stats WHERE relation = 'o'::regclass";
    for node in 0..3 {
        app.node(node).wait_until(known, "t", 60);
    }
    let next =
        "SELECT next_expiry BETWEEN now() + '50 minutes' AND now() + '61 minutes' AND backlog = 0
                  FROM ttl.tables WHERE relation = 'o'::regclass";
    session.wait_until(next, "t", 60);
    session.run_preserving("UPDATE o SET _ts = now() - interval '2 hours' WHERE id <= 40");
    app.wait_for_disk("o", &ttl_ext_citus::ids(41..=60));
    session.wait_until(known, "t", 60);
    let deleted = "SELECT sum(rows_deleted) FROM ttl.placements WHERE relation LIKE '%o'";
    session.wait_until(deleted, "40", 60);
}

/// As blocked rows are set aside, they are backlog.
#[test]
fn a_backlog_is_summed_up() {
    let cluster = Cluster::start_sweeping(&[("ttl.naptime", "1s")]);
    let app = cluster.application("backlog");
    let mut session = app.coordinator();
    session.run(
        "CREATE TABLE o (id int PRIMARY KEY, v text); SELECT create_distributed_table('o', 'id')",
    );
    session.run(
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$",
    );
    session.run("SET citus.enable_unsafe_triggers = on");
    session.run("CREATE TRIGGER no BEFORE DELETE ON o FOR EACH ROW EXECUTE FUNCTION no()");
    session.run("SELECT ttl.enable('o', 3600)");
    session.insert_expired("o", 1, 40);
    let figures =
        "SELECT backlog_estimate, lag > '1 hour' FROM ttl.stats WHERE relation = 'o'::regclass";
    until_figures(&app, figures, "40|t");
    let of_nodes: u32 = (1..3)
        .map(|node| {
            let count = app
                .node(node)
                .value("SELECT backlog_estimate FROM ttl.stats WHERE relation = 'o'::regclass");
            count.parse::<u32>().expect("a number")
        })
        .sum();
    assert_eq!(of_nodes, 40);
    let backlog = "SELECT backlog FROM ttl.tables WHERE relation = 'o'::regclass";
    assert_eq!(session.value(backlog), "40");
}

#[track_caller]
fn until_figures(app: &ttl_ext_citus::Application<'_>, query: &str, expected: &str) {
    ttl_ext_citus::until(expected, 60, || {
        let found = app.coordinator().column(query);
        (found == [expected]).then_some(())
    });
}

/// A node that is down, and one that accepts connections and says nothing: both views answer, soon, and name it.
#[test]
fn a_node_out_of_reach() {
    let cluster = Cluster::start(&[]);
    let app = cluster.application("out_of_reach");
    let mut session = app.coordinator();
    for table in ["o", "p", "q"] {
        session.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, v text); SELECT create_distributed_table('{table}', 'id')"));
        session.run(&format!("SELECT ttl.enable('{table}', 3600)"));
    }
    let node = &cluster.nodes()[2];
    let host = app.host(2);
    let check = |session: &mut ttl_ext_citus::Session, state: &str| {
        let begin = Instant::now();
        let problems = session.column("SELECT array_to_string(problems, ' / ') FROM ttl.tables");
        let tables = begin.elapsed();
        assert_eq!(problems.len(), 3);
        for text in problems {
            assert!(
                text.contains(&format!("node {host}:")) && text.contains("cannot be reached"),
                "{state}: {text}"
            );
        }
        let begin = Instant::now();
        assert_eq!(
            session.value(
                "SELECT count(*) FROM ttl.stats WHERE lag IS NULL AND backlog_estimate IS NULL"
            ),
            "3"
        );
        let stats = begin.elapsed();
        println!(
            "{state}: ttl.tables after {} ms, ttl.stats after {} ms",
            tables.as_millis(),
            stats.as_millis()
        );
        // Citus's own timeout is 30 s; the machine may be slow.
        for took in [tables, stats] {
            assert!(took < Duration::from_secs(15), "{state}: {took:?}");
        }
    };
    // Its postmaster is held: the kernel takes connections, and nobody answers.
    let pid = node.postmaster();
    assert!(node.signal_process(pid, true));
    check(&mut session, "held");
    node.signal_process(pid, false);
    node.stop(Stop::Fast);
    check(&mut session, "down");
    node.launch();
    ttl_ext_citus::until("no problem is left", 60, || {
        let problems = app.coordinator().value("SELECT count(*) FROM ttl.tables WHERE array_to_string(problems, ' ') LIKE '%cannot be reached%'");
        (problems == "0").then_some(())
    });
}
