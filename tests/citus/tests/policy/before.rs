//! Tables that had TTL before they were given to Citus, and undistributed ones.

use ttl_ext_citus::{Application, Session, SqlState, ids};

use crate::{ROWS, cluster, seen};

/// A plain table with TTL, 20 expired and 10 live rows.
fn with_plain_table(name: &str, columns: &str) -> (Application<'static>, Session) {
    let app = cluster().application(name);
    let mut session = app.coordinator();
    session.run(&format!("CREATE TABLE o ({columns})"));
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    assert_eq!(seen(&mut session), ids(21..=30));
    (app, session)
}

fn works(app: &Application<'_>, session: &mut Session) {
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(21..=30), "node {node}");
    }
    assert_eq!(app.problems(0, "o"), "");
    session.run("SELECT ttl.purge('o')");
    assert_eq!(app.on_disk("o"), ids(21..=30));
    let young = "SELECT count(*) FROM o WHERE _ts > now() - interval '5 minutes'";
    assert_eq!(session.value(young), "0", "_ts is kept");
    session.run("SELECT ttl.set_default('o', 60)");
    assert_eq!(seen(session), "");
}

#[test]
fn without_a_key() {
    let (app, mut session) = with_plain_table("before_without", "id int, v text");
    session.run("SELECT create_distributed_table('o', 'id')");
    works(&app, &mut session);
}

#[test]
fn with_a_key() {
    let (app, mut session) = with_plain_table("before_with", "id int PRIMARY KEY, v text");
    session.run("SELECT create_distributed_table('o', 'id')");
    works(&app, &mut session);
}

/// Citus copies the trigger, and renames it.
#[test]
fn concurrently_is_refused_with_a_key() {
    let (app, mut session) = with_plain_table("before_concurrently", "id int PRIMARY KEY, v text");
    let error = session.error("SELECT create_distributed_table_concurrently('o', 'id')");
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    assert!(error.hint().is_some(), "{error:?}");
    session.run("SELECT create_distributed_table('o', 'id')");
    works(&app, &mut session);
}

/// The coordinator makes its own shards by a session of Citus, too.
#[test]
fn with_shards_on_the_coordinator() {
    let (app, mut session) = with_plain_table("before_coordinator", "id int PRIMARY KEY, v text");
    session.run("SELECT citus_set_node_property(nodename, nodeport, 'shouldhaveshards', true) FROM pg_dist_node");
    session.run("SELECT create_distributed_table('o', 'id')");
    let nodes: Vec<usize> = app.placements("o").iter().map(|at| at.node).collect();
    assert!(nodes.contains(&0), "{nodes:?}");
    works(&app, &mut session);
}

/// What changes the table and its label in a transaction of its own: Citus changes several shards of the coordinator by
/// another session if it can, whose locks the label's session would wait for.
#[test]
fn changes_with_shards_on_the_coordinator() {
    let app = cluster().application("changes_coordinator");
    let mut session = app.coordinator();
    session.run("SELECT citus_set_node_property(nodename, nodeport, 'shouldhaveshards', true) FROM pg_dist_node");
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text, at timestamptz, doc jsonb)");
    session.run("SELECT create_distributed_table('o', 'id', shard_count => 8)");
    let disabled = "SELECT ttl.disable('o', drop_columns => true)";
    for changes in [
        &["SELECT ttl.enable('o', 3600)", disabled][..],
        &["SELECT ttl.enable('o', 3600, ttl_column => NULL)", disabled],
        &[
            "SELECT ttl.enable('o', 3600, document_column => 'doc')",
            disabled,
        ],
        &[
            "SELECT ttl.enable('o', 3600)",
            "SELECT ttl.enable('o', 3600, document_column => 'doc')",
            disabled,
        ],
        &[
            "SELECT ttl.expire_after('o', 'at', 3600)",
            "SELECT ttl.disable('o')",
            "DROP INDEX o_at_idx",
        ],
        &[
            "SELECT ttl.create_index('o', '{\"at\": 1}', '{\"expireAfterSeconds\": 3600}')",
            "SELECT ttl.disable('o')",
        ],
        &["ALTER TABLE o SET (ttl.default_ttl = 1800)", disabled],
        &[
            "ALTER TABLE o DROP CONSTRAINT o_pkey",
            "SELECT ttl.enable('o', 3600)",
            "ALTER TABLE o ADD PRIMARY KEY (id)",
            "ALTER TABLE o RENAME COLUMN _ts TO written_at",
            disabled,
        ],
    ] {
        for change in changes {
            session.run(change);
            assert_eq!(app.problems(0, "o"), "", "{change}");
        }
    }
}

#[test]
fn as_a_reference_table() {
    let (app, mut session) = with_plain_table("before_reference", "id int PRIMARY KEY, v text");
    session.run("SELECT create_reference_table('o')");
    for node in 0..app.size() {
        assert_eq!(seen(&mut app.node(node)), ids(21..=30), "node {node}");
    }
    app.assert_copies_equal("o");
}

/// What was small enough to be read has no index for deletion when it is distributed; another call builds it.
#[test]
fn its_index() {
    let (app, mut session) = with_plain_table("before_index", "id int PRIMARY KEY, v text");
    let state = "SELECT index_state FROM ttl.tables WHERE relation = 'o'::regclass";
    assert_eq!(session.value(state), "not needed");
    session.run("SELECT create_distributed_table('o', 'id')");
    assert_eq!(session.value(state), "not needed");
    assert_eq!(app.problems(0, "o"), "");
    session.run("SELECT ttl.enable('o', 3600)");
    assert_eq!(session.value(state), "ready");
    for node in 0..app.size() {
        let lacking = "SELECT count(*) FROM pg_class AS c
             WHERE relname ~ '^o_[0-9]+$' AND relkind = 'r'
               AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND pg_get_expr(indexprs, indrelid) LIKE '%expiry_key%')";
        assert_eq!(app.node(node).value(lacking), "0", "node {node}");
    }
    works(&app, &mut session);
}
