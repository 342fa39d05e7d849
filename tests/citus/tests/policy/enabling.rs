//! `ttl.enable` on a distributed table acts on each shard. (It did nothing, in silence.)

use ttl_ext_citus::{SqlState, ids};

use crate::{ROWS, seen, with_table};

#[test]
fn enabling_acts_on_all_nodes() {
    let (app, mut session) = with_table("enabling");
    session.run("SELECT ttl.enable('o', 3600)");
    assert_eq!(app.problems(0, "o"), "");
    session.run_preserving(ROWS);
    assert_eq!(app.on_disk("o"), ids(1..=30));
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(21..=30), "node {node}");
    }
    let changed = session.client.execute("UPDATE o SET v = 'again'", &[]);
    assert_eq!(changed.expect("UPDATE"), 10);
    let deleted = session.client.execute("DELETE FROM o WHERE id < 10", &[]);
    assert_eq!(deleted.expect("DELETE"), 0);
    assert_eq!(
        session.rows("SELECT total, expired FROM ttl.preview('o')"),
        [["30", "20"]]
    );
    assert_eq!(session.value("SELECT ttl.purge('o')"), "20");
    assert_eq!(app.on_disk("o"), ids(21..=30));
    assert_eq!(app.problems(0, "o"), "");
}

#[test]
fn each_shard_has_what_ttl_needs() {
    let (app, mut session) = with_table("equipped");
    session.run("SELECT ttl.enable('o', 3600)");
    let query = "SELECT
        (SELECT count(*) FROM pg_trigger WHERE tgrelid = '{}'::regclass AND tgname = '~ttl_free_expired_keys'),
        (SELECT count(*) FROM pg_constraint WHERE conrelid = '{}'::regclass AND contype = 'c'),
        (SELECT count(*) FROM pg_index WHERE indrelid = '{}'::regclass),
        (SELECT count(*) FROM pg_attrdef WHERE adrelid = '{}'::regclass)";
    for (placement, rows) in app.of_placements("o", query) {
        assert_eq!(rows, [["1", "1", "2", "1"]], "{placement:?}");
    }
    // Rows are in shards: the tables above them need no trigger.
    for node in 0..app.size() {
        let triggers =
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'o'::regclass AND tgname LIKE '~ttl%'";
        assert_eq!(app.node(node).value(triggers), "0", "node {node}");
    }
}

/// Citus lets the coordinator alone change tables; a policy can be changed anywhere.
#[test]
fn a_worker_changes_what_the_coordinator_enabled() {
    let (app, mut session) = with_table("from_worker");
    let mut worker = app.node(1);
    let error = worker.error("SELECT ttl.enable('o', 3600)");
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    assert!(
        error.hint().unwrap_or("").contains("coordinator"),
        "{error:?}"
    );
    session.run("SELECT ttl.enable('o', 86400)");
    worker.run_preserving(ROWS);
    worker.run("SELECT ttl.set_default('o', 3600)");
    for node in 0..app.size() {
        let mut session = app.node(node);
        assert_eq!(seen(&mut session), ids(21..=30), "node {node}");
        assert_eq!(
            session.value("SELECT default_ttl FROM ttl.tables WHERE relation = 'o'::regclass"),
            "3600"
        );
    }
    assert_eq!(worker.value("SELECT ttl.purge('o')"), "20");
    assert_eq!(app.on_disk("o"), ids(21..=30));
    worker.run("SELECT ttl.disable('o')");
    session.run_preserving("UPDATE o SET _ts = now() - interval '2 hours'");
    assert_eq!(seen(&mut session), ids(21..=30));
}

#[test]
fn it_is_all_or_nothing() {
    let (app, mut session) = with_table("transaction");
    session.run("INSERT INTO o SELECT n, 'v' FROM generate_series(1, 8) AS n");
    session.run("BEGIN; SELECT ttl.enable('o', 3600); ROLLBACK");
    for node in 0..app.size() {
        let columns =
            "SELECT count(*) FROM pg_attribute WHERE attrelid = 'o'::regclass AND attname = '_ts'";
        assert_eq!(app.node(node).value(columns), "0", "node {node}");
        assert_eq!(
            app.node(node).value("SELECT count(*) FROM ttl.tables"),
            "0",
            "node {node}"
        );
    }
    // Other statements of the transaction follow it.
    session.run(
        "BEGIN; SELECT ttl.enable('o', 3600);
         SET LOCAL ttl.preserve_ts = on;
         INSERT INTO o (id, v, _ts) VALUES (100, 'old', now() - interval '1 day'); COMMIT",
    );
    assert_eq!(seen(&mut session), ids(1..=8));
}

#[test]
fn by_ddl() {
    let (app, mut session) = with_table("ddl");
    session.run("ALTER TABLE o SET (ttl.default_ttl = '1 hour')");
    session.run_preserving(ROWS);
    assert_eq!(seen(&mut session), ids(21..=30));
    session.run("ALTER TABLE o SET (ttl.default_ttl = '1 day')");
    assert_eq!(seen(&mut session), ids(21..=30), "what had expired is gone");
    session.run_preserving("INSERT INTO o (id, _ts) VALUES (1, now() - interval '2 hours')");
    for node in 0..app.size() {
        let expected = format!("1 {}", ids(21..=30));
        assert_eq!(seen(&mut app.node(node)), expected, "node {node}");
    }
    session.run("ALTER TABLE o RESET (ttl.default_ttl)");
    session.run_preserving("UPDATE o SET _ts = now() - interval '2 days'");
    assert_eq!(seen(&mut session), format!("1 {}", ids(21..=30)));
}
