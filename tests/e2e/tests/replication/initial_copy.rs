//! C36: a subscription's initial copy has every row as it is on disk, so that no live row is lost
//! whose UPDATE comes after it.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, until};

const TABLE: &str = "CREATE TABLE t (id integer PRIMARY KEY, what text,
    _ts timestamptz NOT NULL DEFAULT now(), ttl integer)";

const ROWS: &str = "SELECT id, what, _ts, ttl FROM t ORDER BY id";

const IDS: &str = "SELECT id FROM t ORDER BY id";

/// A row that is live, and one that has expired and is on disk.
const LIVE_AND_EXPIRED: &str =
    "INSERT INTO t VALUES (1, 'live', now() - interval '10 minutes', NULL),
    (2, 'expired', now() - interval '2 hours', NULL)";

fn publisher() -> Server {
    Server::start(&[("wal_level", "logical")])
}

/// A session that sees the disk, where a table with TTL has these rows.
fn fill(database: &Database<'_>, rows: &str) -> Session {
    let mut disk = database.disk();
    disk.run(&format!("{TABLE}; SELECT ttl.enable('t', 3600)"));
    if !rows.is_empty() {
        disk.run_preserving(rows);
    }
    disk
}

/// Subscribes, and waits until the initial copy is there and the stream has begun.
fn subscribe(target: &mut Session, publisher: &Server, publication: &str) {
    target.run(&format!(
        "CREATE SUBSCRIPTION s CONNECTION '{}' PUBLICATION {publication}",
        publisher.conninfo("app")
    ));
    let ready = "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel";
    target.wait_until(ready, "t", PATIENCE);
}

/// Waits until the subscriber has what the publisher has on disk.
fn catch_up(publisher: &mut Session, subscriber: &mut Session) {
    let expected = publisher.column(ROWS);
    until(&format!("{expected:#?}"), PATIENCE, || {
        (subscriber.column(ROWS) == expected).then_some(())
    });
}

/// The row has expired before the copy, but for a transaction that began before that, as REPEATABLE
/// READ goes by its start. What that one writes comes after the copy, by an UPDATE.
#[test]
fn a_transaction_under_way_refreshes_a_row() {
    let publisher = publisher();
    let subscriber = Server::start(&[]);
    let (source, target) = (publisher.database("app"), subscriber.database("app"));
    let (mut disk, mut writer) = (fill(&source, LIVE_AND_EXPIRED), source.connect());
    disk.run("CREATE PUBLICATION p FOR TABLE t");
    let mut copy = fill(&target, "");

    let row = "SELECT what FROM t WHERE id = 3";
    writer.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    disk.run_preserving("INSERT INTO t VALUES (3, 'short', now() - interval '1 minute', 60)");
    assert_eq!(writer.column(row), ["short"]);
    assert!(source.connect().column(row).is_empty());
    subscribe(&mut copy, &publisher, "p");
    writer.run("UPDATE t SET what = 'refreshed', ttl = NULL WHERE id = 3; COMMIT");
    assert_eq!(source.connect().column(row), ["refreshed"]);
    catch_up(&mut disk, &mut copy);
    let mut reader = target.connect();
    assert_eq!(reader.column(row), ["refreshed"]);

    // What had expired came as old as it was: hidden, and deleted with the publisher's.
    assert_eq!(copy.column(IDS), ["1", "2", "3"]);
    assert_eq!(reader.column(IDS), ["1", "3"]);
    disk.run("SELECT ttl.purge('t')");
    catch_up(&mut disk, &mut copy);
    assert_eq!(copy.column(IDS), ["1", "3"]);
    copy.run("DROP SUBSCRIPTION s");
}

