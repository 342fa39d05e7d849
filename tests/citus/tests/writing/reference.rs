//! Reference tables: every node has a copy, and all are the same for ever. (An UPDATE within milliseconds of
//! expiry kept 7 rows on one node and 2 on the others.)

use std::time::{Duration, SystemTime};

use ttl_ext_citus::{Application, Session};

use crate::cluster;

fn with_reference(name: &str) -> (Application<'static>, Session) {
    let app = cluster().application(name);
    let mut session = app.coordinator();
    session.run("CREATE TABLE r (id int PRIMARY KEY, n int DEFAULT 0, v text)");
    session.run("SELECT create_reference_table('r')");
    session.run("SELECT ttl.enable('r', 3600)");
    (app, session)
}

#[test]
fn writes() {
    let (app, mut session) = with_reference("reference");
    session.run_preserving(
        "INSERT INTO r (id, _ts) SELECT n, now() - CASE WHEN n <= 10 THEN interval '2 hours' ELSE interval '10 minutes' END
           FROM generate_series(1, 20) AS n",
    );
    for node in 0..app.size() {
        let mut from = app.node(node);
        let live = (10 - node).to_string();
        assert_eq!(from.value("SELECT count(*) FROM r"), live, "node {node}");
        from.run("UPDATE r SET n = n + 1");
        from.run(&format!("INSERT INTO r (id) VALUES ({})", node + 1));
        from.run(&format!(
            "INSERT INTO r (id, v) VALUES ({}, 'ins') ON CONFLICT (id) DO UPDATE SET v = 'upd'",
            node + 4
        ));
        from.run(&format!(
            "INSERT INTO r (id, v) VALUES ({}, 'ins') ON CONFLICT (id) DO UPDATE SET v = 'upd'",
            node + 11
        ));
        from.run(&format!("DELETE FROM r WHERE id = {}", node + 15));
        app.assert_copies_equal("r");
        session.run("DELETE FROM r WHERE id BETWEEN 1 AND 10");
    }
    assert_eq!(session.value("SELECT max(n) FROM r"), "3");
    session.run_preserving("UPDATE r SET _ts = now() - interval '2 hours' WHERE id = 20");
    assert_eq!(
        app.node(1).value("SELECT count(*) FROM r WHERE id = 20"),
        "0"
    );
    session.run("SELECT ttl.purge('r')");
    app.assert_copies_equal("r");
}

/// Sessions on all nodes write rows that expire meanwhile, by statements sent as a second begins, so that it
/// begins on some nodes before they run there and on others after.
#[test]
fn copies_stay_equal_near_expiry() {
    let (app, mut session) = with_reference("near_expiry");
    let seconds = 8;
    session.run(&format!(
        "INSERT INTO r (id, ttl) SELECT n, 1 + n % {seconds} FROM generate_series(1, 240) AS n"
    ));
    std::thread::scope(|scope| {
        for node in 0..app.size() {
            let mut from = app.node(node);
            scope.spawn(move || {
                for round in 0..seconds {
                    before_a_second(Duration::from_micros(1500 + 700 * node as u64));
                    // Rows of its own, so that sessions do not wait for each other.
                    from.run(&format!(
                        "UPDATE r SET n = n + 1 WHERE id % 3 = {node} AND id % 4 = {}",
                        round % 4
                    ));
                    from.run(&format!(
                        "INSERT INTO r (id, ttl, v) VALUES ({}, 2, 'ins')
                            ON CONFLICT (id) DO UPDATE SET v = 'upd', n = r.n + 1",
                        3 * (round + 20) + node
                    ));
                    from.run(&format!(
                        "DELETE FROM r WHERE id = {}",
                        3 * (round + 50) + node
                    ));
                }
            });
        }
    });
    app.assert_copies_equal("r");
}

/// Sleep until so long before the next whole second.
fn before_a_second(early: Duration) {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970");
    let second = Duration::from_secs(now.as_secs() + 1);
    if let Some(wait) = second.checked_sub(early).and_then(|at| at.checked_sub(now)) {
        std::thread::sleep(wait);
    }
}
