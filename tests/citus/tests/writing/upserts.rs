//! Keys of expired rows are free on shards; an upsert onto one is an insert. (Upserts failed: "functions used
//! in the DO UPDATE SET clause … must be marked IMMUTABLE".)

use ttl_ext_citus::{SqlState, ids};

use crate::{seen, with_table, young};

#[test]
fn the_key_is_free() {
    let (app, mut session) = with_table("free_key");
    for id in 1..=4 {
        session.run(&format!("INSERT INTO o VALUES ({id}, 'new')"));
    }
    app.node(1)
        .run("INSERT INTO o VALUES (5, 'new'), (6, 'new'), (7, 'new'), (8, 'new')");
    session.run("INSERT INTO o SELECT n, 'new' FROM generate_series(9, 10) AS n");
    assert_eq!(seen(&mut session), ids(1..=20));
    assert_eq!(app.on_disk("o"), ids(1..=20));
    assert_eq!(young(&mut session), ids(1..=10));
    let error = session.error("INSERT INTO o VALUES (15, 'new')");
    assert_eq!(*error.code(), SqlState::UNIQUE_VIOLATION);
    // A key that an UPDATE takes.
    session.run("ALTER TABLE o ADD COLUMN k int");
    session.run("SELECT ttl.purge('o')");
}

#[test]
fn upserts() {
    let (app, mut session) = with_table("upserts");
    for (node, id) in [(0, 1), (1, 2), (2, 3), (0, 11), (1, 12), (2, 13)] {
        app.node(node).run(&format!(
            "INSERT INTO o VALUES ({id}, 'new') ON CONFLICT (id) DO UPDATE SET v = o.v || '+' || excluded.v"
        ));
    }
    session.run(
        "INSERT INTO o VALUES (4, 'new'), (5, 'new'), (14, 'new'), (15, 'new')
            ON CONFLICT (id) DO UPDATE SET v = o.v || '+' || excluded.v",
    );
    let touched = "SELECT v, string_agg(id::text, ' ' ORDER BY id) FROM o GROUP BY v ORDER BY v";
    assert_eq!(
        session.rows(touched),
        [
            ["new", &ids(1..=5)],
            ["old", &ids(16..=20)],
            ["old+new", &ids(11..=15)]
        ]
    );
    assert_eq!(
        young(&mut session),
        format!("{} {}", ids(1..=5), ids(11..=15))
    );
    assert_eq!(app.on_disk("o"), ids(1..=20));
}

#[test]
fn prepared_and_returning() {
    let (_, mut session) = with_table("upserts_prepared");
    session.run(
        "PREPARE up (int) AS INSERT INTO o VALUES ($1, 'new')
            ON CONFLICT (id) DO UPDATE SET v = 'upd' RETURNING id, v",
    );
    for id in 1..=10 {
        let row = session.rows(&format!("EXECUTE up ({id})"));
        assert_eq!(row, [[id.to_string(), "new".into()]]);
    }
    for id in 11..=20 {
        let row = session.rows(&format!("EXECUTE up ({id})"));
        assert_eq!(row, [[id.to_string(), "upd".into()]]);
    }
    assert_eq!(young(&mut session), ids(1..=20));
}

#[test]
fn do_nothing_and_where() {
    let (_, mut session) = with_table("upserts_nothing");
    session.run("INSERT INTO o VALUES (1, 'new'), (11, 'new') ON CONFLICT DO NOTHING");
    session.run(
        "INSERT INTO o VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET v = 'upd' WHERE o.v = 'old'",
    );
    session.run(
        "INSERT INTO o VALUES (12, 'new') ON CONFLICT (id) DO UPDATE SET v = 'upd' WHERE o.v = 'none'",
    );
    assert_eq!(
        session.rows("SELECT id, v FROM o WHERE id IN (1, 2, 11, 12) ORDER BY id"),
        [["1", "new"], ["2", "new"], ["11", "old"], ["12", "old"]]
    );
    // The tables' other ways: all rows of a query, on each shard and through this node.
    session.run("CREATE TABLE s (id int, v text); INSERT INTO s SELECT n, 's' FROM generate_series(5, 15) AS n");
    session.run("SELECT create_distributed_table('s', 'id', colocate_with => 'o')");
    session.run("INSERT INTO o SELECT * FROM s ON CONFLICT (id) DO UPDATE SET v = excluded.v");
    assert_eq!(session.value("SELECT count(*) FROM o WHERE v = 's'"), "11");
    session.run(
        "INSERT INTO o SELECT id, 't' FROM s ORDER BY id LIMIT 20 ON CONFLICT (id) DO UPDATE SET v = excluded.v",
    );
    assert_eq!(session.value("SELECT count(*) FROM o WHERE v = 't'"), "11");
}