/// Expired rows that the publisher brings back after the copy, at a subscriber that does not have
/// the extension: there they are seen until the publisher deletes them.
#[test]
fn rows_that_are_brought_back_are_there() {
    let publisher = publisher();
    let subscriber = Server::start(&[]);
    let (source, target) = (publisher.database("app"), subscriber.plain_database("app"));
    let mut disk = fill(&source, LIVE_AND_EXPIRED);
    disk.run_preserving("INSERT INTO t VALUES (3, 'expired', now() - interval '3 hours', NULL)");
    disk.run("CREATE PUBLICATION p FOR TABLE t");
    let mut copy = target.connect();
    copy.run(TABLE);
    subscribe(&mut copy, &publisher, "p");
    assert_eq!(copy.column(IDS), ["1", "2", "3"]);

    assert_eq!(disk.value("SELECT ttl.revive('t', 'id = 2')"), "1");
    catch_up(&mut disk, &mut copy);
    disk.run("SELECT ttl.purge('t')");
    catch_up(&mut disk, &mut copy);
    assert_eq!(copy.column(IDS), ["1", "2"]);
    copy.run("DROP SUBSCRIPTION s");
}

/// A subscriber that deletes by itself has the row for the UPDATE where it keeps what has expired.
#[test]
fn a_subscriber_that_deletes_keeps_what_may_be_refreshed() {
    let publisher = publisher();
    let subscriber = Server::start_sweeping(&[]);
    let (source, target) = (publisher.database("app"), subscriber.database("app"));
    let mut disk = fill(&source, LIVE_AND_EXPIRED);
    disk.run("CREATE PUBLICATION p FOR TABLE t");
    let mut copy = fill(&target, "");
    copy.run("SELECT ttl.set_option('t', 'keep_expired', '10800')");
    copy.run_preserving("INSERT INTO t VALUES (9, 'expired long ago', '2001-01-01', NULL)");
    subscribe(&mut copy, &publisher, "p");
    copy.wait_for_ids("t", "1 2");
    assert_eq!(disk.value("SELECT ttl.revive('t', 'id = 2')"), "1");
    catch_up(&mut disk, &mut copy);
    assert_eq!(target.connect().column(IDS), ["1", "2"]);
    copy.run("DROP SUBSCRIPTION s");
}

/// Each form of the copy: a table, columns of it, rows of it, partitions through their root, a
/// child, a table with row-level security.
#[test]
fn every_form_of_the_copy() {
    let publisher = publisher();
    let subscriber = Server::start(&[]);
    let (source, target) = (publisher.database("app"), subscriber.plain_database("app"));
    let (mut disk, mut copy) = (source.disk(), target.connect());
    let columns =
        "(id integer PRIMARY KEY, what text, _ts timestamptz NOT NULL DEFAULT now(), ttl integer)";
    let tables = [
        "plain", "columns", "rows", "root", "parent", "child", "secured",
    ];
    for table in tables {
        let form = match table {
            "root" => format!("{columns} PARTITION BY RANGE (id)"),
            "child" => "(PRIMARY KEY (id)) INHERITS (parent)".to_owned(),
            _ => columns.to_owned(),
        };
        disk.run(&format!("CREATE TABLE {table} {form}"));
        copy.run(&format!("CREATE TABLE {table} {columns}"));
        if table != "child" {
            disk.run(&format!("SELECT ttl.enable('{table}', 3600)"));
        }
    }
    disk.run(
        "CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (2);
         CREATE TABLE high PARTITION OF root FOR VALUES FROM (2) TO (10);
         ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
         CREATE POLICY below ON secured USING (id < 3)",
    );
    for table in tables {
        disk.run_preserving(&format!(
            "INSERT INTO {table} VALUES (1, 'live', now(), NULL), (2, 'expired', now() - interval '1 day', NULL),
                (3, 'expired', now() - interval '1 day', NULL)"
        ));
    }
    disk.run(
        "CREATE PUBLICATION p FOR TABLE plain, columns (id, _ts, ttl), rows WHERE (id <> 3), root, parent, secured
            WITH (publish_via_partition_root = true);
         CREATE ROLE copier LOGIN REPLICATION;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO copier",
    );
    let conninfo = publisher.conninfo("app").replace("postgres", "copier");
    copy.run(&format!(
        "CREATE SUBSCRIPTION s CONNECTION '{conninfo}' PUBLICATION p"
    ));
    let ready = "SELECT count(*) FILTER (WHERE srsubstate = 'r') FROM pg_subscription_rel";
    copy.wait_until(ready, &tables.len().to_string(), PATIENCE);
    for table in tables {
        let ids = copy.value(&format!(
            "SELECT string_agg(id::text, ' ' ORDER BY id) FROM {table}"
        ));
        let expected = match table {
            "rows" | "secured" => "1 2",
            _ => "1 2 3",
        };
        assert_eq!(ids, expected, "{table}");
    }
    copy.run("DROP SUBSCRIPTION s");
}

