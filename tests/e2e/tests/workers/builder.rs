//! C21: indexes are built in the background, concurrently, whatever comes between.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, until};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// A table with a thousand old rows, the odd ones expired by a default of an hour.
fn table(database: &Database<'_>) -> Session {
    let mut session = database.disk();
    session.run(
        "CREATE TABLE t (id integer PRIMARY KEY, _ts timestamptz NOT NULL);
         INSERT INTO t SELECT n, now() - n % 2 * interval '2 hours' FROM generate_series(1, 1000) AS n",
    );
    session
}

const ENABLE: &str = "SELECT ttl.enable('t', 3600, index => 'btree', concurrently => true)";
const STATE: &str = "SELECT index_state FROM ttl.tables WHERE relation = 't'::regclass";
const PROBLEMS: &str =
    "SELECT array_to_string(problems, '; ') FROM ttl.tables WHERE relation = 't'::regclass";
const INVALID: &str =
    "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisvalid";

/// A snapshot from before, for whose end CREATE INDEX CONCURRENTLY waits.
fn hold(database: &Database<'_>) -> Session {
    let mut holder = database.connect();
    holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    holder
}

/// The builder waits for the holder, with an index that is not valid yet.
fn wait_until_built_but_for(session: &mut Session) -> i32 {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE backend_type = 'ttl_ext index builder' AND wait_event = 'virtualxid'
                      AND datname = current_database()";
    session.wait_until(waiting, "1", PATIENCE);
    let name = session.value("SELECT current_database()");
    session.pids("ttl_ext index builder", Some(&name))[0]
}

/// One index for deletion, valid, noted in the label, and rows deleted by it.
fn is_ready(session: &mut Session, table: &str) {
    session.wait_until(STATE, "ready", PATIENCE);
    assert_eq!(session.value(PROBLEMS), "");
    session.wait_until(&format!("SELECT count(*) FROM {table}"), "500", PATIENCE);
    assert_eq!(session.value(INVALID), "0");
    let built = "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisprimary";
    assert_eq!(session.value(built), "1");
    let noted = "SELECT ttl_internal.policy('t') -> 'added' ->> 'indexes' =
                        (SELECT jsonb_build_array(indexrelid::regclass::text) FROM pg_index
                          WHERE indrelid = 't'::regclass AND NOT indisprimary)::text,
                        ttl_internal.policy('t') ? 'build_pending'";
    assert_eq!(session.rows(noted), [["t", "f"]]);
}

#[test]
fn while_others_work() {
    let database = server().database("builder_others");
    let mut session = table(&database);
    let mut holder = hold(&database);
    let file = session.value("SELECT pg_relation_filenode('t')");
    session.run("BEGIN");
    session.run(ENABLE);
    // In the caller's transaction the table is neither rewritten nor indexed.
    assert_eq!(session.value("SELECT pg_relation_filenode('t')"), file);
    let checked = "SELECT (SELECT convalidated FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c'),
                          (SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisprimary)";
    assert_eq!(session.rows(checked), [["f", "0"]]);
    session.run("COMMIT");
    wait_until_built_but_for(&mut session);
    assert_eq!(session.value(STATE), "building");
    let problem = session.value(PROBLEMS);
    assert!(
        problem.contains("deletion waits for one, which is being built"),
        "{problem}"
    );
    // Hidden from the first moment; nothing is deleted yet; users write.
    let mut user = database.connect();
    assert_eq!(user.value("SELECT count(*) FROM t"), "500");
    user.run("UPDATE t SET id = id WHERE id = 2; INSERT INTO t (id) VALUES (1)");
    assert_eq!(session.value("SELECT count(*) FROM t WHERE id > 1"), "999");
    user.run("DELETE FROM t WHERE id = 1");
    holder.run("COMMIT");
    is_ready(&mut session, "t");
    session.insert_expired("t", 2001, 2100);
    session.wait_until("SELECT count(*) FROM t", "500", PATIENCE);
}

#[test]
fn ended_in_the_middle() {
    let database = server().database("builder_ended");
    let mut session = table(&database);
    let mut holder = hold(&database);
    session.run(ENABLE);
    let pid = wait_until_built_but_for(&mut session);
    let first = session
        .value("SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisvalid");
    session.run(&format!("SELECT pg_terminate_backend({pid}, 60000)"));
    // What it left behind is replaced.
    holder.run("COMMIT");
    is_ready(&mut session, "t");
    let left = format!("SELECT count(*) FROM pg_class WHERE oid = {first}");
    assert_eq!(session.value(&left), "0");
}

#[test]
fn turned_off_in_the_middle() {
    let database = server().database("builder_off");
    let mut session = table(&database);
    let mut holder = hold(&database);
    session.run(ENABLE);
    wait_until_built_but_for(&mut session);
    // Neither waits for the builder, which waits for the holder.
    session.run("SELECT ttl.disable('t', revive_expired => true)");
    holder.run("COMMIT");
    session.wait_until(INVALID, "0", PATIENCE);
    assert_eq!(session.value(STATE), "∅");
    let left = "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisprimary";
    assert_eq!(session.value(left), "0");
    // Turned on again, it goes on.
    session.run("SELECT ttl.set_default('t', 3600)");
    is_ready(&mut session, "t");
}

