//! What the HINTs say to run, as the regression tests have them, is SQL that PostgreSQL's grammar accepts.

#[pgrx::pg_schema]
mod tests {
    use crate::pg::abi::encoding;
    use crate::pg::session::contained_errors;
    use pgrx::prelude::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    const VERBS: [&str; 11] = [
        "SELECT ",
        "ALTER ",
        "CREATE ",
        "DROP ",
        "UPDATE ",
        "GRANT ",
        "SECURITY ",
        "REINDEX ",
        "BEGIN;",
        "SET ",
        "COMMIT;",
    ];

    /// The HINTs of all expected results.
    fn hints() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pg_regress/expected");
        let files = std::fs::read_dir(folder).expect("a folder of the repository");
        let mut found = BTreeSet::new();
        for file in files {
            let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a text");
            let hints = text.lines().filter_map(|line| line.strip_prefix("HINT:  "));
            found.extend(hints.map(str::to_owned));
        }
        found
    }

    /// The first statement, up to its semicolon; `None` if there is none.
    fn statement(text: &str) -> Option<&str> {
        let mut quote = None;
        for (at, c) in text.char_indices() {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                (None, ';') => return Some(&text[..=at]),
                _ => {}
            }
        }
        None
    }

    /// The statements that the HINT says to run.
    fn statements(hint: &str) -> Vec<&str> {
        let mut found = vec![];
        for (at, _) in hint.match_indices(' ') {
            let (before, rest) = (hint[..at].trim_end(), &hint[at + 1..]);
            let starts = VERBS.iter().any(|verb| rest.starts_with(verb));
            let is_action = before.ends_with(',') && rest.starts_with("ALTER ");
            if starts && before.ends_with([':', ';', ',']) && !is_action {
                // Where it says "run", a statement follows.
                let is_to_run = before.ends_with("run:");
                found.extend(statement(rest).or(is_to_run.then_some(rest)));
            }
        }
        found
    }

    fn is_accepted(statement: &str) -> bool {
        let text = encoding::query(statement);
        // SAFETY: a C string in; errors are contained.
        let parse = || unsafe {
            pg_sys::raw_parser(text.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        };
        contained_errors::contain(parse).is_ok()
    }

    #[pg_test]
    fn statements_in_hints_are_accepted() {
        let hints = hints();
        let all: BTreeSet<&str> = hints.iter().flat_map(|hint| statements(hint)).collect();
        assert!(all.len() > 100, "only {} statements were found", all.len());
        let is_whole = |statement: &str| statement.ends_with(';') && !statement.contains("...");
        let is_refused = |statement: &&&str| !is_whole(statement) || !is_accepted(statement);
        let refused: Vec<&&str> = all.iter().filter(is_refused).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}
