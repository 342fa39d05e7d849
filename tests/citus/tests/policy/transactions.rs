//! Every change of a policy in every state of a transaction: it holds on all shards when the transaction
//! commits, or is refused before anything is changed (25001). (It reached those shards alone that the label's
//! session could see, and an upsert revived expired rows on the others.)

use ttl_ext_citus::{Application, Session, SqlState, ids};

use crate::{ROWS, cluster, seen};

/// More connections at once, so that each shard of a node has one of its own.
const PARALLEL: &str =
    "SET citus.executor_slow_start_interval = 0; SET citus.force_max_query_parallelization = on";

/// Statements after which a node has several sessions of the transaction, each with what it has changed or locked.
const STATES: [(&str, &str); 4] = [
    ("distributed", ""),
    (
        "copied",
        "INSERT INTO o (id, v) SELECT n, 'x' FROM generate_series(101, 160) AS n",
    ),
    ("updated", "UPDATE o SET v = v || '!'"),
    ("read", "SELECT count(*) FROM o"),
];

const ENABLED: &str = "SELECT ttl.enable('o', 3600)";

/// Each function and statement that changes a policy, after what makes the table ready for it.
const CHANGES: [(&str, &str); 13] = [
    ("", ENABLED),
    (ENABLED, "SELECT ttl.enable('o', 1800, confirm => true)"),
    (
        ENABLED,
        "SELECT ttl.set_default('o', 7200, revive_expired => true)",
    ),
    (ENABLED, "SELECT ttl.set_option('o', 'hidden', 'false')"),
    (ENABLED, "SELECT ttl.pause('o')"),
    (
        "SELECT ttl.enable('o', 3600), ttl.pause('o')",
        "SELECT ttl.resume('o')",
    ),
    (ENABLED, "SELECT ttl.disable('o', revive_expired => true)"),
    (
        ENABLED,
        "SELECT ttl.disable('o', drop_columns => true, revive_expired => true)",
    ),
    (
        ENABLED,
        "ALTER TABLE o SET (ttl.default_ttl = 1800, ttl.confirm = true)",
    ),
    (ENABLED, "ALTER TABLE o RENAME COLUMN _ts TO written_at"),
    (
        "CREATE INDEX o_at ON o (at)",
        "SELECT ttl.expire_index('o_at', 3600)",
    ),
    (
        "",
        "SELECT ttl.create_index('o', '{\"at\": 1}', '{\"expireAfterSeconds\": 3600}')",
    ),
    (
        ENABLED,
        "SECURITY LABEL FOR ttl ON TABLE o IS '{\"default_ttl\": 7200}'",
    ),
];

fn with_table(name: &str) -> (Application<'static>, Session) {
    let app = cluster().application(name);
    let session = app.coordinator();
    (app, session)
}

const TABLE: &str = "CREATE TABLE o (id int PRIMARY KEY, v text, at timestamptz); SELECT create_distributed_table('o', 'id')";

#[track_caller]
fn refused(session: &mut Session, change: &str) {
    let error = session.error(change);
    assert_eq!(
        *error.code(),
        SqlState::ACTIVE_SQL_TRANSACTION,
        "{change}: {error:?}"
    );
    let hint = error.hint().unwrap_or_default();
    assert!(
        hint.contains("citus.multi_shard_modify_mode TO 'sequential'"),
        "{change}: {hint}"
    );
}

/// Which shards have the trigger, and with which label the nodes are.
#[track_caller]
fn triggers(app: &Application<'_>) -> Vec<String> {
    let query = "SELECT count(*) FROM pg_trigger WHERE tgrelid = '{}'::regclass AND tgname = '~ttl_free_expired_keys'";
    let found = app.of_placements("o", query).into_iter();
    let mut counts: Vec<String> = found.map(|(_, rows)| rows[0][0].clone()).collect();
    counts.dedup();
    counts
}

#[track_caller]
fn labels(app: &Application<'_>) -> Vec<String> {
    let of_node = |node| {
        app.node(node).value(
            "SELECT coalesce(min((label::jsonb - '{table_oid,database_oid,shortened}'::text[])::text), 'none')
               FROM pg_seclabel WHERE objoid = 'o'::regclass",
        )
    };
    let mut labels: Vec<String> = (0..app.size()).map(of_node).collect();
    labels.dedup();
    labels
}

/// After sessions of the transaction's own: refused, and nothing is changed.
#[test]
fn changes_after_several_sessions() {
    let (app, mut session) = with_table("after");
    session.run(PARALLEL);
    for (state, statement) in STATES {
        for (ready, change) in CHANGES {
            session.run("DROP TABLE IF EXISTS o");
            if statement.is_empty() {
                session.run(&format!("BEGIN; {TABLE}"));
                // A function that is to be called first is refused itself.
                if ready.is_empty() {
                    refused(&mut session, change);
                }
                session.run("ROLLBACK");
                continue;
            }
            session.run(TABLE);
            session.run("INSERT INTO o SELECT n, 'v', now() FROM generate_series(1, 60) AS n");
            if !ready.is_empty() {
                session.run(ready);
            }
            let (before, had) = (labels(&app), triggers(&app));
            session.run(&format!("BEGIN; {statement}"));
            refused(&mut session, change);
            session.run("ROLLBACK");
            assert_eq!(labels(&app), before, "{state}: {change}");
            assert_eq!(triggers(&app), had, "{state}: {change}");
        }
    }
}

