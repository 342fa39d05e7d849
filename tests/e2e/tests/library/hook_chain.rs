//! Decision 0004: the extension works with others that use the same hooks, loaded before or after
//! it.

use ttl_ext_e2e::{Server, fields, lacks_library};

const SETTINGS: [(&str, &str); 6] = [
    ("auto_explain.log_min_duration", "0"),
    ("auto_explain.log_analyze", "on"),
    ("auto_explain.log_verbose", "on"),
    ("auto_explain.log_nested_statements", "on"),
    ("pg_stat_statements.track", "all"),
    ("compute_query_id", "on"),
];

const TABLES: &str = "
CREATE EXTENSION pg_stat_statements;
CREATE TABLE t (id integer PRIMARY KEY, amount integer CONSTRAINT positive CHECK (amount > 0));
SELECT ttl.enable('t', 3600);
CREATE TABLE child (id integer, t integer CONSTRAINT of_t REFERENCES t);
SET ttl.preserve_ts = on;
INSERT INTO t (id, amount, _ts) VALUES (1, 10, now()), (2, 20, now() - interval '2 hours');
RESET ttl.preserve_ts;
CREATE FUNCTION divide(a integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT 1 / (id - id) FROM t WHERE id = a);
END $$;
";

fn all_errors(server: &Server, database: &str) -> Vec<String> {
    let mut session = server.connect(database, "postgres");
    let mut all = Vec::new();
    for statement in [
        "CREATE TABLE u (id integer, kind nosuchtype)",
        "SELECT nowhere FROM t",
        "SELECT divide(1)",
        "DO $$ BEGIN PERFORM divide(1); END $$",
        "INSERT INTO t VALUES (1, 1)",
        "INSERT INTO t VALUES (3, -1, '2020-01-01')",
        // C6: the look-up of a foreign key.
        "INSERT INTO child VALUES (1, 2)",
        "UPDATE t SET amount = 'abc'",
        "DROP TABLE nosuchtable",
    ] {
        let error = session.try_run(statement).expect_err(statement);
        all.extend(fields(&error));
    }
    let copied = session.copy_in("COPY t (id, amount) FROM STDIN", "7\t7\n1\t1\n");
    all.extend(fields(&copied.expect_err("a duplicate key")));
    // The time of the row stands in its description.
    all.retain(|field| !field.contains("Failing row contains"));
    all
}

fn hides(server: &Server, database: &str) {
    let mut session = server.connect(database, "postgres");
    // C6.
    for query in [
        "SELECT id FROM t",
        "SELECT id FROM t WHERE id IN (1, 2)",
        "DELETE FROM t WHERE id = 2 RETURNING id; SELECT 1",
        "SELECT a.id FROM t AS a RIGHT JOIN t AS b USING (id)",
    ] {
        assert_eq!(session.column(query), ["1"], "{query}");
    }
    assert_eq!(session.copy_out("COPY t (id) TO STDOUT"), ["1"]);
    assert_eq!(session.copy_out("COPY (SELECT id FROM t) TO STDOUT"), ["1"]);
    session.run("SET ttl.show_expired = on");
    assert_eq!(session.value("SELECT count(*) FROM t"), "2");
    session.run("RESET ttl.show_expired");
    // C1.
    session.run("UPDATE t SET amount = 11, _ts = '2000-01-01'");
    assert_eq!(
        session.column("SELECT id FROM t WHERE _ts > now() - interval '5 minutes'"),
        ["1"]
    );
    let known = session.value(
        "SELECT count(*) FROM pg_stat_statements WHERE query LIKE 'SELECT a.id FROM t AS a RIGHT JOIN%' AND rows = 1",
    );
    assert_eq!(known, "1");
}

/// C1, C6, and errors, in any order of the libraries.
#[test]
fn among_other_extensions() {
    if lacks_library("pg_stat_statements", "hook_chain::among_other_extensions") {
        return;
    }
    let alone = Server::start(&[]);
    alone
        .database("app")
        .connect()
        .run(&TABLES.replace("CREATE EXTENSION pg_stat_statements;", ""));
    let expected = all_errors(&alone, "app");
    assert_eq!(
        expected.len() % 15,
        14,
        "one field of one error is left out"
    );
    for libraries in [
        "pg_stat_statements, auto_explain, ttl_ext",
        "ttl_ext, pg_stat_statements, auto_explain",
        "pg_stat_statements, ttl_ext, auto_explain",
    ] {
        let mut settings = vec![("shared_preload_libraries", libraries)];
        settings.extend(SETTINGS);
        let server = Server::start(&settings);
        server.database("app").connect().run(TABLES);
        assert_eq!(all_errors(&server, "app"), expected, "{libraries}");
        hides(&server, "app");
    }
}
