//! M1 to M9 on Citus: a TTL index of a distributed table is one of each shard, under names of their own.

use ttl_ext_citus::{Application, Session, SqlState, ids};

use crate::{cluster, seen};

/// A table `o (id, ends)` whose rows 1 to 10 have ended, 11 to 20 not.
const TABLE: &str = "CREATE TABLE o (id int PRIMARY KEY, ends timestamptz);
    CREATE INDEX o_ends ON o (ends)";
const FILL: &str = "INSERT INTO o SELECT n, now() + (n - 10.5) * interval '1 hour' FROM generate_series(1, 20) AS n";

fn check(app: &Application<'_>, session: &mut Session) {
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(11..=20), "node {node}");
    }
    assert_eq!(app.on_disk("o"), ids(1..=20));
    assert_eq!(app.problems(0, "o"), "");
    // Renamed, and in force.
    session.run("ALTER INDEX o_ends RENAME TO o_over");
    assert_eq!(seen(session), ids(11..=20));
    session.run("SELECT ttl.expire_index('o_over', 86400, revive_expired => true)");
    assert_eq!(seen(&mut app.node(1)), ids(1..=20));
    session.run("SELECT ttl.expire_index('o_over', 0)");
    assert_eq!(session.value("SELECT ttl.purge('o')"), "10");
    assert_eq!(app.on_disk("o"), ids(11..=20));
    session.run("DROP INDEX o_over");
    session.run("UPDATE o SET ends = '2001-01-01'");
    assert_eq!(seen(&mut app.node(2)), ids(11..=20));
}

#[test]
fn on_a_distributed_table() {
    let app = cluster().application("ttl_index");
    let mut session = app.coordinator();
    session.run(TABLE);
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run(FILL);
    session.run("SELECT ttl.expire_index('o_ends', 0)");
    check(&app, &mut session);
}

/// (Expired rows came back: the copied label did not name the shards' indexes.)
#[test]
fn before_the_table_is_distributed() {
    let app = cluster().application("ttl_index_before");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int, ends timestamptz); CREATE INDEX o_ends ON o (ends)");
    session.run(FILL);
    session.run("SELECT ttl.expire_index('o_ends', 0)");
    assert_eq!(seen(&mut session), ids(11..=20));
    session.run("SELECT create_distributed_table('o', 'id')");
    check(&app, &mut session);
}

#[test]
fn beside_a_default_and_partial() {
    let app = cluster().application("ttl_index_partial");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, ends timestamptz, state text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("CREATE INDEX o_done ON o (ends) WHERE state = 'done'");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run("SELECT ttl.expire_index('o_done', 0)");
    session.run_preserving(
        "INSERT INTO o (id, ends, state, _ts) VALUES (1, now() - interval '1 s', 'done', now()),
            (2, now() - interval '1 s', 'open', now()), (3, now() + interval '1 day', 'done', now()),
            (4, now() + interval '1 day', 'open', now() - interval '2 hours'), (5, NULL, 'done', now())",
    );
    assert_eq!(seen(&mut session), "2 3 5");
    session.run("UPDATE o SET state = 'done'");
    assert_eq!(seen(&mut app.node(1)), "3 5");
}

#[test]
fn by_commands_of_mongodb() {
    let app = cluster().application("mongo");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, ends timestamptz)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run(FILL);
    let ok = session.value(
        r#"SELECT ttl.create_index('o', '{"ends": 1}', '{"expireAfterSeconds": 0, "name": "o_ends"}') ->> 'ok'"#,
    );
    assert_eq!(ok, "1");
    assert_eq!(seen(&mut app.node(1)), ids(11..=20));
    session.run(
        r#"SELECT ttl.coll_mod('o', '{"index": {"name": "o_ends", "expireAfterSeconds": 3600}}')"#,
    );
    assert_eq!(session.value("SELECT count(*) FROM o WHERE id > 10"), "10");
}

/// A shard's own index is no way in.
#[test]
fn of_a_shard_it_is_refused() {
    let app = cluster().application("ttl_index_shard");
    let mut session = app.coordinator();
    session.run(TABLE);
    session.run("SELECT create_distributed_table('o', 'id')");
    let placement = &app.placements("o")[0];
    let shard = placement.shard;
    let mut node = app.node(placement.node);
    let error = node.error(&format!("SELECT ttl.expire_index('o_ends_{shard}', 0)"));
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error}");
    assert!(error.hint().is_some(), "{error:?}");
}
