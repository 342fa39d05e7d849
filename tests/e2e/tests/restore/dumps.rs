//! C1, C6: dumps are complete and restore everything: policies, `_ts`, overrides, and expired rows,
//! which stay hidden.

use std::path::PathBuf;
use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[("wal_level", "minimal"), ("max_wal_senders", "0")]))
}

const SCHEMA: &str = "
CREATE TABLE shop.plain (id integer PRIMARY KEY, what text);
SELECT ttl.enable('shop.plain', 3600, ttl_column => NULL);
CREATE TABLE shop.override (id integer PRIMARY KEY, what text);
SELECT ttl.enable('shop.override', 3600);
CREATE TABLE shop.only_overrides (id integer PRIMARY KEY, what text);
SELECT ttl.enable('shop.only_overrides');
CREATE TABLE shop.off (id integer PRIMARY KEY, what text);
SELECT ttl.enable('shop.off', 3600), ttl.disable('shop.off');
CREATE TABLE shop.parts (id integer, what text) PARTITION BY RANGE (id);
CREATE TABLE shop.parts1 PARTITION OF shop.parts FOR VALUES FROM (0) TO (10);
SELECT ttl.enable('shop.parts', 3600);
CREATE TABLE shop.parts2 PARTITION OF shop.parts FOR VALUES FROM (10) TO (100) PARTITION BY LIST (what);
CREATE TABLE shop.parts2a PARTITION OF shop.parts2 DEFAULT;
CREATE TABLE shop.parent (id integer PRIMARY KEY, what text);
SELECT ttl.enable('shop.parent', 3600);
CREATE TABLE shop.child (id integer PRIMARY KEY, parent integer REFERENCES shop.parent ON DELETE CASCADE);
CREATE VIEW shop.seen AS SELECT * FROM shop.override WHERE what <> 'c';
";

/// Rows of all kinds; a live child keeps an expired parent.
const ROWS: &str = "
SET ttl.preserve_ts = on;
INSERT INTO shop.plain (id, what, _ts)
    VALUES (1, 'live', now()), (2, 'expired', now() - interval '2 hours');
INSERT INTO shop.override (id, what, _ts, ttl)
    VALUES (1, 'live', now(), NULL), (2, 'expired', now() - interval '2 hours', NULL),
           (3, 'never', now() - interval '2 years', -1), (4, 'soon', now() - interval '1 hour', 60),
           (5, 'late', now() - interval '1 day', 864000);
INSERT INTO shop.only_overrides (id, what, _ts, ttl)
    VALUES (1, 'no override', now() - interval '2 years', NULL), (2, 'expired', now() - interval '1 hour', 60);
INSERT INTO shop.off (id, what, _ts, ttl) VALUES (1, 'lives', now() - interval '1 hour', 60);
INSERT INTO shop.parts (id, what, _ts, ttl)
    SELECT n, 'part', now() - n % 4 * interval '40 minutes', CASE n % 5 WHEN 0 THEN -1 END
      FROM generate_series(0, 99) AS n;
INSERT INTO shop.parent (id, what, _ts) VALUES (1, 'live', now()), (2, 'to expire', now());
INSERT INTO shop.child VALUES (1, 1), (2, 2);
UPDATE shop.parent SET _ts = now() - interval '2 hours' WHERE id = 2;
RESET ttl.preserve_ts;
";

const TABLES: [&str; 7] = [
    "plain",
    "override",
    "only_overrides",
    "off",
    "parts",
    "parent",
    "child",
];

/// What a session sees of the tables, ordered by column name.
fn contents(session: &mut Session, tables: &[&str]) -> Vec<String> {
    let rows = |table: &&str| {
        session.column(&format!(
            "SELECT '{table}', to_jsonb(t) FROM shop.{table} AS t ORDER BY t.id"
        ))
    };
    tables.iter().flat_map(rows).collect()
}

