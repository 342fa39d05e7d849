//! D1 to D3: the override inside a document.

use crate::cluster;

#[test]
fn overrides_in_documents() {
    let app = cluster().application("documents");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, body jsonb)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 3600, document_column => 'body')");
    session.run_preserving(
        r#"INSERT INTO o (id, body, _ts) VALUES
            (1, '{"ttl": 10}', now() - interval '1 minute'), (2, '{"ttl": -1}', now() - interval '1 day'),
            (3, '{"ttl": "10"}', now() - interval '1 minute'), (4, '{}', now() - interval '1 day'),
            (5, '{"ttl": 86400}', now() - interval '2 hours')"#,
    );
    for node in 0..app.size() {
        assert_eq!(crate::seen(&mut app.node(node)), "2 3 5", "node {node}");
    }
    session.run(r#"UPDATE o SET body = body || '{"ttl": 7200}' WHERE id = 5"#);
    assert_eq!(session.column("SELECT ttl FROM o WHERE id = 5"), ["7200"]);
    session.run(r#"INSERT INTO o (id, body) VALUES (1, '{"ttl": -1}') ON CONFLICT (id) DO UPDATE SET body = '{"no": 1}'"#);
    assert_eq!(crate::seen(&mut session), "1 2 3 5");
    assert_eq!(
        session.column("SELECT body FROM o WHERE id = 1"),
        [r#"{"ttl": -1}"#]
    );
    assert_eq!(session.value("SELECT ttl.purge('o')"), "1");
}

/// On a table that has rows, the column is generated anew on each shard.
#[test]
fn added_later() {
    let app = cluster().application("documents_later");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, body jsonb)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run(r#"INSERT INTO o SELECT n, '{"ttl": -1}' FROM generate_series(1, 20) AS n"#);
    session.run("SELECT ttl.enable('o', 3600)");
    session.run("SELECT ttl.enable('o', 3600, document_column => 'body')");
    assert_eq!(session.value("SELECT count(*) FROM o WHERE ttl = -1"), "20");
    session.run_preserving("UPDATE o SET _ts = now() - interval '1 day', body = CASE WHEN id > 5 THEN body ELSE '{}' END");
    assert_eq!(session.value("SELECT count(*) FROM o"), "15");
}
