//! The kinds of tables that Citus has beside distributed ones: each with a time to live, on every node.

mod columnar;
mod local;
mod partitioned;
mod schemas;
mod single;

use std::sync::OnceLock;

use ttl_ext_citus::{Application, Cluster, Session};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&[]))
}

/// Enable TTL on a table `(id, v)`, write rows 1 to 10 that have expired and 11 to 20 that have not, and see
/// what must be true of it on each node.
#[track_caller]
fn lives_and_expires(app: &Application<'_>, session: &mut Session, table: &str) {
    lives_and_leaves(app, session, table, 17);
}

/// So many of the 17 rows that expire are deleted at once.
#[track_caller]
fn lives_and_leaves(app: &Application<'_>, session: &mut Session, table: &str, deleted: i32) {
    let literal = table.replace('\'', "''");
    session.run(&format!("SELECT ttl.enable('{literal}', 3600)"));
    session.run_preserving(&format!(
        "INSERT INTO {table} (id, v, _ts)
            SELECT n, 'old', now() - CASE WHEN n <= 10 THEN interval '2 hours' ELSE interval '10 minutes' END
              FROM generate_series(1, 20) AS n"
    ));
    let count = format!("SELECT count(*) FROM {table}");
    for node in 0..app.size() {
        assert_eq!(app.node(node).value(&count), "10", "node {node}");
        assert_eq!(app.problems(node, &literal), "", "node {node}");
    }
    // Keys are free; writes stamp.
    session.run(&format!("INSERT INTO {table} (id, v) VALUES (1, 'new')"));
    app.node(1).run(&format!(
        "INSERT INTO {table} (id, v) VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET v = 'upd'"
    ));
    app.node(2)
        .run(&format!("UPDATE {table} SET v = 'upd' WHERE id IN (3, 11)"));
    let young = format!(
        "SELECT string_agg(id || v, ' ' ORDER BY id) FROM {table} WHERE _ts > now() - interval '5 minutes'"
    );
    assert_eq!(session.value(&young), "1new 2new 11upd");
    session.run(&format!(
        "SELECT ttl.set_default('{literal}', 86400, revive_expired => true)"
    ));
    for node in 0..app.size() {
        assert_eq!(app.node(node).value(&count), "20", "node {node}");
    }
    session.run(&format!("SELECT ttl.set_default('{literal}', 300)"));
    assert_eq!(app.node(1).value(&count), "3");
    let preview = format!("SELECT total, expired FROM ttl.preview('{literal}')");
    assert_eq!(session.rows(&preview), [["20", "17"]]);
    let purged = session.value(&format!("SELECT ttl.purge('{literal}')"));
    assert_eq!(purged, deleted.to_string());
    // What could not be deleted yet would come back.
    let disable = format!("SELECT ttl.disable('{literal}', drop_columns => true");
    let kept = 17 - deleted;
    if kept > 0 {
        let error = session.error(&format!("{disable})"));
        assert_eq!(error.code().code(), "55000", "{error:?}");
        session.run(&format!("{disable}, revive_expired => true)"));
    } else {
        session.run(&format!("{disable})"));
    }
    assert_eq!(session.value(&count), (3 + kept).to_string());
}