/// What is on disk, what is seen, and the policies.
fn state(database: &Database<'_>, tables: &[&str]) -> [Vec<String>; 3] {
    let mut session = database.connect();
    let seen = contents(&mut session, tables);
    session.run("SET ttl.show_expired = on");
    let there = contents(&mut session, tables);
    let names: Vec<String> = tables.iter().map(|name| format!("'shop.{name}'")).collect();
    let policies = session.column(&format!(
        "SELECT relation, default_ttl, ts_column, ttl_column, document_column, hidden
           FROM ttl.tables WHERE relation::text IN ({}) ORDER BY relation::text",
        names.join(", ")
    ));
    [there, seen, policies]
}

fn filled(name: &str) -> Database<'static> {
    let database = server().database(name);
    let mut session = database.connect();
    session.run("CREATE SCHEMA shop");
    session.run(SCHEMA);
    session.run(ROWS);
    database
}

/// Checks that the rows are live or expired as the test assumes.
fn assert_worth_dumping(state: &[Vec<String>; 3]) {
    let [there, seen, policies] = state;
    assert_eq!(there.len(), 2 + 5 + 2 + 1 + 100 + 2 + 2);
    assert_eq!(seen.len(), 1 + 3 + 1 + 1 + 60 + 1 + 2, "{seen:#?}");
    assert_eq!(policies.len(), 6, "{policies:#?}");
}

fn dump(database: &Database<'_>, user: &str, arguments: &[&str]) -> PathBuf {
    let path = server().dir().join(format!("{}.dump", database.name));
    let mut dump = database.tool("pg_dump");
    dump.env("PGUSER", user)
        .args(arguments)
        .arg("-f")
        .arg(&path);
    server().must_run(&mut dump);
    path
}

fn psql(database: &Database<'_>, user: &str, file: &PathBuf) {
    let mut psql = database.tool("psql");
    psql.env("PGUSER", user)
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]);
    server().must_run(psql.arg(file));
}

/// C3, C6, C8: pg_dump in the custom format, and pg_restore.
#[test]
fn custom_format() {
    let source = filled("custom_a");
    let before = state(&source, &TABLES);
    assert_worth_dumping(&before);
    let file = dump(&source, "postgres", &["-Fc"]);
    let target = server().plain_database("custom_b");
    let mut restore = target.tool("pg_restore");
    server().must_run(
        restore
            .args(["--exit-on-error", "-d", "custom_b"])
            .arg(&file),
    );
    assert_eq!(state(&target, &TABLES), before);
}

/// The same with several workers and a directory, data after the definitions.
#[test]
fn directory_in_two_steps() {
    let source = filled("directory_a");
    let before = state(&source, &TABLES);
    let file = dump(&source, "postgres", &["-Fd", "-j2"]);
    let target = server().plain_database("directory_b");
    for section in ["pre-data", "data", "post-data"] {
        let mut restore = target.tool("pg_restore");
        restore.args([
            "--exit-on-error",
            "-j2",
            "-d",
            "directory_b",
            "--section",
            section,
        ]);
        server().must_run(restore.arg(&file));
    }
    assert_eq!(state(&target, &TABLES), before);
}

/// A plain script, run by psql.
#[test]
fn plain_format() {
    let source = filled("plain_a");
    let before = state(&source, &TABLES);
    let file = dump(&source, "postgres", &[]);
    let target = server().plain_database("plain_b");
    psql(&target, "postgres", &file);
    assert_eq!(state(&target, &TABLES), before);
}

/// C1 does not touch a restore: rows that come as INSERT keep their `_ts`.
#[test]
fn inserts_keep_their_times() {
    for (name, how) in [
        ("inserts", "--inserts"),
        ("columns", "--column-inserts"),
        ("many", "--rows-per-insert=7"),
    ] {
        let source = filled(&format!("{name}_a"));
        let before = state(&source, &TABLES);
        let file = dump(&source, "postgres", &[how]);
        let target = server().plain_database(&format!("{name}_b"));
        psql(&target, "postgres", &file);
        assert_eq!(state(&target, &TABLES), before, "{how}");
    }
}

