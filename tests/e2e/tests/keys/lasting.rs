//! C6: the key of an expired row is free beyond a single session: two-phase commit, crashes,
//! replication roles, restored rows. Single statements are tested in
//! `tests/pg_regress/sql/free_keys*.sql`.

use std::path::PathBuf;

use ttl_ext_e2e::{Database, Server, Session, SqlState, Stop};

/// Expired rows of `plain` are removed directly; those of `parent` by SQL, because of foreign keys.
/// In both, 1 and 2 are expired and 3 is live.
const TABLES: &str = "
CREATE TABLE plain (id integer PRIMARY KEY, code text UNIQUE, what text);
CREATE TABLE parent (id integer PRIMARY KEY, code text UNIQUE, what text);
CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES parent ON DELETE CASCADE);
SELECT ttl.enable('plain', 3600), ttl.enable('parent', 3600);
INSERT INTO plain VALUES (3, 'c', 'live');
INSERT INTO parent VALUES (3, 'c', 'live'), (2, 'b', 'expired');
INSERT INTO child VALUES (20, 2), (30, 3)";
const EXPIRED: &str = "
INSERT INTO plain (id, code, what, _ts)
    VALUES (1, 'a', 'expired', now() - interval '1 day'), (2, 'b', 'expired', now() - interval '1 day');
INSERT INTO parent (id, code, what, _ts) VALUES (1, 'a', 'expired', now() - interval '1 day');
UPDATE parent SET _ts = now() - interval '1 day' WHERE id = 2";
const BEFORE: &str = "1 a expired, 2 b expired, 3 c live";

const BOTH: [&str; 2] = ["plain", "parent"];

fn filled<'a>(server: &'a Server, name: &str) -> Database<'a> {
    let database = server.database(name);
    let mut session = database.connect();
    session.run(TABLES);
    session.run_preserving(EXPIRED);
    database
}

/// One new row with the keys of both expired rows.
fn take_over(table: &str) -> String {
    format!("INSERT INTO {table} VALUES (1, 'b', 'new')")
}
const AFTER: &str = "1 b new, 3 c live";

/// The rows that a session sees: the table and each of its indexes must agree.
#[track_caller]
fn rows(session: &mut Session, table: &str) -> String {
    let query = |order: &str| {
        format!(
            "SELECT coalesce(string_agg(concat_ws(' ', id, code, what), ', ' ORDER BY id), '')
               FROM (SELECT * FROM {table} WHERE {order} OFFSET 0) AS t"
        )
    };
    let mut scan = |settings: &str, order: &str| {
        session.run(&format!("SET enable_bitmapscan = off; {settings}"));
        let rows = session.value(&query(order));
        session.run(
            "RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_indexscan;
             RESET enable_indexonlyscan",
        );
        rows
    };
    let there = scan(
        "SET enable_indexscan = off; SET enable_indexonlyscan = off",
        "true",
    );
    for key in ["id > 0", "code > ''"] {
        assert_eq!(
            scan("SET enable_seqscan = off", key),
            there,
            "{table}: {key}"
        );
    }
    there
}

#[track_caller]
fn assert_rows(database: &Database<'_>, table: &str, on_disk: &str) {
    assert_eq!(rows(&mut database.disk(), table), on_disk, "{table}");
    let live: Vec<_> = on_disk
        .split(", ")
        .filter(|row| !row.ends_with("expired"))
        .collect();
    assert_eq!(rows(&mut database.connect(), table), live.join(", "));
}

/// Children go with their parent, and come back with it.
#[track_caller]
fn assert_children(database: &Database<'_>, expected: &[&str]) {
    let mut disk = database.disk();
    assert_eq!(disk.column("SELECT id FROM child ORDER BY id"), expected);
}

