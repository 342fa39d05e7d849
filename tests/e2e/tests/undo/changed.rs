//! C24: `ttl.change_delay`. A change of policy that expires rows can be undone; workers have looked
//! at the table meanwhile.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

pub(super) const DELAY: (&str, &str) = ("ttl.change_delay", "1h");
const IN_PROGRESS: &str = "55000";

/// 100 rows that were last written ten minutes ago and live for half an hour.
fn sessions(database: &Database<'_>) -> Session {
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 1800)");
    disk.run_preserving(
        "INSERT INTO t (id, _ts) SELECT n, now() - interval '10 min' FROM generate_series(1, 100) AS n",
    );
    assert_eq!(waits(&mut disk, "t"), "f", "the table was empty");
    disk
}

fn waits(disk: &mut Session, table: &str) -> String {
    disk.value(&format!(
        "SELECT count(*) FILTER (WHERE deletion_waits_until BETWEEN now() + interval '50 min' AND now() + interval '1 h') > 0
           FROM ttl.tables WHERE relation = '{table}'::regclass"
    ))
}

/// Waits until a worker has found so many expired rows, and left them where they are.
pub(super) fn found_and_left(disk: &mut Session, table: &str, rows: i64) {
    assert_eq!(waits(disk, table), "t");
    disk.wait_until(
        &format!("SELECT backlog FROM ttl.tables WHERE relation = '{table}'::regclass"),
        &rows.to_string(),
        PATIENCE,
    );
    let left = format!("SELECT count(*) FROM ttl.expired(NULL::{table})");
    assert_eq!(disk.value(&left), rows.to_string());
}

/// What a wrong `ttl.set_default('t', 1)` does, and how it is undone.
#[test]
fn c24_a_wrong_default_is_undone() {
    let server = Server::start_sweeping(&[DELAY]);
    let database = server.database("wrong");
    let mut disk = sessions(&database);
    let mut user = database.connect();
    assert_eq!(user.value("SELECT count(*) FROM t"), "100");
    user.run("SELECT ttl.set_default('t', 1)");
    assert_eq!(user.value("SELECT count(*) FROM t"), "0");
    found_and_left(&mut disk, "t", 100);
    // Without a decision, what would live again is not deleted.
    for change in [
        "ttl.set_default('t', 1800)",
        "ttl.set_default('t', NULL)",
        "ttl.disable('t')",
        "ttl.enable('t', 1800)",
        "ttl.coll_mod('t', '{\"index\": {\"keyPattern\": {\"_ts\": 1}, \"expireAfterSeconds\": 1800}}')",
    ] {
        let error = user.error(&format!("SELECT {change}"));
        assert_eq!(error.code().code(), IN_PROGRESS, "{change}: {error}");
        let hint = error.hint().unwrap_or_default();
        assert!(
            hint.contains("revive_expired => true") && hint.contains("ttl.purge("),
            "{change}: {hint}"
        );
    }
    // Nor by a statement that reads all rows.
    for ddl in [
        "ADD COLUMN flag boolean NOT NULL DEFAULT false",
        "ADD CHECK (id > 0)",
        "ADD UNIQUE (id)",
    ] {
        user.run(&format!("ALTER TABLE t {ddl}"));
    }
    user.run("SELECT ttl.set_default('t', 1800, revive_expired => true)");
    assert_eq!(user.value("SELECT count(*) FROM t"), "100");
    disk.wait_until(
        "SELECT backlog FROM ttl.tables WHERE relation = 't'::regclass",
        "0",
        PATIENCE,
    );
    assert_eq!(user.value("SELECT count(*) FROM t"), "100");
}

/// The columns that `ttl.enable` adds are NOT NULL, which PostgreSQL checks in each row.
#[test]
fn c24_columns_are_added_to_expired_rows() {
    let server = Server::start_sweeping(&[DELAY]);
    let database = server.database("columns");
    let mut user = database.connect();
    user.run(
        "CREATE TABLE t (id integer PRIMARY KEY, at timestamptz);
         INSERT INTO t SELECT n, now() - interval '1 day' FROM generate_series(1, 10) AS n;
         SELECT ttl.expire_after('t', 'at', '1 hour', confirm => true);
         SELECT ttl.enable('t', '365 days')",
    );
    assert_eq!(user.value("SELECT count(*) FROM t"), "0");
    user.run("SELECT ttl.expire_index('t_at_idx', NULL, revive_expired => true)");
    assert_eq!(user.value("SELECT count(*) FROM t"), "10");
}