/// One table alone brings its policy along.
#[test]
fn one_table() {
    for table in ["plain", "override", "parent"] {
        let source = filled(&format!("one_{table}_a"));
        let before = state(&source, &[table]);
        assert_eq!(before[2].len(), 1);
        let file = dump(&source, "postgres", &["-t", &format!("shop.{table}")]);
        let target = server().database(&format!("one_{table}_b"));
        target.connect().run("CREATE SCHEMA shop");
        psql(&target, "postgres", &file);
        assert_eq!(state(&target, &[table]), before);
    }
}

/// A table's owner who is no superuser also dumps and restores every row; other users cannot reach
/// expired rows this way.
#[test]
fn by_the_owner() {
    let source = server().database("owner_a");
    let target = server().database("owner_b");
    source
        .connect()
        .run("CREATE ROLE seller LOGIN; CREATE ROLE guest LOGIN");
    for database in [&source, &target] {
        database
            .connect()
            .run("CREATE SCHEMA shop AUTHORIZATION seller");
    }
    let mut session = source.connect_as("seller");
    session.run(SCHEMA);
    session.run(ROWS);
    let before = state(&source, &TABLES);
    assert_worth_dumping(&before);
    for how in ["--no-comments", "--inserts"] {
        let file = dump(&source, "seller", &["-t", "shop.*", how]);
        psql(&target, "seller", &file);
        assert_eq!(state(&target, &TABLES), before, "{how}");
        target
            .connect()
            .run("DROP SCHEMA shop CASCADE; CREATE SCHEMA shop AUTHORIZATION seller");
    }

    session.run(
        "GRANT USAGE ON SCHEMA shop TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO guest",
    );
    let file = dump(&source, "guest", &["-t", "shop.plain", "--data-only"]);
    let text = std::fs::read_to_string(file).expect("the dump");
    assert!(text.contains("live") && !text.contains("expired"), "{text}");
}

/// The restored rows live and expire by the restored policies.
#[test]
fn restored_policies_act() {
    let source = filled("acts_a");
    let file = dump(&source, "postgres", &["-Fc"]);
    let target = server().plain_database("acts_b");
    let mut restore = target.tool("pg_restore");
    server().must_run(restore.args(["--exit-on-error", "-d", "acts_b"]).arg(&file));
    let mut session = target.connect();
    assert_eq!(session.value("SELECT count(*) FROM shop.plain"), "1");
    // C8: the default acts at once on rows that were restored.
    session.run("SELECT ttl.set_default('shop.plain', 864000, revive_expired => true)");
    assert_eq!(session.value("SELECT count(*) FROM shop.plain"), "2");
    // C1: a write begins the countdown again.
    session.run("SELECT ttl.set_default('shop.plain', 3600)");
    session.run("UPDATE shop.plain SET what = 'again'");
    let ages =
        session.column("SELECT id FROM shop.plain WHERE _ts > now() - interval '10 minutes'");
    assert_eq!(ages, ["1"]);
    // C9: off.
    session.run("SELECT ttl.disable('shop.override', revive_expired => true)");
    assert_eq!(session.value("SELECT count(*) FROM shop.override"), "5");
}

/// After a restore it is still known what `ttl.enable` added: adopted columns stay.
#[test]
fn adopted_columns_are_known() {
    let source = server().database("adopted_a");
    source.connect().run(
        "CREATE SCHEMA shop;
         CREATE TABLE shop.mixed (id integer PRIMARY KEY, updated_at timestamptz);
         SELECT ttl.enable('shop.mixed', 3600, ts_column => 'updated_at');
         ALTER TABLE shop.mixed RENAME updated_at TO changed_at",
    );
    let file = dump(&source, "postgres", &[]);
    let target = server().plain_database("adopted_b");
    psql(&target, "postgres", &file);
    let mut session = target.connect();
    session.run("SELECT ttl.disable('shop.mixed', drop_columns => true)");
    let columns = "SELECT attname, atthasdef FROM pg_attribute
                    WHERE attrelid = 'shop.mixed'::regclass AND attnum > 0 AND NOT attisdropped";
    assert_eq!(session.column(columns), ["id|f", "changed_at|f"]);
    let indexes =
        "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'shop.mixed'::regclass";
    assert_eq!(session.column(indexes), ["shop.mixed_pkey"]);
}
