//! Replication in both directions: what a worker deletes stays on its side, if that is asked for.

use ttl_ext_e2e::{PATIENCE, Server};

/// A subscriber that has not received a refresh would delete the publisher's live row otherwise.
#[test]
fn deletions_can_be_left_out() {
    let publisher = Server::start(&[
        ("wal_level", "logical"),
        ("ttl.naptime", "1s"),
        ("ttl.replicate_deletions", "off"),
    ]);
    if publisher.major() < 16 {
        println!("SKIPPED test: origins::deletions_can_be_left_out: since PostgreSQL 16");
        return;
    }
    let subscriber = Server::start(&[]);
    let (source, target) = (publisher.database("app"), subscriber.plain_database("app"));
    let (mut writer, mut reader) = (source.disk(), target.connect());
    writer.run(
        "CREATE TABLE t (id integer PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
         SELECT ttl.enable('t', 3600); CREATE PUBLICATION p FOR TABLE t",
    );
    reader.run("CREATE TABLE t (id integer PRIMARY KEY, _ts timestamptz, ttl integer)");
    reader.run(&format!(
        "CREATE SUBSCRIPTION s CONNECTION '{}' PUBLICATION p WITH (origin = none)",
        publisher.conninfo("app")
    ));
    let ids = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM t";
    writer.run("INSERT INTO t (id, ttl) VALUES (1, NULL), (2, 1)");
    reader.wait_until(ids, "1 2", PATIENCE);
    publisher.reload(&[("ttl.enabled", "on")]);
    writer.wait_until(ids, "1", PATIENCE);
    // What comes after the deletion in the stream.
    writer.run("INSERT INTO t (id) VALUES (3)");
    reader.wait_until(ids, "1 2 3", PATIENCE);
    // A session's own deletions are replicated.
    writer.run("DELETE FROM t WHERE id = 3");
    reader.wait_until(ids, "1 2", PATIENCE);

    // By default, the workers' are, too.
    publisher.reload(&[("ttl.enabled", "off"), ("ttl.replicate_deletions", "on")]);
    writer.run("INSERT INTO t (id, ttl) VALUES (4, 1)");
    reader.wait_until(ids, "1 2 4", PATIENCE);
    publisher.reload(&[("ttl.enabled", "on")]);
    writer.wait_until(ids, "1", PATIENCE);
    reader.wait_until(ids, "1 2", PATIENCE);
    reader.run("DROP SUBSCRIPTION s");
}