/// Nothing else sees expired rows in a replication connection, and COPY in no other.
#[test]
fn only_the_copy_of_a_replication_connection() {
    let publisher = publisher();
    let source = publisher.database("app");
    let mut disk = fill(&source, LIVE_AND_EXPIRED);
    disk.run(
        "CREATE VIEW v AS SELECT * FROM t;
         CREATE FUNCTION ids() RETURNS text LANGUAGE plpgsql AS
            $$ BEGIN RETURN (SELECT string_agg(id::text, ' ') FROM t); END $$;
         CREATE TABLE secret (LIKE t);
         CREATE ROLE copier LOGIN REPLICATION; GRANT SELECT, UPDATE, DELETE ON t, v TO copier",
    );
    let psql = |connection: &str, sql: &str| {
        let mut command = source.tool("psql");
        command
            .args(["-XAtq", "-d"])
            .arg(format!("dbname=app user=copier {connection}"));
        let output = command.args(["-c", sql]).output().expect("psql");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).trim().replace('\n', " ")
    };
    let replication = |sql: &str| psql("replication=database", sql);
    for (sql, by_replication) in [
        ("COPY t (id) TO STDOUT", "1 2"),
        ("COPY (SELECT id FROM t ORDER BY id) TO STDOUT", "1 2"),
        (
            "COPY (SELECT a.id FROM t AS a JOIN t AS b USING (id) ORDER BY 1) TO STDOUT",
            "1 2",
        ),
        ("COPY (SELECT id FROM v ORDER BY id) TO STDOUT", "1"),
        ("COPY (SELECT ids()) TO STDOUT", "1"),
        ("COPY (UPDATE t SET what = '' RETURNING id) TO STDOUT", "1"),
        (
            "COPY (WITH u AS (DELETE FROM t WHERE id = 2 RETURNING id) SELECT id FROM u) TO STDOUT",
            "",
        ),
        ("SELECT id FROM t ORDER BY id", "1"),
        ("SELECT ids()", "1"),
        ("UPDATE t SET what = '' WHERE id = 2 RETURNING id", ""),
    ] {
        assert_eq!(replication(sql), by_replication, "{sql}");
        assert_eq!(psql("", sql), by_replication.replace("1 2", "1"), "{sql}");
    }
    // One after the other in one message.
    assert_eq!(
        replication("COPY (SELECT id FROM t ORDER BY id) TO STDOUT; SELECT id FROM t"),
        "1 2 1"
    );
    let refused = replication("COPY secret TO STDOUT");
    assert!(refused.contains("permission denied"), "{refused}");
    assert_eq!(disk.column(IDS), ["1", "2"]);
}

/// A subscriber that deletes by itself waits for `ttl.resume` if the copy has brought rows that it would
/// delete at once; not otherwise.
#[test]
fn what_the_copy_brings_waits() {
    let publisher = publisher();
    let subscriber = Server::start_sweeping(&[]);
    let (source, target) = (publisher.database("app"), subscriber.database("app"));
    let mut disk = fill(&source, LIVE_AND_EXPIRED);
    disk.run("CREATE TABLE live (id integer PRIMARY KEY); SELECT ttl.enable('live', 3600); INSERT INTO live VALUES (1)");
    disk.run("CREATE PUBLICATION p FOR TABLE t, live");
    let mut copy = fill(&target, "");
    copy.run("CREATE TABLE live (id integer PRIMARY KEY); SELECT ttl.enable('live', 3600)");
    subscribe(&mut copy, &publisher, "p");
    copy.insert_expired("live", 2, 3);
    copy.wait_for_ids("live", "1");
    copy.look_again("live");
    assert_eq!(copy.column(IDS), ["1", "2"]);
    assert_eq!(copy.column("SELECT ttl.resume_restored()"), ["t"]);
    copy.wait_for_ids("t", "1");
    copy.run("DROP SUBSCRIPTION s");
}
