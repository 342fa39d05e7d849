//! Decision 0004: the extension's hooks do not change errors. Every field is the same on servers
//! with and without the extension loaded.

use ttl_ext_e2e::{Database, Server};

const SETUP: &str = include_str!("errors_unharmed/setup.sql");
const STATEMENTS: &str = include_str!("errors_unharmed/statements.sql");

/// One statement per paragraph; comment lines are separate.
fn statements() -> Vec<String> {
    let paragraph = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("--"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let all = STATEMENTS.split("\n\n").map(paragraph);
    all.filter(|statement| !statement.trim().is_empty())
        .collect()
}

/// Run a statement in all ways that a client has, and show each error.
fn errors(database: &Database<'_>, statement: &str) -> Vec<String> {
    let mut session = database.connect_as("clerk");
    session.run("SET client_min_messages = error; SET check_function_bodies = on");
    let mut errors = Vec::new();
    let mut add = |how: &str, error: Option<postgres::Error>| match error {
        Some(error) if error.as_db_error().is_some() => {
            let fields = ttl_ext_e2e::fields(&error);
            errors.extend(fields.into_iter().map(|field| format!("{how}: {field}")));
        }
        other => errors.push(format!("{how}: no error of the server: {other:?}")),
    };
    if let Some((copy, data)) = statement.split_once("FROM STDIN\n") {
        let copied = session.copy_in(&format!("{copy}FROM STDIN"), &format!("{data}\n"));
        add("copy", copied.err());
    } else {
        add("simple", session.try_run(statement).err());
        session.run("ROLLBACK");
        add("extended", session.client.query(statement, &[]).err());
        session.run("ROLLBACK");
        add(
            "nested",
            session
                .try_run(&format!(
                    "DO $do$ BEGIN EXECUTE $q${statement}$q$; END $do$"
                ))
                .err(),
        );
    }
    errors
}

/// Without what may differ: the row's time in its description; and the row's text, which COPY adds to the line where
/// the table has a BEFORE INSERT trigger.
fn masked(errors: Vec<String>) -> Vec<String> {
    let mask = |field: String| {
        if let Some((before, _)) = field.split_once("Failing row contains") {
            return format!("{before}Failing row contains");
        }
        match field.split_once(": \\\"") {
            Some((line, _)) if line.contains("COPY item, line ") => format!("{line}\")"),
            _ => field,
        }
    };
    errors.into_iter().map(mask).collect()
}

fn compare(one: &Database<'_>, two: &Database<'_>) {
    let mut statements = statements();
    if one.server().major() >= 19 {
        // It succeeds there.
        statements.retain(|statement| statement != "COPY parts TO STDOUT");
    }
    assert!(
        statements.len() >= 40,
        "only {} statements",
        statements.len()
    );
    let mut differences = String::new();
    for statement in statements {
        let (loaded, bare) = (
            masked(errors(one, &statement)),
            masked(errors(two, &statement)),
        );
        if bare
            .iter()
            .any(|field| field.contains("no error of the server"))
        {
            differences += &format!("{statement}\n  is no test: {bare:?}\n");
        }
        for (loaded, bare) in loaded.iter().zip(&bare).filter(|(one, two)| one != two) {
            differences += &format!("{statement}\n  {loaded}\n  instead of {bare}\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

/// Errors keep severity, SQLSTATE, message, detail, hint, position, CONTEXT,
/// the names of the objects, and the place in the server's source.
#[test]
fn with_and_without_the_extension() {
    let loaded = Server::start(&[]);
    let bare = Server::start(&[("shared_preload_libraries", "")]);
    let with = loaded.database("errors");
    let without = bare.plain_database("errors");
    with.connect().run(SETUP);
    without.connect().run(SETUP);
    compare(&with, &without);

    // Once more with TTL on the tables that the statements use.
    let on = loaded.database("errors_on_ttl");
    let setup = SETUP.replace("CREATE ROLE clerk LOGIN;", "");
    let enable =
        "SELECT ttl.enable('item', 3600), ttl.enable('entry', 3600), ttl.enable('parts', 3600)";
    on.connect().run(&setup);
    on.connect().run(enable);
    compare(&on, &without);
}