/// `ttl.purge` does not wait; nor does a key. When the delay is over, rows go.
#[test]
fn c24_what_does_not_wait() {
    let server = Server::start_sweeping(&[DELAY]);
    let database = server.database("purge");
    let mut disk = sessions(&database);
    disk.run("SELECT ttl.set_default('t', 1)");
    found_and_left(&mut disk, "t", 100);
    let mut user = database.connect();
    user.run("INSERT INTO t (id, ttl) VALUES (7, -1)");
    user.run("INSERT INTO t (id, ttl) SELECT n, -1 FROM generate_series(1001, 4000) AS n");
    assert_eq!(
        user.value("SELECT count(*) FROM ttl.expired(NULL::t)"),
        "99"
    );
    assert_eq!(user.value("SELECT ttl.purge('t')"), "99");
    // And no decision is due any more.
    user.run("SELECT ttl.set_default('t', 1800)");
    user.run("DELETE FROM t");
    disk.run_preserving(
        "INSERT INTO t (id, _ts) SELECT n, now() - interval '10 min' FROM generate_series(1, 100) AS n",
    );
    user.run("SELECT ttl.set_default('t', 2)");
    found_and_left(&mut disk, "t", 100);
    server.reload(&[("ttl.change_delay", "0")]);
    disk.wait_for_none("t");
    assert_eq!(
        disk.value("SELECT deletion_waits_until IS NULL FROM ttl.tables"),
        "t"
    );
}

/// The same by every function that shortens a life, and for whole partitions.
#[test]
fn c24_whatever_changes() {
    let server = Server::start_sweeping(&[DELAY]);
    let database = server.database("whatever");
    let mut disk = database.disk();
    let old = "now() - n * interval '1 day'";
    // An adopted column.
    disk.run(&format!(
        "CREATE TABLE adopted (id integer, at timestamptz NOT NULL DEFAULT now());
         INSERT INTO adopted SELECT n, {old} FROM generate_series(1, 10) AS n;
         SELECT ttl.enable('adopted', 3600, ts_column => 'at')"
    ));
    found_and_left(&mut disk, "adopted", 10);
    // A TTL index, made by each command, and made shorter.
    for (table, command) in [
        ("by_index", "ttl.expire_index('by_index_at_idx', 0)"),
        (
            "by_create",
            "ttl.create_index('by_create', '{\"at\": 1}', '{\"expireAfterSeconds\": 0, \"name\": \"other\"}')",
        ),
        (
            "by_mod",
            "ttl.coll_mod('by_mod', '{\"index\": {\"name\": \"by_mod_at_idx\", \"expireAfterSeconds\": 0}}')",
        ),
    ] {
        disk.run(&format!(
            "CREATE TABLE {table} (id integer, at timestamptz);
             INSERT INTO {table} SELECT n, {old} FROM generate_series(1, 10) AS n"
        ));
        if table != "by_create" {
            disk.run(&format!("CREATE INDEX ON {table} (at)"));
        }
        disk.run(&format!("SELECT {command}"));
        found_and_left(&mut disk, table, 10);
    }
    disk.error("SELECT ttl.expire_index('by_index_at_idx', NULL)");
    disk.error("DROP INDEX by_index_at_idx");
    disk.run("SELECT ttl.expire_index('by_index_at_idx', 864000, revive_expired => true)");
    assert_eq!(
        database.connect().value("SELECT count(*) FROM by_index"),
        "9"
    );
    // A partition that could go as a whole.
    disk.run(&format!(
        "CREATE TABLE p (id integer, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
         CREATE TABLE p_old PARTITION OF p FOR VALUES FROM ('2000-01-01') TO ('2020-01-01');
         CREATE TABLE p_new PARTITION OF p FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
         INSERT INTO p SELECT n, '2019-01-01' FROM generate_series(1, 10) AS n;
         INSERT INTO p SELECT n, {old} FROM generate_series(11, 20) AS n;
         SELECT ttl.enable('p', 3600, drop_partitions => true)"
    ));
    found_and_left(&mut disk, "p", 20);
    assert_eq!(disk.value("SELECT to_regclass('p_old')"), "p_old");
    assert_eq!(disk.value("SELECT ttl.revive('p', 'id <= 10')"), "10");
    disk.run("SELECT ttl.purge('p')");
    assert_eq!(
        disk.value("SELECT count(*) || ' ' || sum(id) FROM p"),
        "10 55"
    );
    server.reload(&[("ttl.change_delay", "0")]);
    disk.wait_until("SELECT to_regclass('p_old') IS NULL", "t", PATIENCE);
}

