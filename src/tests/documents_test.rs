//! What the documents say of the source holds: files that they name are there, links lead
//! somewhere, and `docs/errors.md` has each SQLSTATE that the extension uses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pgrx::PgSqlErrorCode;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

fn below(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root().join(folder), ending, &mut found);
    found
}

/// Files of other programs.
const FILES_OF_OTHERS: &[&str] = &["structure.sql"];

/// What readers read; decisions tell of the past, and may name files that are gone.
fn documents() -> Vec<PathBuf> {
    let mut found = below("docs", ".md");
    found.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)));
    found
}

fn is_decision(document: &Path) -> bool {
    document.starts_with(root().join("docs/decisions"))
}

/// Words that look like names of files: `keys/plan.rs`, `scripts/demo.sh`, `races.rs`. Not
/// patterns (`bNN_*.rs`) and names with capitals, which a reader is to fill in.
fn named_files(text: &str) -> BTreeSet<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let words = text.split(|c| !part(c));
    let words = words.map(|word| word.trim_matches(['.', '/']));
    let is_file = |word: &&str| {
        let endings = [".rs", ".sql", ".spec", ".sh"];
        let ends = |end: &&str| word.len() > end.len() && word.ends_with(*end);
        endings.iter().any(ends)
            && !word.contains(|c: char| c == '*' || c.is_ascii_uppercase())
            && !FILES_OF_OTHERS.contains(word)
    };
    words.filter(is_file).collect()
}

#[test]
fn files_that_documents_name_are_there() {
    let mut all = vec![root().join("build.rs")];
    for folder in ["src", "sql", "tests", "scripts", "bench", "demo"] {
        all.extend(below(folder, ""));
    }
    let mut gone = Vec::new();
    for document in documents().iter().filter(|path| !is_decision(path)) {
        for name in named_files(&read(document)) {
            if !all.iter().any(|path| path.ends_with(name)) {
                gone.push(format!("{}: {name}", document.display()));
            }
        }
    }
    assert!(gone.is_empty(), "{gone:#?}");
}

/// The anchor that is made of a heading: lower case, hyphens for spaces, no other marks.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|&c| c.is_alphanumeric() || " -_".contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = outside_code(text).filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// The lines that are not in a fenced block.
fn outside_code(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    })
}

/// The targets of links to other documents and into them.
fn links(text: &str) -> Vec<String> {
    let text: Vec<&str> = outside_code(text).collect();
    let text = text.join("\n");
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let inside = targets.filter(|target| !target.contains("://"));
    inside.map(str::to_owned).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = read(&document);
        for link in links(&text) {
            let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let folder = document.parent().expect("a file in a folder");
            let target = match path {
                "" => document.clone(),
                path => folder.join(path),
            };
            let found = if fragment.is_empty() {
                target.exists()
            } else {
                target.is_file() && anchors(&read(&target)).contains(fragment)
            };
            if !found {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The codes in the first column of the table, as the source names them.
fn documented_codes() -> BTreeSet<String> {
    let text = read(&root().join("docs/errors.md"));
    let (_, table) = text.split_once("## SQLSTATEs").expect("its section");
    let mut found = BTreeSet::new();
    for row in table.lines().filter_map(|line| line.strip_prefix("| ")) {
        let (cell, _) = row.split_once(" | ").expect("a table");
        let words = cell.split(|c: char| !c.is_ascii_alphanumeric());
        let is_code = |word: &&str| {
            let digit = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
            word.len() == 5 && word.chars().all(digit)
        };
        for word in words.filter(is_code) {
            // As MAKE_SQLSTATE: six bits for each character.
            let code = word.bytes().rev();
            let code = code.fold(0, |code, c| (code << 6) + i32::from((c - b'0') & 0x3f));
            found.insert(format!("{:?}", PgSqlErrorCode::from(code)));
        }
    }
    found
}

#[test]
fn every_sqlstate_of_the_source_is_in_the_reference() {
    let documented = documented_codes();
    let mut missing = BTreeSet::new();
    let tests = root().join("src/tests");
    let sources = below("src", ".rs").into_iter();
    for path in sources.filter(|path| !path.starts_with(&tests)) {
        let source = read(&path);
        for rest in source.split("PgSqlErrorCode::ERRCODE_").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = format!("ERRCODE_{}", name.into_iter().next().unwrap_or_default());
            if !documented.contains(&name) {
                missing.insert(name);
            }
        }
    }
    assert!(!documented.is_empty() && missing.is_empty(), "{missing:#?}");
}

/// What makes a session of one role act as another.
const BECOMING: [&str; 2] = ["SET ROLE", "SESSION AUTHORIZATION"];

/// A session that has become the table's owner runs the owner's code, which can go back to the role
/// that the session began as. So no message, and no document for users, advises that.
#[test]
fn nobody_is_told_to_become_a_tables_owner() {
    let mut advice = Vec::new();
    let tests = root().join("src/tests");
    let sources = below("src", ".rs").into_iter();
    let sources = sources.filter(|path| !path.starts_with(&tests));
    for path in sources.chain(below("sql", ".sql")) {
        let text = read(&path);
        let code = text.lines().map(str::trim_start);
        let code = code.filter(|line| !line.starts_with("//") && !line.starts_with("-- "));
        let becomes = |line: &str| BECOMING.iter().any(|words| line.contains(words));
        let found = code.filter(|line| becomes(line));
        advice.extend(found.map(|line| format!("{}: {line}", path.display())));
    }
    for document in documents().iter().filter(|path| !is_decision(path)) {
        // A command may be broken between two lines.
        let text = read(document);
        let text: Vec<&str> = text.split_whitespace().collect();
        let text = text.join(" ");
        for words in BECOMING {
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once(words) {
                let sentence = before.rsplit(". ").next().unwrap_or_default();
                if !sentence.starts_with("Never ") {
                    advice.push(format!("{}: {sentence}{words}", document.display()));
                }
                rest = after;
            }
        }
    }
    assert!(advice.is_empty(), "{advice:#?}");
}
