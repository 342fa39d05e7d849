//! The index of messages in `docs/errors.md` has the text of every error, warning and notice that
//! the source writes out, and no other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of the crate that are no tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry of a folder").path();
        let name = path.to_string_lossy();
        if path.is_dir() && !name.ends_with("/tests") {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("_test.rs") {
            found.push(path);
        }
    }
}

/// The string literal at the beginning of a piece of source, as an argument or in `format!`.
fn literal(code: &str) -> Option<String> {
    let code = code.trim_start().trim_start_matches('&');
    let code = code.strip_prefix("format!(").unwrap_or(code);
    let mut characters = code.trim_start().strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            c => text.push(c),
        }
    }
}

/// With `…` for each value that is put in.
fn pattern(text: &str) -> String {
    let mut pieces = text.split('{');
    let mut found = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (_, rest) = piece.split_once('}').expect("the end of a placeholder");
        found = format!("{found}…{rest}");
    }
    found
}

/// What makes an error of a message.
const CONSTRUCTORS: [&str; 7] = [
    "::for_notice(",
    "::for_warning(",
    "::not_ready(",
    "::invalid(",
    "::unsupported(",
    "::wrong_kind(",
    "::denied(",
];

/// What follows the SQLSTATE where an error is made, is the argument of a constructor, or the value of a variable `message`.
fn messages(source: &str) -> BTreeSet<String> {
    let lines = source.lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = code.collect();
    let code = code.join("\n");
    let made = code.split("::new(").skip(1).filter_map(|rest| {
        let rest = rest.trim_start().strip_prefix("PgSqlErrorCode::")?;
        literal(rest.split_once(',')?.1)
    });
    let named = code.split("let message =").skip(1).filter_map(literal);
    let told = CONSTRUCTORS
        .iter()
        .flat_map(|name| code.split(name).skip(1).filter_map(literal));
    made.chain(told)
        .chain(named)
        .map(|text| pattern(&text))
        .collect()
}

/// The first column of the index.
fn index() -> BTreeSet<String> {
    let text = read(&root().join("docs/errors.md"));
    let (_, section) = text.split_once("\n## By message\n").expect("its section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split_once("` |"));
    cells.map(|(message, _)| message.to_owned()).collect()
}

#[test]
fn the_index_has_every_message() {
    let mut paths = Vec::new();
    sources(&root().join("src"), &mut paths);
    let source: BTreeSet<String> = paths
        .iter()
        .flat_map(|path| messages(&read(path)))
        .collect();
    let index = index();
    let missing: Vec<_> = source.difference(&index).collect();
    let invented: Vec<_> = index.difference(&source).collect();
    assert!(source.len() > 90, "{source:#?}");
    assert!(
        missing.is_empty() && invented.is_empty(),
        "docs/errors.md, By message: missing {missing:#?}, not in the source {invented:#?}"
    );
}
