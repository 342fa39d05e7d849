//! C1: every write stamps, with the time of the node that the client talks to, however Citus executes it.

use ttl_ext_citus::ids;

use crate::{seen, with_table, young};

#[test]
fn inserts() {
    let (app, mut session) = with_table("inserts");
    session.run("INSERT INTO o (id) VALUES (101)");
    session.run("INSERT INTO o (id, _ts) VALUES (102, '2001-01-01'), (103, '2001-01-01'), (104, '2001-01-01')");
    session
        .run("INSERT INTO o (id, _ts) SELECT n, '2001-01-01' FROM generate_series(105, 110) AS n");
    let mut worker = app.node(1);
    worker.run("INSERT INTO o (id, _ts) VALUES (111, '2001-01-01')");
    worker.run("INSERT INTO o (id, _ts) VALUES (112, '2001-01-01'), (113, '2001-01-01'), (114, '2001-01-01')");
    worker
        .run("INSERT INTO o (id, _ts) SELECT n, '2001-01-01' FROM generate_series(115, 120) AS n");
    worker.run("PREPARE i (int) AS INSERT INTO o (id, _ts) VALUES ($1, '2001-01-01')");
    for n in 121..=130 {
        worker.run(&format!("EXECUTE i ({n})"));
    }
    assert_eq!(young(&mut session), ids(101..=130));
}

#[test]
fn inserts_of_a_query() {
    let (app, mut session) = with_table("insert_select");
    session.run(
        "CREATE TABLE s (id int, v text, t timestamptz DEFAULT '2001-01-01');
         CREATE TABLE other (id int, key int, v text, t timestamptz DEFAULT '2001-01-01')",
    );
    session.run("SELECT create_distributed_table('s', 'id', colocate_with => 'o')");
    session.run("SELECT create_distributed_table('other', 'key', colocate_with => 'none')");
    session.run("INSERT INTO s SELECT n FROM generate_series(101, 120) AS n");
    session.run("INSERT INTO other SELECT n, n * 7 FROM generate_series(201, 220) AS n");
    for node in 0..app.size() {
        let mut session = app.node(node);
        // On each shard, by sending rows to others, and through this node.
        session.run("INSERT INTO o (id, v, _ts) SELECT id, v, t FROM s");
        session.run("INSERT INTO o (id, v, _ts) SELECT id, v, t FROM other");
        session.run("INSERT INTO o (id, v, _ts) SELECT id + 200, v, t FROM s ORDER BY id LIMIT 10");
        session.run("INSERT INTO o (id, v) SELECT id + 300, v FROM s ORDER BY id LIMIT 10");
        let expected = [
            ids(101..=120),
            ids(201..=220),
            ids(301..=310),
            ids(401..=410),
        ]
        .join(" ");
        assert_eq!(young(&mut session), expected, "node {node}");
        session.run("DELETE FROM o WHERE id > 100");
    }
}

/// By a user who owns nothing, from a node that has no label of its own for the table.
#[test]
fn nobody_backdates() {
    let (app, mut session) = with_table("backdating");
    session.run(
        "CREATE ROLE backdater LOGIN; GRANT SELECT, INSERT, UPDATE ON o TO backdater;
         CREATE TABLE s (id int); INSERT INTO s SELECT n FROM generate_series(101, 110) AS n;
         GRANT SELECT ON s TO backdater",
    );
    session.run("SELECT create_reference_table('s')");
    for node in 0..app.size() {
        let mut user = app.node_as(node, "backdater");
        user.run(&format!(
            "INSERT INTO o (id, _ts) SELECT id + {}, '2001-01-01' FROM s ORDER BY id LIMIT 10",
            node * 100
        ));
        user.run(&format!(
            "INSERT INTO o (id, _ts) SELECT id + {}, '2101-01-01' FROM s ORDER BY id LIMIT 10",
            1000 + node * 100
        ));
        user.run("UPDATE o SET _ts = '2101-01-01' WHERE id = 11");
        user.run("UPDATE o SET _ts = '2001-01-01' WHERE id IN (12, 13, 14)");
    }
    let expected: Vec<_> = [11, 101, 201, 301, 1101, 1201, 1301]
        .iter()
        .map(|first| ids(*first..=first + if *first == 11 { 3 } else { 9 }))
        .collect();
    assert_eq!(young(&mut session), expected.join(" "));
}

#[test]
fn updates() {
    let (app, mut session) = with_table("updates");
    session.run("UPDATE o SET v = 'new' WHERE id = 11");
    session.run("UPDATE o SET v = 'new' WHERE id IN (12, 13)");
    app.node(1).run("UPDATE o SET v = 'new' WHERE id = 14");
    app.node(2)
        .run("UPDATE o SET v = 'new', _ts = '2001-01-01' WHERE id = 15");
    assert_eq!(young(&mut session), ids(11..=15));
    session.run("CREATE TABLE s (id int, v text); INSERT INTO s VALUES (16, 's'), (3, 's')");
    session.run("SELECT create_distributed_table('s', 'id', colocate_with => 'o')");
    session.run("UPDATE o SET v = s.v FROM s WHERE s.id = o.id");
    session.run("WITH w AS (SELECT id FROM s) UPDATE o SET v = 'w' WHERE id = 17");
    session.run("WITH u AS (UPDATE o SET v = 'u' WHERE id = 18 RETURNING id) SELECT * FROM u");
    assert_eq!(young(&mut session), ids(11..=18));
    session.run("UPDATE o SET v = 'all'");
    assert_eq!(young(&mut session), ids(11..=20));
    assert_eq!(seen(&mut session), ids(11..=20));
}

/// One time for one statement: all its rows have the same `_ts`, whichever shards they went to.
#[test]
fn one_time_for_one_statement() {
    let (app, mut session) = with_table("one_time");
    let one = "SELECT count(DISTINCT _ts) FROM o WHERE id > 100";
    for round in 0..6 {
        let mut from = app.node(round % 3);
        from.run("INSERT INTO o (id) SELECT n FROM generate_series(101, 300) AS n");
        assert_eq!(session.value(one), "1", "INSERT");
        from.run("UPDATE o SET v = 'x' WHERE id > 100");
        assert_eq!(session.value(one), "1", "UPDATE");
        from.run("DELETE FROM o WHERE id > 100");
        let text: String = (101..=300).map(|n| format!("{n}\n")).collect();
        from.copy_in("COPY o (id) FROM STDIN", &text).expect("COPY");
        assert_eq!(session.value(one), "1", "COPY");
        from.run("DELETE FROM o WHERE id > 100");
    }
}

#[test]
fn preserved() {
    let (app, mut session) = with_table("preserved");
    for node in 0..app.size() {
        let mut from = app.node(node);
        from.run_preserving(&format!(
            "INSERT INTO o (id, _ts) VALUES ({}, now() - interval '30 minutes')",
            100 + node
        ));
        from.run_preserving("UPDATE o SET _ts = now() - interval '30 minutes' WHERE id = 11");
        assert_eq!(young(&mut session), "");
        from.run("UPDATE o SET v = 'x' WHERE id = 11");
        assert_eq!(young(&mut session), "11");
    }
}
