//! Tables whose time to live was set under 0.1.0 work under the new library, before ALTER EXTENSION
//! … UPDATE and after it.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, Upgrade};

/// Each kind of time to live that 0.1.0 had, by the functions that it had.
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
    server.reload(&[("ttl.enabled", "off")]);
    // C8, C9
    disk.run("SELECT ttl.set_default('plain', 1800); SELECT ttl.disable('plain'); SELECT ttl.set_default('plain', 3600)");
}

/// The indexes for deletion of a table, by what they are on.
fn indexes(disk: &mut Session, table: &str) -> Vec<String> {
    disk.column(&format!(
        "SELECT substring(indexdef FROM '\\((.*)$') FROM pg_indexes
          WHERE tablename = '{table}' AND indexname NOT LIKE '%_pkey' ORDER BY 1"
    ))
}

fn start() -> Server {
    Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")])
}

fn of_0_1<'a>(server: &'a Server, name: &str) -> Database<'a> {
    let database = server.plain_database(name);
    database
        .connect()
        .run("CREATE EXTENSION ttl_ext VERSION '0.1.0'");
    database.connect().run(TABLES);
    database
}

#[test]
fn before_and_after_update() {
    let server = start();
    let database = of_0_1(&server, "app");
    let mut disk = database.disk();
    works(&database);
    // Nothing moves to an index on a function that is not there.
    let pair = indexes(&mut disk, "plain");
    assert_eq!(pair.len(), 2, "{pair:?}");
    assert!(!pair.concat().contains("expiry_key"), "{pair:?}");

    disk.run("ALTER EXTENSION ttl_ext UPDATE");
    works(&database);
    for table in ALL {
        let problems = disk.value(&format!(
            "SELECT array_to_string(problems, '; ') FROM ttl.tables WHERE relation = '{table}'::regclass"
        ));
        assert!(!problems.contains("ttl_ext"), "{table}: {problems}");
    }
    // C21: the builder puts one index in the place of the two.
    server.reload(&[("ttl.enabled", "on")]);
    let new =
        "SELECT string_agg(indexdef, '; ') LIKE '%expiry_key%' AND count(*) = 1 FROM pg_indexes
                WHERE tablename = 'plain' AND indexname NOT LIKE '%_pkey'";
    disk.wait_until(new, "t", PATIENCE);
    server.reload(&[("ttl.enabled", "off")]);
    works(&database);
    // C23, C25
    disk.run("SELECT ttl.set_option('plain', 'keep_expired', '60')");
    disk.insert_expired("plain", 30, 39);
    assert_eq!(
        disk.value("SELECT count(*) FROM ttl.expired(NULL::plain)"),
        "10"
    );
    // What was added under 0.1.0 is known, and goes.
    disk.run("SELECT ttl.disable('plain', drop_columns => true); SELECT ttl.disable('parts', drop_columns => true)");
    assert!(indexes(&mut disk, "plain").is_empty());
    assert_eq!(
        disk.column("SELECT attname FROM pg_attribute WHERE attrelid = 'plain'::regclass AND attnum > 0 AND NOT attisdropped"),
        ["id", "note"]
    );
}

/// All of 0.1.0's functions, under the new library: TTL ends without UPDATE, too.
#[test]
fn without_update() {
    let server = start();
    let database = of_0_1(&server, "app");
    let mut session = database.connect();
    fill(&mut session);
    session.run(
        "SELECT ttl.rules('dated'), ttl.policy('plain'); SELECT ttl.resume('plain');
         SELECT ttl.expire_index('dated_at_idx', NULL, revive_expired => true);
         SELECT ttl.disable('plain', drop_columns => true, revive_expired => true);
         SELECT ttl.disable('documents', drop_columns => true);
         SELECT ttl.disable('parts', drop_columns => true)",
    );
    let mut disk = database.disk();
    for (table, count) in [("plain", 11), ("dated", 11), ("documents", 1), ("parts", 1)] {
        assert_eq!(disk.count(table), count, "{table}");
    }
    assert_eq!(
        session.column("SELECT relation FROM ttl.tables ORDER BY relation::text"),
        ["blocks", "mongo"]
    );
}

/// A dump does not name the version: what it is restored to has the new objects.
#[test]
fn dumped_and_restored() {
    let server = start();
    let source = of_0_1(&server, "source");
    let mut session = source.connect();
    fill(&mut session);
    let file = server.dir().join("source.dump");
    server.must_run(source.tool("pg_dump").arg("-Fc").arg("-f").arg(&file));
    let target = server.plain_database("target");
    let mut restore = target.tool("pg_restore");
    server.must_run(restore.args(["--exit-on-error", "-d", "target"]).arg(&file));
    let (mut user, mut disk) = (target.connect(), target.disk());
    let version = "SELECT extversion = default_version AND extversion <> '0.1.0'
                     FROM pg_extension JOIN pg_available_extensions ON name = extname WHERE extname = 'ttl_ext'";
    assert_eq!(disk.value(version), "t");
    for table in ALL {
        let seen = user.column(&format!("SELECT id FROM {table}"));
        assert_eq!(seen, ["1"], "{table}");
        assert_eq!(disk.count(table), 11, "{table}");
        disk.run(&format!("SELECT ttl.resume('{table}')"));
    }
    works(&target);
}

/// pg_upgrade keeps the version of the objects.
#[test]
fn through_pg_upgrade() {
    let filled = Upgrade::of_version("0.1.0", |source| {
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
    let version = "SELECT extversion FROM pg_extension WHERE extname = 'ttl_ext'";
    assert_eq!(disk.value(version), "0.1.0");
    new.reload(&[("ttl.enabled", "off")]);
    works(&database);
    disk.run("ALTER EXTENSION ttl_ext UPDATE");
    works(&database);
}
