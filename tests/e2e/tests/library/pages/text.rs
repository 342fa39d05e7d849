//! The statements that stand in code in the text and in tables.

use ttl_ext_e2e::{Server, Session, describe};

use super::{LeftOut, PAGES, TEXT, before};

const LEFT_OUT: &[(&str, &str, &str)] = &[
    ("expiry-columns.md", "", "the table is run by examples.rs"),
    ("compatibility.md", "SELECT *", "a part of a statement"),
    (
        "troubleshooting.md",
        "CREATE EXTENSION",
        "the extension is there; a block of installing.md",
    ),
];

/// Whole statements: queries and changes, and what ends with a semicolon. Without those that the reader is to
/// complete, except for a number of seconds `n`.
fn statements(page: &str) -> Vec<String> {
    let mut text = String::new();
    let mut fenced = false;
    for line in page.lines().map(str::trim) {
        let fence = line.starts_with("```");
        fenced ^= fence;
        if !fence && !fenced {
            text = format!("{text}{line} ");
        }
    }
    let code = text.split('`').skip(1).step_by(2);
    let whole = |code: &&str| {
        let begins = ["SELECT ", "INSERT ", "UPDATE "];
        let statement = begins.iter().any(|begin| code.starts_with(begin))
            || code.starts_with(|c: char| c.is_ascii_uppercase()) && code.ends_with(';');
        statement && !code.contains('…')
    };
    let code = code.filter(whole);
    code.map(|code| code.replace(", n)", ", 60)").replace(", n,", ", 60,"))
        .collect()
}

/// They use each other's names, so nothing of it stays, unless that cannot be.
fn run(session: &mut Session, code: &str) -> Result<(), ttl_ext_e2e::Error> {
    let alone = ["CONCURRENTLY", "ALTER SYSTEM"];
    let undone = !alone.iter().any(|word| code.contains(word));
    if undone {
        session.run("BEGIN");
    }
    let mut statements = code.split_inclusive("; ");
    let run = statements.try_for_each(|statement| session.try_run(statement).map(drop));
    if undone {
        session.run("ROLLBACK");
    }
    run
}

#[test]
fn every_statement_in_the_text_of_pages() {
    let mut left_out = LeftOut::new(LEFT_OUT);
    let (mut count, mut faults) = (0, Vec::new());
    let server = Server::start(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(before().remove(&TEXT).expect("its part"));
    for (page, text) in PAGES {
        session.run(&format!("SET search_path = \"{page}\", public"));
        for code in statements(text) {
            if left_out.has(page, &code) {
                continue;
            }
            count += 1;
            if let Err(error) = run(&mut session, &code) {
                faults.push(format!("docs/{page}: {}\n{code}", describe(&error)));
            }
        }
    }
    println!("{count} statements");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    left_out.report();
}