/// A transaction that has taken the keys of expired rows can be prepared, survives
/// a crash, and ends either way.
#[test]
fn two_phase_commit() {
    let server = Server::start(&[("max_prepared_transactions", "10")]);
    filled(&server, "app");
    let prepare = || {
        let database = server.existing_database("app");
        for table in BOTH {
            let statement = take_over(table);
            database.connect().run(&format!(
                "BEGIN; {statement}; PREPARE TRANSACTION '{table}'"
            ));
        }
    };
    // Until it ends nobody sees the new row, and sessions that insert its key wait.
    let undecided = || {
        let database = server.existing_database("app");
        let mut session = database.connect();
        session.run("SET lock_timeout = '100ms'");
        for table in BOTH {
            assert_rows(&database, table, BEFORE);
            for row in ["1, 'x'", "2, 'x'", "4, 'a'", "4, 'b'"] {
                let insert = format!("INSERT INTO {table} VALUES ({row})");
                let error = session.error(&insert);
                assert_eq!(*error.code(), SqlState::LOCK_NOT_AVAILABLE, "{insert}");
            }
        }
    };
    let end = |how: &str| {
        let mut session = server.connect("app", "postgres");
        for table in BOTH {
            session.run(&format!("{how} PREPARED '{table}'"));
        }
    };
    let database = server.existing_database("app");

    prepare();
    undecided();
    end("ROLLBACK");
    for table in BOTH {
        assert_rows(&database, table, BEFORE);
    }
    assert_children(&database, &["20", "30"]);

    prepare();
    server.stop(Stop::Immediate);
    server.launch();
    undecided();
    end("ROLLBACK");
    for table in BOTH {
        assert_rows(&database, table, BEFORE);
    }
    assert_children(&database, &["20", "30"]);

    prepare();
    server.stop(Stop::Immediate);
    server.launch();
    undecided();
    end("COMMIT");
    for table in BOTH {
        assert_rows(&database, table, AFTER);
    }
    assert_children(&database, &["30"]);
}

/// After a crash committed work is there and the rest is not: those keys are free again.
#[test]
fn crashes() {
    let server = Server::start(&[]);
    let database = filled(&server, "app");
    let mut session = database.connect();
    session.run("CREATE TABLE many (id integer PRIMARY KEY); SELECT ttl.enable('many', 3600)");
    session.insert_expired("many", 1, 3000);
    let numbers =
        |from: i32, to: i32| -> String { (from..=to).map(|n| format!("{n}\n")).collect() };
    session.run("CHECKPOINT; BEGIN");
    for table in BOTH {
        session.run(&take_over(table));
    }
    let copied = session.copy_in("COPY many (id) FROM STDIN", &numbers(1, 2000));
    assert_eq!(copied.expect("COPY"), 2000);
    // The WAL of it all is on disk, and the transaction has not ended.
    let mut other = database.connect();
    other.run("SET synchronous_commit = on; CREATE TABLE marker ()");
    server.stop(Stop::Immediate);
    server.launch();
    for table in BOTH {
        assert_rows(&database, table, BEFORE);
    }
    assert_children(&database, &["20", "30"]);
    let mut disk = database.disk();
    assert_eq!(disk.count("many"), 3000);
    assert_eq!(database.connect().value("SELECT count(*) FROM many"), "0");

    let mut session = database.connect();
    for table in BOTH {
        session.run(&take_over(table));
    }
    // Rows removed one by one, and rows removed before the first insert.
    let copied = session.copy_in("COPY many (id) FROM STDIN", &numbers(1, 2500));
    assert_eq!(copied.expect("COPY"), 2500);
    let copied = session.copy_in("COPY many (id) FROM STDIN", &numbers(2501, 2600));
    assert_eq!(copied.expect("COPY"), 100);
    server.stop(Stop::Immediate);
    server.launch();
    for table in BOTH {
        assert_rows(&database, table, AFTER);
    }
    assert_children(&database, &["30"]);
    let mut session = database.connect();
    for scan in ["enable_seqscan", "enable_indexonlyscan"] {
        session.run(&format!("SET {scan} = off"));
        assert_eq!(
            session.value("SELECT count(*), count(DISTINCT id) FROM many WHERE id > 0"),
            "2600|2600"
        );
        session.run(&format!("RESET {scan}"));
    }
}

