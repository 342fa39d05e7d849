//! What is not supported is refused at the first call, with SQLSTATE 0A000 and a HINT, and changes nothing.

use ttl_ext_citus::{Session, SqlState, ids};

use crate::{ROWS, cluster, seen, with_table};

#[track_caller]
fn refused(session: &mut Session, sql: &str) {
    let error = session.error(sql);
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    assert!(error.hint().is_some(), "{error:?}");
}

#[test]
fn a_shard_by_itself() {
    let (app, mut session) = with_table("of_shard");
    let placement = &app.placements("o")[0];
    let shard = &placement.relation;
    let mut node = app.node(placement.node);
    refused(&mut node, &format!("SELECT ttl.enable('{shard}', 60)"));
    session.run("SELECT ttl.enable('o', 3600)");
    for call in [
        format!("SELECT ttl.enable('{shard}', 60)"),
        format!("SELECT ttl.set_default('{shard}', 60)"),
        format!("SELECT ttl.set_option('{shard}', 'hidden', 'false')"),
    ] {
        refused(&mut node, &call);
    }
    session.run_preserving(ROWS);
    assert_eq!(seen(&mut session), ids(21..=30));
}

fn with_columnar(name: &str) -> Session {
    let app = cluster().application(name);
    let mut session = app.coordinator();
    session.run("CREATE EXTENSION IF NOT EXISTS citus_columnar");
    session
}

#[test]
fn columnar_tables() {
    let mut session = with_columnar("columnar");
    session.run("CREATE TABLE c (id int, v text) USING columnar");
    refused(&mut session, "SELECT ttl.enable('c', 60)");
    session.run("SELECT create_distributed_table('c', 'id')");
    refused(&mut session, "SELECT ttl.enable('c', 60)");
    refused(&mut session, "ALTER TABLE c SET (ttl.default_ttl = 60)");
    let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'c'::regclass AND attname IN ('_ts', 'ttl')";
    assert_eq!(session.value(columns), "0");
}

/// Columnar partitions are dropped as a whole, whichever function says how rows expire.
#[test]
fn columnar_partitions_stay_whole() {
    let mut session = with_columnar("whole");
    session.run(
        "CREATE TABLE p (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
         CREATE TABLE p_old PARTITION OF p FOR VALUES FROM ('2000-01-01') TO ('2020-01-01') USING columnar;
         CREATE TABLE p_new PARTITION OF p DEFAULT;
         CREATE INDEX p_at ON ONLY p (_ts)",
    );
    refused(&mut session, "SELECT ttl.enable('p', 60)");
    refused(&mut session, "SELECT ttl.expire_index('p_at', 60)");
    session.run("SELECT ttl.enable('p', 60, index => 'none', drop_partitions => true)");
    refused(
        &mut session,
        "SELECT ttl.set_option('p', 'drop_partitions', 'false')",
    );
    refused(
        &mut session,
        "SELECT ttl.expire_index('p_at', 60, drop_partitions => false)",
    );
    session.run("SELECT ttl.set_option('p', 'hidden', 'false')");
}

/// A table with TTL cannot become columnar, nor one of its partitions unless they are dropped as a whole.
#[test]
fn to_columnar() {
    let mut session = with_columnar("to_columnar");
    session.run("CREATE TABLE o (id int, v text); SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(ROWS);
    refused(
        &mut session,
        "SELECT alter_table_set_access_method('o', 'columnar')",
    );
    assert_eq!(seen(&mut session), ids(21..=30));
    assert_eq!(session.value("SELECT ttl.purge('o')"), "20");
}

/// Citus wants to be first in `shared_preload_libraries`.
#[test]
fn libraries_in_another_order() {
    let server = cluster().spare();
    server.stop(ttl_ext_citus::Stop::Fast);
    let output = server
        .tool("postgres", "")
        .arg("-D")
        .arg(server.dir().join("data"))
        .args(["-c", "shared_preload_libraries=ttl_ext,citus"])
        .output()
        .expect("postgres");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("has to be loaded first"), "{text}");
    server.launch();
}
