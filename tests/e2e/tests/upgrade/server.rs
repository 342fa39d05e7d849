//! pg_upgrade: tables with each kind of time to live work on the new server.

use ttl_ext_e2e::{Database, Session, Upgrade};

const TABLES: &str = r#"
CREATE TABLE plain (id integer PRIMARY KEY, note text);
SELECT ttl.enable('plain', 3600);
CREATE TABLE blocks (id integer);
SELECT ttl.enable('blocks', default_ttl => 3600, index => 'brin');
CREATE TABLE documents (id integer PRIMARY KEY, body jsonb);
SELECT ttl.enable('documents', 3600, document_column => 'body');
CREATE TABLE parts (id integer) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (6);
CREATE TABLE parts_2 PARTITION OF parts DEFAULT;
SELECT ttl.enable('parts', 3600, ts_granularity => 60);
CREATE TABLE dated (id integer PRIMARY KEY, at timestamptz);
CREATE INDEX dated_at_idx ON dated (at);
SELECT ttl.expire_index('dated_at_idx', 60);
CREATE TABLE mongo (id integer, at timestamptz);
SELECT ttl.create_index('mongo', '{"at": 1}', '{"expireAfterSeconds": 0}');
SELECT ttl.coll_mod('mongo', '{"index": {"keyPattern": {"at": 1}, "expireAfterSeconds": 60}}');
"#;

const ALL: [&str; 6] = ["plain", "blocks", "documents", "parts", "dated", "mongo"];

/// The row 1 lives, and 2 to 11 have expired.
fn fill(session: &mut Session) {
    session.run("TRUNCATE plain, blocks, documents, parts, dated, mongo");
    for table in &ALL[..4] {
        session.run_preserving(&format!(
            "INSERT INTO {table} (id, _ts) VALUES (1, now() - interval '30 minutes')"
        ));
        session.insert_expired(table, 2, 11);
    }
    for table in &ALL[4..] {
        session.run(&format!(
            "INSERT INTO {table} SELECT n, CASE n WHEN 1 THEN now() + interval '1 day' ELSE '2020-01-01' END
               FROM generate_series(1, 11) AS n"
        ));
    }
}

/// Hides, stamps, frees keys and deletes. Nothing is deleted in the background when it begins.
fn works(database: &Database<'_>) {
    let (mut user, mut disk) = (database.connect(), database.disk());
    fill(&mut user);
    for table in ALL {
        let seen = user.column(&format!("SELECT id FROM {table}"));
        assert_eq!(seen, ["1"], "{table}");
        assert_eq!(disk.count(table), 11, "{table}");
    }
    // C1: stamped.
    user.run("UPDATE plain SET note = 'written'");
    let stamped = "SELECT _ts > now() - interval '10 minutes' FROM plain WHERE id = 1";
    assert_eq!(user.value(stamped), "t");
    // C3, D1: overrides.
    user.run_preserving(
        "INSERT INTO plain (id, _ts, ttl) VALUES (12, now() - interval '1 minute', 1), (13, now() - interval '1 day', -1)",
    );
    user.run_preserving(
        r#"INSERT INTO documents (id, _ts, body) VALUES (12, now() - interval '1 minute', '{"ttl": 1}'),
                                                        (13, now() - interval '1 day', '{"ttl": -1}')"#,
    );
    for table in ["plain", "documents"] {
        let seen = user.column(&format!("SELECT id FROM {table} ORDER BY id"));
        assert_eq!(seen, ["1", "13"], "{table}");
    }
    // C6: the key of an expired row is free.
    user.run("INSERT INTO plain (id) VALUES (2); INSERT INTO dated VALUES (2, NULL)");
    assert_eq!(disk.count("plain"), 13);
    let previewed = user.value("SELECT expired FROM ttl.preview('plain', 60)");
    assert_eq!(previewed, "10", "3 to 12");
    assert_eq!(disk.value("SELECT ttl.purge('mongo')"), "10");
    assert_eq!(
        user.column("SELECT relation FROM ttl.stats JOIN ttl.tables USING (relation) ORDER BY relation::text"),
        ["blocks", "dated", "documents", "mongo", "parts", "plain"]
    );
    // C7
    let server = database.server();
    server.reload(&[("ttl.enabled", "on")]);
    for (table, left) in [
        ("plain", "1 2 13"),
        ("blocks", "1"),
        ("documents", "1 13"),
        ("parts", "1"),
        ("dated", "1 2"),
        ("mongo", "1"),
    ] {
        disk.wait_for_ids(table, left);
    }
    // C8, C9
    disk.run("SELECT ttl.set_default('plain', 1800); SELECT ttl.disable('plain'); SELECT ttl.set_default('plain', 3600)");
}

#[test]
fn every_kind_of_time_to_live() {
    let filled = Upgrade::of_app(|source| {
        source.connect().run(TABLES);
        fill(&mut source.connect());
    });
    let Some(new) = filled else { return };
    let database = new.existing_database("app");
    let (mut user, mut disk) = (database.connect(), database.disk());
    for table in ALL {
        assert_eq!(user.column(&format!("SELECT id FROM {table}")), ["1"]);
        disk.wait_for_ids(table, "1");
    }
    new.reload(&[("ttl.enabled", "off")]);
    works(&database);
}