/// What lets rows live longer, or changes nothing, holds nothing back.
#[test]
fn c24_other_changes() {
    let server = Server::start_sweeping(&[DELAY]);
    let database = server.database("other");
    let mut disk = sessions(&database);
    for change in [
        "ttl.set_default('t', 1800)",
        "ttl.set_default('t', 3600)",
        "ttl.enable('t', 3600, ts_granularity => 60)",
        "ttl.set_default('t', -1)",
    ] {
        disk.run(&format!("SELECT {change}"));
        assert_eq!(waits(&mut disk, "t"), "f", "{change}");
    }
    disk.run_preserving("INSERT INTO t (id, _ts, ttl) VALUES (-1, now() - interval '1 day', 1)");
    disk.wait_until("SELECT count(*) FROM t WHERE id = -1", "0", PATIENCE);
    // A column that is added: no row is older than that, but the figure is shorter.
    disk.run("CREATE TABLE fresh AS SELECT n AS id FROM generate_series(1, 10) AS n; SELECT ttl.enable('fresh', 3600)");
    assert_eq!(waits(&mut disk, "fresh"), "t");
}

/// The HINT of a change that would revive rows is a call that brings back just these.
#[test]
fn c24_the_hint_brings_them_back() {
    let server = Server::start_sweeping(&[DELAY]);
    let database = server.database("hint");
    let mut disk = database.disk();
    let mut user = database.connect();
    disk.run(
        "CREATE TABLE t (id integer, at timestamptz, doc jsonb);
         INSERT INTO t SELECT n, now() - interval '1 day' FROM generate_series(1, 10) AS n;
         CREATE INDEX t_at ON t (at);
         SELECT ttl.enable('t', 86400)",
    );
    let shorter = "SELECT ttl.expire_index('t_at', 10)";
    for (shorten, change, hint) in [
        (
            shorter,
            "SELECT ttl.expire_index('t_at', 1000000)",
            "ttl.expire_index('public.t_at', 1000000, revive_expired => true)",
        ),
        (
            shorter,
            "SELECT ttl.expire_index('t_at', NULL)",
            "ttl.expire_index('public.t_at', NULL, revive_expired => true)",
        ),
        (
            shorter,
            "DROP INDEX t_at",
            "ttl.expire_index('public.t_at', NULL, revive_expired => true)",
        ),
        (
            shorter,
            "SELECT ttl.disable('t')",
            "ttl.disable('public.t', revive_expired => true)",
        ),
    ] {
        disk.run(shorten);
        assert_eq!(user.value("SELECT count(*) FROM t"), "0");
        let error = user.error(change);
        assert_eq!(error.code().code(), IN_PROGRESS, "{change}: {error}");
        let given = error.hint().unwrap_or_default();
        assert!(given.contains(hint), "{change}: {given}");
        disk.run(&format!("SELECT {hint}"));
        assert_eq!(user.value("SELECT count(*) FROM t"), "10", "{hint}");
    }
    // Documents that begin to count have no such call.
    disk.run("SELECT ttl.enable('t', 86400); SELECT ttl.expire_index('t_at', 10)");
    let error = user.error("SELECT ttl.enable('t', document_column => 'doc')");
    assert_eq!(error.code().code(), IN_PROGRESS, "{error}");
    let given = error.hint().unwrap_or_default();
    assert!(!given.contains("revive_expired"), "{given}");
}
