//! What the owner of a database can do who is no superuser, and what a superuser can give them.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

/// A role that may make databases, and one of theirs. The extension comes from `template1`.
fn tenant(server: &Server) -> (Database<'_>, Session) {
    server
        .connect("template1", "postgres")
        .run("CREATE EXTENSION ttl_ext");
    server
        .connect("postgres", "postgres")
        .run("CREATE ROLE tenant LOGIN CREATEDB");
    server
        .connect("postgres", "tenant")
        .run("CREATE DATABASE shop");
    let database = server.existing_database("shop");
    let session = database.connect_as("tenant");
    (database, session)
}

/// All that users need is theirs, deletion in the background included.
#[test]
fn without_superuser() {
    let server = Server::start_sweeping(&[]);
    let (_database, mut tenant) = tenant(&server);
    tenant.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600, index => 'btree', concurrently => true);
         CREATE TABLE d (id integer PRIMARY KEY, at timestamptz); CREATE INDEX d_at_idx ON d (at);
         SELECT ttl.expire_index('d_at_idx', 0);
         INSERT INTO t VALUES (1001); INSERT INTO d VALUES (1001, now() + interval '1 hour')",
    );
    // The owner sees what is on disk.
    tenant.run("SET row_security = off");
    tenant.insert_expired("t", 1, 100);
    tenant
        .run("INSERT INTO d SELECT n, now() - interval '1 day' FROM generate_series(1, 100) AS n");
    tenant.wait_for_ids("t", "1001");
    tenant.wait_for_ids("d", "1001");
    tenant.run("SELECT ttl.pause('t')");
    tenant.insert_expired("t", 1, 100);
    tenant.run("SELECT ttl.resume('t')");
    tenant.run("SELECT ttl.set_default('t', 7200)");
    tenant.run(
        "SELECT * FROM ttl.stats; SELECT * FROM ttl.progress; SELECT * FROM ttl.preview('t', 60)",
    );
    tenant.wait_until(
        "SELECT string_agg(DISTINCT problems::text, ' ') FROM ttl.tables",
        "{}",
        PATIENCE,
    );
    tenant.run("SELECT ttl.purge('t'), ttl.disable('t', drop_columns => true)");
    assert_eq!(tenant.count("t"), 1);
}

/// What is a superuser's, one privilege each.
#[test]
fn what_can_be_granted() {
    let server = Server::start(&[]);
    let (database, mut tenant) = tenant(&server);
    tenant.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    let rights = [
        (
            "SET ttl.show_expired = on",
            "GRANT SET ON PARAMETER ttl.show_expired TO tenant",
        ),
        (
            "ALTER SYSTEM SET ttl.naptime = '30s'",
            "GRANT ALTER SYSTEM ON PARAMETER ttl.naptime TO tenant",
        ),
        (
            "SELECT pg_catalog.pg_reload_conf()",
            "GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf() TO tenant",
        ),
        (
            "SELECT ttl.reset_stats('t')",
            "GRANT EXECUTE ON FUNCTION ttl.reset_stats(regclass) TO tenant",
        ),
    ];
    let mut boss = database.connect();
    for (act, grant) in rights {
        assert_eq!(tenant.error(act).code().code(), "42501", "{act}");
        boss.run(grant);
        tenant.run(act);
    }
}
