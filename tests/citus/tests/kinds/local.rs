//! Tables of the coordinator that Citus has in its metadata, and tables that it does not know.

use ttl_ext_citus::SqlState;

use crate::{cluster, lives_and_expires};

#[test]
fn in_metadata() {
    let app = cluster().application("local");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT citus_add_local_table_to_metadata('o')");
    lives_and_expires(&app, &mut session, "o");
}

/// A foreign key to a reference table would make it one by the way: refused, until it is one. And a plain table
/// again.
#[test]
fn by_a_foreign_key() {
    let app = cluster().application("local_fk");
    let mut session = app.coordinator();
    session.run(
        "CREATE TABLE r (id int PRIMARY KEY); CREATE TABLE o (id int PRIMARY KEY, v text, r int)",
    );
    session.run("SELECT create_reference_table('r')");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(
        "INSERT INTO o (id, _ts) SELECT n, now() - n * interval '10 minutes' FROM generate_series(1, 10) AS n",
    );
    let key = "ALTER TABLE o ADD CONSTRAINT fk FOREIGN KEY (r) REFERENCES r";
    let error = session.error(key);
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    assert!(error.hint().is_some(), "{error:?}");
    session.run("SELECT citus_add_local_table_to_metadata('o')");
    session.run(key);
    assert_eq!(
        session.value("SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'o'::regclass"),
        "1"
    );
    for node in 0..app.size() {
        assert_eq!(
            app.node(node).value("SELECT count(*) FROM o"),
            "5",
            "node {node}"
        );
    }
    session.run("INSERT INTO o (id) VALUES (10)");
    session.run("ALTER TABLE o DROP CONSTRAINT fk");
    session.run("SELECT undistribute_table('r')");
    assert_eq!(session.value("SELECT count(*) FROM o"), "6");
    session.run("INSERT INTO o (id) VALUES (9)");
    session.run("SELECT ttl.purge('o')");
    assert_eq!(app.database(0).disk().value("SELECT count(*) FROM o"), "7");
}

#[test]
fn unknown_to_citus() {
    let app = cluster().application("plain");
    for node in 0..app.size() {
        let mut session = app.node(node);
        session.run("CREATE TABLE mine (id int PRIMARY KEY, v text)");
        session.run("SELECT ttl.enable('mine', 3600)");
        session.run_preserving(
            "INSERT INTO mine (id, _ts) SELECT n, now() - n * interval '10 minutes' FROM generate_series(1, 10) AS n",
        );
        assert_eq!(session.value("SELECT count(*) FROM mine"), "5");
        session.run("INSERT INTO mine VALUES (7, 'new')");
        assert_eq!(session.value("SELECT ttl.purge('mine')"), "4");
        session.run("DROP TABLE mine");
    }
}
