//! C32: what DDL makes is what the functions make, by every protocol, and after a dump.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// The policy, and whether it waits for `ttl.resume`.
fn policy(session: &mut Session, table: &str) -> String {
    session.value(&format!(
        "SELECT label::jsonb - 'restored' || jsonb_build_object('own', NOT label::jsonb ? 'restored')
           FROM pg_seclabels WHERE objoid = '{table}'::regclass AND provider = 'ttl'"
    ))
}

/// C32: a prepared statement runs again and again, by the extended protocol and by PREPARE's
/// function; its tree is not changed.
#[test]
fn prepared_statements_run_twice() {
    let database = server().database("prepared");
    let mut session = database.connect();
    let mut prepare = |sql: &str| session.client.prepare(sql).expect("prepared");
    let create = prepare("CREATE TABLE t (id int) WITH (ttl.default_ttl = 60, fillfactor = 70)");
    let alter = prepare("ALTER TABLE t SET (ttl.default_ttl = '2 minutes', fillfactor = 80)");
    let reset = prepare("ALTER TABLE t RESET (ttl.default_ttl)");
    let drop = prepare("DROP TABLE t");
    for _ in 0..3 {
        for (statement, default_ttl) in [
            (&create, "60"),
            (&alter, "120"),
            (&reset, "NULL"),
            (&alter, "120"),
        ] {
            session.client.execute(statement, &[]).expect("executed");
            let told = session.value(
                "SELECT coalesce(label::jsonb ->> 'default_ttl', 'NULL') FROM pg_seclabels
                  WHERE objoid = 't'::regclass AND provider = 'ttl'",
            );
            assert_eq!(told, default_ttl);
        }
        session.client.execute(&drop, &[]).expect("executed");
    }
}

fn dumped(database: &Database<'_>, table: &str) -> String {
    schema_of(database, &["-t", table])
}

/// What `pg_dump --schema-only` says, without the random word that newer versions write.
pub(crate) fn schema_of(database: &Database<'_>, arguments: &[&str]) -> String {
    let mut dump = database.tool("pg_dump");
    let output = dump.arg("--schema-only").args(arguments).output();
    let output = output.expect("pg_dump");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let is_same =
        |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
    text.lines()
        .filter(is_same)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// C32: a table that DDL made has the label and the dump of one that the function made, and is
/// restored as that is.
#[test]
fn dumps_are_those_of_the_function() {
    let database = server().database("forms");
    let mut session = database.connect();
    session.run(
        "CREATE SCHEMA a; CREATE SCHEMA b;
         CREATE TABLE a.t (id int PRIMARY KEY, doc jsonb);
         SELECT ttl.enable('a.t', '30 days', document_column => 'doc', ts_granularity => 60);
         CREATE TABLE b.t (id int PRIMARY KEY, doc jsonb)
             WITH (ttl.default_ttl = '30 days', ttl.document_column = doc, ttl.ts_granularity = 60);",
    );
    assert_eq!(policy(&mut session, "b.t"), policy(&mut session, "a.t"));
    let by_ddl = dumped(&database, "b.t").replace("b.", "a.");
    let by_ddl = by_ddl.replace("Schema: b", "Schema: a");
    assert_eq!(by_ddl, dumped(&database, "a.t"));
    assert!(by_ddl.contains("SECURITY LABEL FOR ttl ON TABLE a.t"));
    assert!(!by_ddl.contains("ttl.default_ttl"));

    // Restored: it waits for its owner.
    session.run("DROP TABLE a.t");
    session.run(&by_ddl);
    session.run("SET search_path = a");
    assert!(policy(&mut session, "a.t").contains(r#""own": false"#));
}