/// Partitions on two levels, of an owner that cannot log in; a constraint that is validated.
#[test]
fn partitions() {
    let database = server().database("builder_partitions");
    let mut session = database.disk();
    session.run(
        "CREATE ROLE builder_owner NOLOGIN; CREATE SCHEMA s AUTHORIZATION builder_owner;
         SET SESSION AUTHORIZATION builder_owner; SET search_path = s;
         CREATE TABLE t (id integer, _ts timestamptz NOT NULL, ttl integer, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (500);
         CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (500) TO (2000) PARTITION BY RANGE (id);
         CREATE TABLE t21 PARTITION OF t2 FOR VALUES FROM (500) TO (800);
         CREATE TABLE t22 PARTITION OF t2 FOR VALUES FROM (800) TO (2000);
         INSERT INTO t SELECT n, now() - n % 2 * interval '2 hours' FROM generate_series(1, 1000) AS n",
    );
    session.run(ENABLE);
    session.run("RESET SESSION AUTHORIZATION; SET ttl.show_expired = on");
    is_ready(&mut session, "t");
    let tree = "SELECT count(*), bool_and(i.indisvalid)
                  FROM pg_index AS x, pg_partition_tree(x.indexrelid) AS p, pg_index AS i
                 WHERE x.indrelid = 't'::regclass AND NOT x.indisprimary AND i.indexrelid = p.relid";
    assert_eq!(session.rows(tree), [["5", "t"]]);
    let validated = "SELECT bool_and(convalidated) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c'";
    assert_eq!(session.value(validated), "t");
    let owner = "SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname LIKE '%\\_ttl\\_%'";
    assert_eq!(session.column(owner), ["builder_owner"]);
    session.run("DROP SCHEMA s CASCADE; DROP OWNED BY builder_owner; DROP ROLE builder_owner");
}

/// A failure is shown, and tried again.
#[test]
fn fails() {
    let database = server().database("builder_fails");
    let mut session = table(&database);
    session.run("CREATE ROLE builder_poor NOLOGIN; ALTER TABLE t OWNER TO builder_poor");
    session.run(ENABLE);
    let failed = "failed: permission denied for schema public";
    session.wait_until(STATE, failed, PATIENCE);
    let problem = session.value(PROBLEMS);
    assert!(
        problem.contains("whose building fails: permission denied"),
        "{problem}"
    );
    assert_eq!(session.value("SELECT count(*) FROM t"), "1000");
    session.run("GRANT CREATE ON SCHEMA public TO builder_poor");
    is_ready(&mut session, "t");
    session.run("DROP OWNED BY builder_poor; DROP ROLE builder_poor");
}

/// The table is dropped in the middle, the database after that: neither keeps the builder from others.
#[test]
fn dropped_in_the_middle() {
    let dropped = server().database("builder_dropped");
    let mut session = table(&dropped);
    let holder = hold(&dropped);
    session.run(ENABLE);
    let pid = wait_until_built_but_for(&mut session);
    session.run(&format!(
        "BEGIN; SELECT pg_terminate_backend({pid}, 60000); DROP TABLE t; COMMIT"
    ));
    drop(holder);
    session.run("CREATE TABLE t (id integer PRIMARY KEY)");
    let mut holder = hold(&dropped);
    session.run(ENABLE);
    wait_until_built_but_for(&mut session);
    drop(session);
    holder.run("COMMIT");
    drop(holder);
    let other = server().database("builder_other");
    let mut session = table(&other);
    session.run(ENABLE);
    session.run("DROP DATABASE builder_dropped");
    is_ready(&mut session, "t");
}

#[test]
fn switched_off() {
    let server = Server::start_sweeping(&[("ttl.build_indexes", "off")]);
    let database = server.database("app");
    let mut session = table(&database);
    session.run(ENABLE);
    session.launcher_looks_again();
    assert_eq!(session.value(STATE), "waiting");
    let problem = session.value(PROBLEMS);
    assert!(
        problem.contains("while ttl.build_indexes is off"),
        "{problem}"
    );
    assert_eq!(session.value("SELECT count(*) FROM t"), "1000");
    session.run("ALTER SYSTEM SET ttl.build_indexes = on");
    session.run("SELECT pg_reload_conf()");
    is_ready(&mut session, "t");
}

/// Work in two databases, one of which cannot be built; then a crash.
#[test]
fn two_databases_and_a_crash() {
    let server = Server::start_sweeping(&[]);
    let (one, two) = (server.database("one"), server.database("two"));
    let (mut first, mut second) = (table(&one), table(&two));
    let _holder = hold(&one);
    first.run(ENABLE);
    let pid = wait_until_built_but_for(&mut first);
    second.run(ENABLE);
    // Another builder is there for another database.
    is_ready(&mut second, "t");
    server.allow_crash();
    assert!(server.kill(pid));
    server.wait_for_log(&["was terminated by signal 9"], 1, PATIENCE);
    server.wait_for_log(&["ready to accept connections"], 2, PATIENCE);
    for database in [&one, &two] {
        let mut session = until("a connection", PATIENCE, || Some(database.disk()));
        is_ready(&mut session, "t");
    }
}

/// S10: neither builder nor worker waits for a synchronous standby that does not answer.
#[test]
fn without_the_standby() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("alone");
    let mut session = table(&database);
    session.run("SET synchronous_commit = local");
    server.reload(&[
        ("synchronous_standby_names", "absent"),
        ("synchronous_commit", "remote_apply"),
    ]);
    session.wait_until("SHOW synchronous_standby_names", "absent", PATIENCE);
    session.run(ENABLE);
    is_ready(&mut session, "t");
}