/// As the HINT says, and in a transaction that has done nothing yet, or things on one shard only: on all shards. What
/// follows in the transaction goes by the new policy.
#[test]
fn changes_by_one_session() {
    let states = [
        (
            "sequential",
            "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'; UPDATE o SET v = v || '!'",
        ),
        ("first", "SELECT 1"),
        ("one_row", "UPDATE o SET v = v || '!' WHERE id = 7"),
    ];
    let (app, mut session) = with_table("by_one");
    session.run(PARALLEL);
    for (state, statement) in states {
        for (ready, change) in CHANGES {
            session.run("DROP TABLE IF EXISTS o");
            session.run(TABLE);
            session.run("INSERT INTO o SELECT n, 'v', now() FROM generate_series(1, 60) AS n");
            if !ready.is_empty() {
                session.run(ready);
            }
            session.run(&format!("BEGIN; {statement}"));
            session.run(change);
            session.run("UPDATE o SET v = v || '?'");
            session.run("COMMIT");
            assert_eq!(
                labels(&app).len(),
                1,
                "{state}: {change}: {:?}",
                labels(&app)
            );
            assert_eq!(triggers(&app).len(), 1, "{state}: {change}");
            assert_eq!(
                session.value("SELECT count(*) FROM o"),
                "60",
                "{state}: {change}"
            );
            session.run("RESET citus.multi_shard_modify_mode");
        }
    }
}

/// The table is made in the same transaction, one session a node: each shard has the trigger, and an upsert does not
/// revive what has expired.
#[test]
fn made_and_enabled_in_one_transaction() {
    let (app, mut session) = with_table("made_and_enabled");
    session.run(PARALLEL);
    session.run("BEGIN; SET LOCAL citus.multi_shard_modify_mode TO 'sequential'");
    session.run(TABLE);
    session.run("SELECT ttl.enable('o', 3600)");
    session.run("SELECT ttl.set_default('o', 7200, revive_expired => true); COMMIT");
    assert_eq!(triggers(&app), ["1"]);
    session.run_preserving(ROWS);
    session.run("UPDATE o SET v = 'old'");
    session.run_preserving("UPDATE o SET _ts = now() - interval '1 day'");
    session.run(
        "INSERT INTO o (id, v) SELECT n, 'new' FROM generate_series(1, 30) AS n
             ON CONFLICT (id) DO UPDATE SET v = o.v || ' is back'",
    );
    assert_eq!(
        session.value("SELECT string_agg(DISTINCT v, ' ') FROM o"),
        "new"
    );
    assert_eq!(seen(&mut session), ids(1..=30));
}

/// With TTL first, and distributed in the same transaction: as one session, without being told.
#[test]
fn enabled_and_distributed_in_one_transaction() {
    let (app, mut session) = with_table("enabled_and_distributed");
    session.run(PARALLEL);
    session.run("BEGIN; CREATE TABLE o (id int PRIMARY KEY, v text); SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    session.run("SELECT create_distributed_table('o', 'id'); COMMIT");
    assert_eq!(triggers(&app), ["1"]);
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(21..=30), "node {node}");
    }
}

/// A rollback to a savepoint takes the change and the mode with it.
#[test]
fn savepoints() {
    let (app, mut session) = with_table("savepoints");
    session.run(PARALLEL);
    session.run(TABLE);
    session.run("BEGIN; SAVEPOINT s");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run("ROLLBACK TO s; UPDATE o SET v = 'x'");
    assert_eq!(
        session.value("SHOW citus.multi_shard_modify_mode"),
        "parallel"
    );
    session.run("ROLLBACK");
    assert_eq!(labels(&app), ["none"]);
    session.run("SELECT ttl.enable('o', 3600)");
    assert_eq!(triggers(&app), ["1"]);
}

/// From a worker node.
#[test]
fn changes_on_a_worker() {
    let (app, mut session) = with_table("on_a_worker");
    session.run(TABLE);
    session.run("SELECT ttl.enable('o', 3600)");
    let mut there = app.node(1);
    there.run(PARALLEL);
    there.run("BEGIN; UPDATE o SET v = 'x'");
    refused(&mut there, "SELECT ttl.set_default('o', 60)");
    there.run("ROLLBACK; BEGIN; SELECT ttl.set_default('o', 60); UPDATE o SET v = 'y'; COMMIT");
    assert_eq!(labels(&app).len(), 1);
}

/// Sessions of another role count, which the one who changes the policy may not look at. A session that is kept for later
/// does not.
#[test]
fn another_role_in_the_transaction() {
    let (app, mut session) = with_table("other_role");
    session.run("CREATE ROLE other_role_one LOGIN; CREATE ROLE other_role_two LOGIN; GRANT other_role_one TO other_role_two");
    session.run("GRANT CREATE ON SCHEMA public TO other_role_one");
    session.run(PARALLEL);
    session.run("SET SESSION AUTHORIZATION other_role_one");
    session.run(TABLE);
    session.run("INSERT INTO o (id) SELECT generate_series(1, 60)");
    session.run("RESET SESSION AUTHORIZATION"); // which the ROLLBACK is not to take back
    session.run("BEGIN; SET LOCAL ROLE other_role_one; UPDATE o SET v = 'x'");
    session.run("SET LOCAL ROLE other_role_two");
    refused(&mut session, "SELECT ttl.enable('o', 3600)");
    session.run("ROLLBACK; SET ROLE other_role_two");
    session.run("SELECT ttl.enable('o', 3600)");
    assert_eq!(triggers(&app), ["1"]);
}
