//! C6: the key trigger survives a dump unchanged, always fires, and does not make a restore fail.

use std::path::PathBuf;
use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[("wal_level", "minimal"), ("max_wal_senders", "0")]))
}

/// A key on a partitioned table, one on a single partition, a foreign key, and an inheriting table.
const TABLES: &str = "
CREATE TABLE single (id integer PRIMARY KEY, code integer UNIQUE DEFERRABLE);
CREATE TABLE whole (id integer PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE whole1 PARTITION OF whole FOR VALUES FROM (0) TO (100);
CREATE TABLE part (id integer) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100);
ALTER TABLE part1 ADD UNIQUE (id);
CREATE TABLE child (id integer PRIMARY KEY, single integer REFERENCES single);
CREATE TABLE parent (id integer PRIMARY KEY);
CREATE TABLE keyless (id integer);
CREATE TABLE off (id integer PRIMARY KEY);
SELECT ttl.enable(t, 3600) FROM unnest('{single,whole,part,child,parent,keyless,off}'::regclass[]) AS t;
SELECT ttl.disable('off');
CREATE TABLE heir (UNIQUE (id)) INHERITS (parent);
INSERT INTO single SELECT n, n FROM generate_series(1, 50) AS n;
INSERT INTO child SELECT n, n FROM generate_series(1, 50) AS n;
INSERT INTO whole SELECT generate_series(1, 50);
INSERT INTO part SELECT generate_series(1, 50);
";

/// Where the trigger is, whether it fires always, and its comment.
fn triggers(database: &Database<'_>) -> Vec<String> {
    database.connect().column(
        "SELECT tgrelid::regclass, tgenabled, tgparentid <> 0, pg_get_triggerdef(oid),
                obj_description(oid, 'pg_trigger')
           FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgrelid::regclass::text",
    )
}

/// Problems, without those of a restored table and of deletion being off.
fn problems(database: &Database<'_>) -> Vec<String> {
    database.connect().column(
        "SELECT relation, problem FROM ttl.tables, unnest(problems) AS problem
          WHERE problem NOT LIKE 'nothing is deleted%' AND problem NOT LIKE 'deletion is off%' AND relation::text <> 'off'",
    )
}

fn source(name: &str) -> (Database<'static>, Vec<String>) {
    let database = server().database(name);
    database.connect().run(TABLES);
    let there = triggers(&database);
    assert_eq!(there.len(), 7, "{there:#?}");
    (database, there)
}

fn dump(database: &Database<'_>, arguments: &[&str]) -> PathBuf {
    let path = server().dir().join(format!("{}.dump", database.name));
    let mut dump = database.tool("pg_dump");
    dump.args(arguments).arg("-f").arg(&path);
    server().must_run(&mut dump);
    path
}

