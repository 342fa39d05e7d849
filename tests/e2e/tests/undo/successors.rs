//! C24, C8: of several policies above a row, the first of the topmost is in force. When it ends, another comes into force: rows that
//! this one expires are kept for `ttl.change_delay`. When one comes, rows that it would revive are deleted first.

use super::changed::{DELAY, found_and_left};
use ttl_ext_e2e::{PATIENCE, Server};

/// The kind of tables, of which `p` has the policy in force for `c`; the table that has the next one, by which row 1 is expired; and
/// how the first ends.
const ENDS: [(&str, &str, &str); 8] = [
    ("child_disabled", "c", "SELECT ttl.disable('p')"),
    (
        "child_index",
        "c",
        "SELECT ttl.expire_index('p_at_idx', NULL)",
    ),
    ("child_dropped", "c", "DROP INDEX p_at_idx"),
    (
        "child_label",
        "c",
        "SECURITY LABEL FOR ttl ON TABLE p IS NULL",
    ),
    ("child_leaves", "c", "ALTER TABLE c NO INHERIT p"),
    ("parent_disabled", "q", "SELECT ttl.disable('p')"),
    ("parent_leaves", "q", "ALTER TABLE c NO INHERIT p"),
    ("detached", "c", "ALTER TABLE p DETACH PARTITION c"),
];

fn tables(name: &str) -> &'static str {
    match name.split('_').next() {
        Some("child") => "CREATE TABLE p (id integer, at timestamptz); CREATE TABLE c () INHERITS (p);",
        Some("parent") => {
            "CREATE TABLE p (id integer, at timestamptz); CREATE TABLE q (id integer, at timestamptz);
             CREATE TABLE c () INHERITS (p, q);"
        }
        _ => "CREATE TABLE p (id integer, at timestamptz) PARTITION BY LIST (id); CREATE TABLE c (id integer, at timestamptz);",
    }
}

#[test]
fn c24_the_next_policy_waits() {
    let server = Server::start_sweeping(&[DELAY]);
    for (name, next, end) in ENDS {
        let database = server.database(name);
        let mut user = database.connect();
        let mut disk = database.disk();
        user.run(tables(name));
        user.run(&format!(
            "SELECT ttl.expire_after('{next}', 'at', 1); SELECT ttl.expire_after('p', 'at', '30 days')"
        ));
        if name == "detached" {
            user.run("ALTER TABLE p ATTACH PARTITION c DEFAULT");
        }
        user.run(
            "INSERT INTO c VALUES (1, now() - interval '1 hour'), (2, now() + interval '1 hour')",
        );
        assert_eq!(user.value("SELECT count(*) FROM c"), "2", "{name}");
        user.run(end);
        assert_eq!(user.value("SELECT id FROM c"), "2", "{name}");
        found_and_left(&mut disk, next, 1);
    }
}

/// A policy that comes above others, or before that of another parent.
#[test]
fn c8_a_policy_that_replaces_another_revives_nothing() {
    let server = Server::start_sweeping(&[]);
    for (name, next) in [("child", "c"), ("parent", "q")] {
        let database = server.database(name);
        let mut user = database.connect();
        user.run(tables(name));
        user.run(&format!(
            "SELECT ttl.expire_after('{next}', 'at', 1); SELECT ttl.pause('{next}');
             INSERT INTO c VALUES (1, now() - interval '1 hour'), (2, now() + interval '1 hour')"
        ));
        assert_eq!(user.value("SELECT id FROM c"), "2", "{name}");
        user.run("SELECT ttl.expire_after('p', 'at', '30 days')");
        assert_eq!(user.value("SELECT id FROM c"), "2", "{name}");
    }
}

/// A partition that DETACH CONCURRENTLY has begun to detach is found from below only.
#[test]
fn c24_the_policy_of_a_half_detached_partition_waits() {
    let server = Server::start_sweeping(&[DELAY]);
    let database = server.database("half");
    let mut user = database.connect();
    let mut disk = database.disk();
    user.run(
        "CREATE TABLE p (id integer, at timestamptz) PARTITION BY LIST (id); CREATE TABLE c (id integer, at timestamptz);
         SELECT ttl.expire_after('c', 'at', 1), ttl.expire_after('p', 'at', '30 days'); ALTER TABLE p ATTACH PARTITION c FOR VALUES IN (1, 2);
         INSERT INTO p VALUES (1, now() - interval '1 hour'), (2, now() + interval '1 hour')",
    );
    let mut reader = database.connect();
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM p");
    user.run("SET statement_timeout = '1s'");
    let error = user.error("ALTER TABLE p DETACH PARTITION c CONCURRENTLY");
    assert_eq!(error.code().code(), "57014", "{error:?}");
    user.run("RESET statement_timeout");
    reader.run("COMMIT");
    user.run("SELECT ttl.disable('p')");
    assert_eq!(user.value("SELECT id FROM c"), "2");
    found_and_left(&mut disk, "c", 1);
}

/// The next policy's table may be dropped meanwhile.
#[test]
fn c8_the_next_policy_may_be_gone() {
    let server = Server::start(&[]);
    let database = server.database("gone");
    let mut user = database.connect();
    user.run(tables("child"));
    user.run(
        "SELECT ttl.expire_after('c', 'at', 1); SELECT ttl.expire_after('p', 'at', '30 days')",
    );
    user.run("BEGIN; DROP TABLE c");
    let mut other = database.connect();
    let ends = std::thread::spawn(move || other.run("SELECT ttl.disable('p')"));
    let mut observer = database.connect();
    observer.wait_until(
        "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted",
        "t",
        PATIENCE,
    );
    user.run("COMMIT");
    ends.join().expect("the policy ends");
}
