//! pg_upgrade: tables with each kind of time to live work on the new server.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, Upgrade};

const TABLES: &str = r#"
CREATE TABLE plain (id integer PRIMARY KEY, note text);
SELECT ttl.enable('plain', 3600);
CREATE TABLE blocks (id integer);
SELECT ttl.enable('blocks', default_ttl => 3600, index => 'none');
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
CREATE SCHEMA "the archive";
CREATE TABLE "the archive"."gone: all" (id integer, _ts timestamptz, ttl integer);
CREATE TABLE archived (id integer);
SELECT ttl.enable('archived', 3600);
SELECT ttl.archive_to('archived', '"the archive"."gone: all"');
CREATE TABLE paused (id integer);
SELECT ttl.enable('paused', 3600);
SELECT ttl.pause('paused');
CREATE TABLE waiting (id integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
SECURITY LABEL FOR ttl ON TABLE waiting IS '{"default_ttl": 3600}';
CREATE TABLE whole (id integer, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
CREATE TABLE whole_2020 PARTITION OF whole FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE whole_rest PARTITION OF whole DEFAULT;
SELECT ttl.enable('whole', 3600, drop_partitions => true);
"#;

/// Rows of tables that need nothing by hand, or go on waiting.
const ROWS: &str = "
SET ttl.preserve_ts = on;
INSERT INTO archived (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(2, 11) AS n;
INSERT INTO paused (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(2, 11) AS n;
INSERT INTO waiting (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(2, 11) AS n;
INSERT INTO whole (id, _ts, ttl) VALUES (1, now(), NULL), (2, '2020-06-01', NULL);
RESET ttl.preserve_ts;
INSERT INTO archived (id) VALUES (1);
INSERT INTO paused (id) VALUES (1);
INSERT INTO waiting (id) VALUES (1)";

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
        ["archived", "blocks", "dated", "documents", "mongo", "parts", "paused", "plain", "waiting", "whole"]
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

/// An archive, a pause, a wait for `ttl.resume` and whole partitions go on as they were.
fn goes_on(database: &Database<'_>) {
    let mut disk = database.disk();
    disk.wait_for_ids("archived", "1");
    assert_eq!(disk.count("\"the archive\".\"gone: all\""), 10);
    disk.wait_until("SELECT to_regclass('whole_2020') IS NULL", "t", PATIENCE);
    disk.look_again("plain");
    let waits = "SELECT string_agg(problem, ' ') FROM ttl.tables, unnest(problems) AS problem WHERE relation = $$waiting$$::regclass";
    assert!(disk.value(waits).contains("ttl.resume"));
    for table in ["paused", "waiting"] {
        assert_eq!(disk.count(table), 11, "{table}");
        disk.run(&format!("SELECT ttl.resume('{table}')"));
        disk.wait_for_ids(table, "1");
    }
    // The archive of the name is the table that it was, whatever its name is now.
    disk.run("SELECT ttl.set_option('archived', 'notify', 'gone'); ALTER TABLE \"the archive\".\"gone: all\" RENAME TO g; CREATE TABLE \"the archive\".\"gone: all\" (id integer)");
    disk.run_preserving("INSERT INTO archived (id, _ts) VALUES (12, now() - interval '1 day')");
    disk.wait_for_ids("archived", "1");
    assert_eq!(disk.count("\"the archive\".g"), 11);
}

#[test]
fn every_kind_of_time_to_live() {
    let prepare = |source: &Database<'_>| {
        source.connect().run(TABLES);
        source.connect().run(ROWS);
        fill(&mut source.connect());
    };
    Upgrade::each_of_app(prepare, |major, new| {
        println!("from {major}");
        after_upgrade(&new);
    });
}

fn after_upgrade(new: &Server) {
    let database = new.existing_database("app");
    goes_on(&database);
    let (mut user, mut disk) = (database.connect(), database.disk());
    for table in ALL {
        assert_eq!(user.column(&format!("SELECT id FROM {table}")), ["1"]);
        disk.wait_for_ids(table, "1");
    }
    new.reload(&[("ttl.enabled", "off")]);
    works(&database);
}