fn psql(database: &Database<'_>, file: &PathBuf) {
    let mut psql = database.tool("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]);
    server().must_run(psql.arg(file));
}

/// Whether `--clean` of these programs restores a plain table with an indexed partition: those of
/// 16.2 drop the partition's index by itself, which the server refuses.
fn cleans_partitions() -> bool {
    let database = server().plain_database("probe");
    database.connect().run(
        "CREATE TABLE plain (id integer) PARTITION BY RANGE (id);
         CREATE TABLE plain1 PARTITION OF plain FOR VALUES FROM (0) TO (100);
         CREATE INDEX ON plain (id)",
    );
    let file = dump(&database, &["-Fc"]);
    let mut restore = database.tool("pg_restore");
    restore.args(["--exit-on-error", "--clean", "-d", &database.name]);
    let restored = restore.arg(&file).output().expect("pg_restore runs");
    restored.status.success()
}

fn pg_restore(database: &Database<'_>, arguments: &[&str], file: &PathBuf) {
    let mut restore = database.tool("pg_restore");
    restore.args(["--exit-on-error", "-d", &database.name]);
    server().must_run(restore.args(arguments).arg(file));
}

#[test]
fn a_script_restores_it() {
    let (database, before) = source("script_a");
    let file = dump(&database, &[]);
    let target = server().plain_database("script_b");
    psql(&target, &file);
    assert_eq!(triggers(&target), before);
    assert!(problems(&target).is_empty());
    // Nor does ttl.resume make a second one.
    let mut session = target.connect();
    session.run("SELECT ttl.resume('single'), ttl.resume('whole'), ttl.resume('part')");
    assert_eq!(triggers(&target), before);
}

/// The trigger may come before the keys then.
#[test]
fn a_parallel_restore_brings_it_once() {
    let (database, before) = source("parallel_a");
    let file = dump(&database, &["-Fc"]);
    for (name, options) in [
        ("parallel_b", &["-j2"][..]),
        ("parallel_c", &["-j4", "--no-security-labels"]),
    ] {
        let target = server().plain_database(name);
        pg_restore(&target, options, &file);
        assert_eq!(triggers(&target), before, "{options:?}");
    }
}

/// Rows that are loaded between definitions and keys, by sections.
#[test]
fn sections_restore_it() {
    let (database, before) = source("sections_a");
    let file = dump(&database, &["-Fc"]);
    let target = server().plain_database("sections_b");
    for section in ["pre-data", "data"] {
        pg_restore(&target, &["--section", section], &file);
        assert!(triggers(&target).is_empty(), "{section}");
    }
    // Neither a change of default by an application nor a key created before it creates the trigger
    // that the dump will bring.
    target.connect().run(
        "SELECT ttl.set_default('single', 7200), ttl.set_default('part', 7200);
         ALTER TABLE child ADD CONSTRAINT early UNIQUE (id)",
    );
    pg_restore(&target, &["--section", "post-data"], &file);
    assert_eq!(triggers(&target), before);
}

/// A dump made before the trigger existed.
#[test]
fn resume_makes_up_for_a_dump_without_it() {
    let (database, before) = source("older_a");
    let file = dump(&database, &["-Fc"]);
    let target = server().plain_database("older_b");
    let list = server().dir().join("older.list");
    let mut entries = target.tool("pg_restore");
    let listed = server().must_run(entries.arg("-l").arg(&file));
    let kept: Vec<String> = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .filter(|line| !line.contains("~ttl_free_expired_keys"))
        .map(str::to_owned)
        .collect();
    std::fs::write(&list, kept.join("\n")).expect("the list");
    let list = list.to_string_lossy();
    pg_restore(&target, &["-L", &list], &file);
    assert!(triggers(&target).is_empty());
    let told = problems(&target).join("\n");
    for table in ["single", "whole", "part1", "child", "parent", "heir"] {
        let expected = format!("\"~ttl_free_expired_keys\" of public.{table} is missing");
        assert!(told.contains(&expected), "{table}: {told}");
    }
    assert!(!told.contains("whole1"), "{told}");
    target.connect().run(
        "SELECT ttl.resume(t) FROM unnest('{single,whole,part,child,parent,keyless}'::regclass[]) AS t",
    );
    assert_eq!(triggers(&target), before);
    assert!(problems(&target).is_empty());
}

/// `--data-only --disable-triggers` leaves the trigger enabled ALWAYS, during the load and
/// afterwards.
#[test]
fn rows_alone() {
    let (database, before) = source("rows_a");
    for options in [
        &["--data-only"][..],
        &["--data-only", "--disable-triggers"],
        &["--data-only", "--disable-triggers", "--inserts"],
    ] {
        let file = dump(&database, options);
        database
            .connect()
            .run("TRUNCATE single, child, whole, part, parent, off");
        psql(&database, &file);
        assert_eq!(triggers(&database), before, "{options:?}");
        let counts = "SELECT (SELECT count(*) FROM single), (SELECT count(*) FROM part)";
        assert_eq!(database.connect().column(counts), ["50|50"]);
    }
}

/// `--clean` first drops what TTL needs.
#[test]
fn over_the_same_tables() {
    let (database, before) = source("clean");
    // PostgreSQL's own DROP of a partition's part of a key fails.
    database.connect().run("DROP TABLE whole");
    let mut dropped = vec!["whole"];
    if !cleans_partitions() {
        database.connect().run("DROP TABLE part");
        dropped.push("part");
    }
    let before: Vec<String> = before
        .into_iter()
        .filter(|trigger| !dropped.iter().any(|table| trigger.starts_with(table)))
        .collect();
    let file = dump(&database, &["-Fc"]);
    for _ in 0..2 {
        pg_restore(&database, &["--clean"], &file);
        assert_eq!(triggers(&database), before);
    }
    pg_restore(&database, &["--clean", "--if-exists", "-1"], &file);
    assert_eq!(triggers(&database), before);
    assert!(problems(&database).is_empty());
}

/// After DROP EXTENSION CASCADE the trigger is missing, which `problems` shows; turning TTL on
/// again creates it.
#[test]
fn after_the_extension_was_dropped() {
    let (database, before) = source("dropped");
    let mut session = database.connect();
    let error = session.error("DROP EXTENSION ttl_ext");
    let detail = error.detail().unwrap_or_default().to_owned();
    assert!(
        detail.contains("trigger ~ttl_free_expired_keys on table single"),
        "{detail}"
    );
    session.run("DROP EXTENSION ttl_ext CASCADE");
    assert!(triggers(&database).is_empty());
    // Without the extension nothing updates labels.
    session.run("CREATE UNIQUE INDEX ON keyless (id); DROP INDEX keyless_id_idx");
    session.run("CREATE EXTENSION ttl_ext");
    let told = problems(&database).join("\n");
    assert!(
        told.contains("SELECT ttl.resume('public.single') creates it"),
        "{told}"
    );
    session.run(
        "SELECT ttl.enable(t, 3600) FROM unnest('{single,whole,part,child,parent,keyless}'::regclass[]) AS t",
    );
    assert_eq!(triggers(&database), before);
    // Writes did not count meanwhile, so that deletion waits.
    assert!(
        problems(&database)
            .iter()
            .all(|it| it.contains("ttl.resume"))
    );
    session.run("SELECT ttl.resume_restored()");
    assert!(problems(&database).is_empty());
}