/// The replication role of a session does not matter to keys.
#[test]
fn replication_roles() {
    let server = Server::start(&[]);
    for role in ["origin", "local", "replica"] {
        let statements = [
            "INSERT INTO {t} VALUES (1, 'b', 'new')",
            "INSERT INTO {t} VALUES (1, 'b', 'new') ON CONFLICT (id) DO UPDATE SET what = 'old'",
            "UPDATE {t} SET id = 1, code = 'b', what = 'new' WHERE id = 3",
            "MERGE INTO {t} USING (VALUES (1, 'b', 'new')) AS s (i, c, w) ON id = i
                WHEN MATCHED THEN UPDATE SET what = 'old' WHEN NOT MATCHED THEN INSERT VALUES (i, c, w)",
            "COPY {t} (id, code, what) FROM STDIN",
        ];
        for (number, statement) in statements.into_iter().enumerate() {
            let database = filled(&server, &format!("{role}_{number}"));
            let mut session = database.connect();
            session.run(&format!("SET session_replication_role = {role}"));
            // A row of `child` refers to the one whose key is to change.
            session.run("DELETE FROM child WHERE parent = 3");
            for table in BOTH {
                let statement = statement.replace("{t}", table);
                if statement.starts_with("COPY") {
                    let copied = session.copy_in(&statement, "1\tb\tnew\n");
                    assert_eq!(copied.expect("COPY"), 1);
                } else {
                    session.run(&statement);
                }
                let moved = statement.starts_with("UPDATE");
                let expected = if moved { "1 b new" } else { AFTER };
                assert_rows(&database, table, expected);
            }
            // This server deletes the row itself, so foreign keys are enforced in all roles.
            assert_children(&database, &[]);
        }
    }
}

fn dump(database: &Database<'_>, arguments: &[&str]) -> PathBuf {
    let path = database
        .server()
        .dir()
        .join(format!("{}.dump", database.name));
    let mut dump = database.tool("pg_dump");
    dump.args(["-Fc", "--data-only"]).args(arguments);
    database.server().must_run(dump.arg("-f").arg(&path));
    path
}

/// A dump is restored whose rows have expired rows with the same keys, one of them an expired
/// parent that a live child keeps on disk.
#[test]
fn rows_alone_are_restored_over_expired_ones() {
    let server = Server::start(&[]);
    let contents = |session: &mut Session| {
        session.column(
            "SELECT 'parent', id, code, what, _ts, ttl FROM parent
             UNION ALL SELECT 'child', id, parent::text, '', _ts, ttl FROM child ORDER BY 1, 2",
        )
    };
    let triggers: &[&[&str]] = &[&[], &["--disable-triggers"]];
    let shapes: &[&[&str]] = &[&[], &["--inserts"], &["--rows-per-insert=3"]];
    for (number, (triggers, shape)) in triggers
        .iter()
        .flat_map(|triggers| shapes.iter().map(move |shape| (triggers, shape)))
        .enumerate()
    {
        let database = filled(&server, &format!("rows_{number}"));
        let mut session = database.connect();
        session.run("SELECT ttl.enable('child', 3600)");
        if triggers.is_empty() {
            // Its child could not be inserted while the parent is expired.
            session.run("DELETE FROM child WHERE parent = 2");
        }
        let mut disk = database.disk();
        let (there, seen) = (contents(&mut disk), contents(&mut session));
        assert_ne!(there.len(), seen.len());
        let file = dump(
            &database,
            &[*shape, &["-t", "parent", "-t", "child"]].concat(),
        );
        session.run_preserving(
            "UPDATE parent SET _ts = now() - interval '2 days', what = 'later';
             UPDATE child SET _ts = now() - interval '2 days'",
        );
        assert!(contents(&mut session).is_empty());
        let mut restore = database.tool("pg_restore");
        restore
            .args(["--exit-on-error", "--data-only", "-d", &database.name])
            .args(*triggers)
            .arg(&file);
        server.must_run(&mut restore);
        assert_eq!(contents(&mut disk), there, "{triggers:?} {shape:?}");
        assert_eq!(contents(&mut session), seen, "{triggers:?} {shape:?}");
    }
}
