//! C11, `index => 'auto'`: a table that is small enough is read; one that has outgrown that gets its index.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, SqlState};

/// From eight blocks on a table has an index. No routine look: what comes due is known.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        Server::start_sweeping(&[("ttl.auto_index_min_size", "64kB"), ("ttl.naptime", "1d")])
    })
}

const STATE: &str = "SELECT index_state FROM ttl.tables WHERE relation = 't'::regclass";
const BUILT: &str = "SELECT string_agg(indexrelid::regclass::text, ',' ORDER BY indexrelid::regclass::text)
                       FROM pg_index WHERE indrelid IN (SELECT oid FROM pg_class WHERE relname LIKE 't%' AND relnamespace = 'public'::regnamespace)
                        AND indisvalid AND NOT indisprimary";

fn table(database: &Database<'_>) -> Session {
    let mut session = database.disk();
    session.run(
        "CREATE TABLE t (id integer PRIMARY KEY, filling text);
         SELECT ttl.enable('t', 3600)",
    );
    session
}

/// Rows from..to, of which one expires in a second: then the table is read.
fn fill(session: &mut Session, from: i32, to: i32) {
    session.run(&format!(
        "INSERT INTO t (id, filling, ttl)
         SELECT n, repeat('x', 100), CASE WHEN n = {from} THEN 1 END FROM generate_series({from}, {to}) AS n"
    ));
}

#[test]
fn a_table_that_grows() {
    let database = server().database("outgrown");
    let mut session = table(&database);
    assert_eq!(session.value(STATE), "not needed");
    fill(&mut session, 1, 100);
    session.wait_until("SELECT count(*) FROM t", "99", PATIENCE);
    assert_eq!(session.value(STATE), "not needed");
    assert_eq!(session.value(BUILT), "∅");
    fill(&mut session, 101, 2000);
    session.wait_until(STATE, "ready", PATIENCE);
    assert_eq!(session.value(BUILT), "t_ttl_ext_idx");
    let noted = "SELECT ttl_internal.policy('t') -> 'added' ->> 'indexes', ttl_internal.policy('t') ->> 'index'";
    assert_eq!(session.rows(noted), [["[\"t_ttl_ext_idx\"]", "auto"]]);
    session.wait_until("SELECT count(*) FROM t", "1998", PATIENCE);
    let refused = session.error("DROP INDEX t_ttl_ext_idx");
    assert_eq!(*refused.code(), SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
    // Small again, it keeps the index, which its owner may drop.
    session.run("TRUNCATE t");
    fill(&mut session, 1, 100);
    session.wait_until("SELECT count(*) FROM t", "99", PATIENCE);
    assert_eq!(session.value(STATE), "ready");
    session.run("DROP INDEX t_ttl_ext_idx");
    assert_eq!(session.value(STATE), "not needed");
}

/// Each partition is small, and together they are not. Their owner cannot log in.
#[test]
fn partitions_together() {
    let database = server().database("outgrown_partitions");
    let mut session = database.disk();
    session.run(
        "CREATE ROLE outgrown_owner NOLOGIN; GRANT ALL ON SCHEMA public TO outgrown_owner;
         SET SESSION AUTHORIZATION outgrown_owner;
         CREATE TABLE t (id integer PRIMARY KEY, filling text) PARTITION BY RANGE (id);
         CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (301);
         CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (301) TO (601);
         CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (601) TO (901);
         SELECT ttl.enable('t', 3600); RESET SESSION AUTHORIZATION",
    );
    fill(&mut session, 1, 300);
    session.wait_until("SELECT count(*) FROM t", "299", PATIENCE);
    assert_eq!(session.value(BUILT), "∅");
    fill(&mut session, 301, 600);
    fill(&mut session, 601, 900);
    session.wait_until(STATE, "ready", PATIENCE);
    assert_eq!(
        session.value(BUILT),
        "t1_ttl_ext_idx,t2_ttl_ext_idx,t3_ttl_ext_idx,t_ttl_ext_idx"
    );
    session.wait_until("SELECT count(*) FROM t", "897", PATIENCE);
}

/// What a builder that was ended has left is dropped, also where no index is needed any more.
#[test]
fn what_is_left_of_a_build() {
    let database = server().database("outgrown_left");
    let mut session = table(&database);
    let mut holder = database.connect();
    holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    fill(&mut session, 1, 2000);
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE backend_type = 'ttl_ext index builder' AND wait_event = 'virtualxid'
                      AND datname = current_database()";
    session.wait_until(waiting, "1", PATIENCE);
    assert_eq!(session.value(STATE), "building");
    // It is read meanwhile.
    session.wait_until("SELECT count(*) FROM t", "1999", PATIENCE);
    session.run("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE backend_type = 'ttl_ext index builder' AND datname = current_database()");
    session.run("DELETE FROM t WHERE id > 50");
    holder.run("COMMIT");
    session.run("VACUUM (TRUNCATE) t");
    fill(&mut session, 3001, 3010);
    let left = "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisprimary AND NOT indisvalid";
    session.wait_until(left, "0", PATIENCE);
}

/// A table that is large when TTL is turned on has its index at once, or in the background if that is asked for.
#[test]
fn a_large_table() {
    let database = server().database("outgrown_large");
    let mut session = database.disk();
    let create = "CREATE TABLE t AS SELECT n AS id, repeat('x', 100) AS filling FROM generate_series(1, 2000) AS n";
    session.run(create);
    session.run("SELECT ttl.enable('t', 3600)");
    assert_eq!(session.value(BUILT), "t_expiry_key_idx");
    session.run("DROP TABLE t");
    session.run(create);
    session.run("BEGIN; SELECT ttl.enable('t', 3600, concurrently => true)");
    assert_eq!(session.value(STATE), "waiting");
    assert_eq!(session.value(BUILT), "∅");
    session.run("COMMIT");
    session.wait_until(STATE, "ready", PATIENCE);
    session.run("SELECT ttl.disable('t', drop_columns => true)");
    assert_eq!(session.value(BUILT), "∅");
}

/// A table that inherits has no part in its parent's index, and calls no builder.
#[test]
fn a_table_that_inherits() {
    let database = server().database("outgrown_child");
    let mut session = table(&database);
    session.run("CREATE TABLE child () INHERITS (t)");
    session.run(
        "INSERT INTO child (id, filling, ttl)
         SELECT n, repeat('x', 100), CASE WHEN n < 100 THEN 1 END FROM generate_series(1, 2000) AS n",
    );
    session.wait_until("SELECT count(*) FROM child", "1901", PATIENCE);
    assert_eq!(session.value(STATE), "not needed");
    assert_eq!(session.value(BUILT), "∅");
}

/// Without writes a table is not read until its next row expires, and then at once, whatever the naptime.
#[test]
fn what_expires_next_is_known() {
    let database = server().database("outgrown_next");
    let mut session = table(&database);
    session.run(
        "INSERT INTO t (id, ttl) VALUES (1, 1), (2, 6), (3, NULL);
         INSERT INTO t (id) SELECT generate_series(10, 20)",
    );
    session.wait_until("SELECT count(*) FROM t", "13", PATIENCE);
    let next = "SELECT next_expiry = (SELECT _ts + interval '6 seconds' FROM t WHERE id = 2) FROM ttl.tables WHERE relation = 't'::regclass";
    session.wait_until(next, "t", PATIENCE);
    session.wait_until("SELECT count(*) FROM t", "12", PATIENCE);
    let next = "SELECT next_expiry = (SELECT min(_ts) + interval '1 hour' FROM t) FROM ttl.tables WHERE relation = 't'::regclass";
    session.wait_until(next, "t", PATIENCE);
}
