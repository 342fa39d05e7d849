//! Changes of a policy reach all shards, whoever makes them. (Shards kept a shorter default, hid live rows
//! and deleted them.)

use ttl_ext_citus::ids;

use crate::{ROWS, cluster, seen, with_table};

#[test]
fn a_longer_default() {
    let (app, mut session) = with_table("longer");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run("SELECT ttl.set_default('o', '1 day')");
    session.run_preserving(ROWS);
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(1..=30), "node {node}");
    }
    assert_eq!(session.value("SELECT ttl.purge('o')"), "0");
    assert_eq!(app.on_disk("o"), ids(1..=30));
}

#[test]
fn what_would_come_back_is_deleted_first() {
    let (app, mut session) = with_table("first");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    session.run("SELECT ttl.set_default('o', '1 day')");
    assert_eq!(app.on_disk("o"), ids(21..=30));
    session.run_preserving("INSERT INTO o (id, _ts) VALUES (1, now() - interval '2 days')");
    session.run("SELECT ttl.set_default('o', '1 week', revive_expired => true)");
    assert_eq!(seen(&mut session), format!("1 {}", ids(21..=30)));
}

#[test]
fn a_shorter_default() {
    let (app, mut session) = with_table("shorter");
    session.run("SELECT ttl.enable('o', 86400)");
    session.run_preserving(ROWS);
    assert_eq!(seen(&mut session), ids(1..=30));
    app.node(2).run("SELECT ttl.set_default('o', 3600)");
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(21..=30), "node {node}");
    }
}

#[test]
fn turning_off() {
    let (app, mut session) = with_table("turned_off");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    session.run("SELECT ttl.disable('o')");
    assert_eq!(app.on_disk("o"), ids(21..=30));
    session.run_preserving("UPDATE o SET _ts = now() - interval '1 week', ttl = 1");
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(21..=30), "node {node}");
    }
    let triggers =
        "SELECT count(*) FROM pg_trigger WHERE tgrelid = '{}'::regclass AND tgname LIKE '~ttl%'";
    for (placement, rows) in app.of_placements("o", triggers) {
        assert_eq!(rows, [["0"]], "{placement:?}");
    }
    session.run("SELECT ttl.disable('o', drop_columns => true)");
    for (placement, rows) in app.of_placements(
        "o",
        "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute
          WHERE attrelid = '{}'::regclass AND attnum > 0 AND NOT attisdropped",
    ) {
        assert_eq!(rows, [["id v"]], "{placement:?}");
    }
}

#[test]
fn turning_off_with_what_has_expired() {
    let (app, mut session) = with_table("revived");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    session.run("SELECT ttl.disable('o', revive_expired => true)");
    assert_eq!(seen(&mut session), ids(1..=30));
    assert_eq!(app.on_disk("o"), ids(1..=30));
}

#[test]
fn options() {
    let (app, mut session) = with_table("options");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    session.run("SELECT ttl.set_option('o', 'hidden', 'false')");
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(1..=30), "node {node}");
    }
    session.run("SELECT ttl.set_option('o', 'hidden', 'true')");
    assert_eq!(seen(&mut session), ids(21..=30));
    session.run_preserving("UPDATE o SET _ts = now() - interval '5 minutes'");
    session.run("SELECT ttl.set_option('o', 'ts_granularity', '600')");
    session.run("UPDATE o SET v = 'again'");
    let kept = "SELECT count(*) FROM o WHERE _ts < now() - interval '4 minutes'";
    assert_eq!(session.value(kept), "10");
}

/// A change and a write in other sessions: the write waits, or comes before.
#[test]
fn a_change_waits_for_writers() {
    let (app, mut session) = with_table("writers");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    let mut writer = app.node(1);
    writer.run("BEGIN; UPDATE o SET v = 'x' WHERE id = 25");
    session.run("SELECT ttl.set_default('o', 7200)");
    writer.run("COMMIT");
    assert_eq!(seen(&mut writer), ids(21..=30));
}

#[test]
fn columns_are_renamed() {
    let (app, mut session) = with_table("renamed");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    session.run("ALTER TABLE o RENAME COLUMN _ts TO written_at");
    session.run("ALTER TABLE o RENAME COLUMN ttl TO seconds");
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(21..=30), "node {node}");
    }
    session.run("ALTER TABLE o RENAME TO orders");
    let query = "SELECT count(*) FROM orders";
    assert_eq!(session.value(query), "10");
    session.run("CREATE SCHEMA shop; ALTER TABLE orders SET SCHEMA shop");
    assert_eq!(app.node(2).value("SELECT count(*) FROM shop.orders"), "10");
    assert_eq!(session.value("SELECT ttl.purge('shop.orders')"), "20");
}

#[test]
fn a_table_of_the_same_name_as_a_shard() {
    let application = cluster().application("namesakes");
    let mut session = application.coordinator();
    session.run("CREATE TABLE o (id int); SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 1)");
    let shard =
        session.value("SELECT min(shardid) FROM pg_dist_shard WHERE logicalrelid = 'o'::regclass");
    // In another schema, and with another number, it is no shard.
    session.run("CREATE SCHEMA mine");
    for name in [format!("mine.o_{shard}"), "o_1".into(), "o_999999".into()] {
        session.run(&format!(
            "CREATE TABLE {name} (id int, _ts timestamptz DEFAULT now() - interval '1 day', ttl int)"
        ));
        session.run(&format!("INSERT INTO {name} VALUES (1), (2)"));
        assert_eq!(session.value(&format!("SELECT count(*) FROM {name}")), "2");
    }
}
