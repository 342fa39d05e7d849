//! S4 (docs/security.md): in SQL that the extension runs or installs, everything has its schema: functions,
//! operators, types, relations. What has none is looked up along the `search_path` of whoever
//! runs it, where everybody's temporary schema comes first for types.
//!
//! Reads the source. A string is taken for SQL by its words.

mod faults;
mod literals;
mod tokens;

use std::path::{Path, PathBuf};

/// Strings that are not run: the file, a part of the string, why.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "src/policy/table_options.rs",
        "ttl.{name} = ",
        "an option, not an operator",
    ),
    (
        "src/api/policy/needed_columns.rs",
        "= '-1'::integer",
        "as PostgreSQL prints a constraint",
    ),
    (
        "src/api/policy/needed_columns.rs",
        "time to live of the row",
        "a description",
    ),
    (
        "src/api/policy/document_column.rs",
        "and keep the age of each row",
        "a HINT, which is shown",
    ),
    (
        "src/ddl/lost_default.rs",
        "their default now have now()",
        "a message",
    ),
    (
        "src/api/status/parent_problems.rs",
        "no INSERT or UPDATE through",
        "a message",
    ),
    (
        "src/api/status/index_problems.rs",
        "FROM pg_stat_progress_create_index;",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/status/constraint_problems.rs",
        "/* Such rows expire",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/policy/problem.rs",
        "LEFT JOIN pg_catalog.pg_stat_activity",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/policy/problem.rs",
        "FROM ttl.stats WHERE",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/status/library.rs",
        "ALTER EXTENSION ttl_ext UPDATE;",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/status/deletion_problems.rs",
        "ALTER SYSTEM SET",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/status/deletion_problems.rs",
        "FROM pg_stat_activity WHERE",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/status/deletion_problems.rs",
        "SELECT clock_timestamp();",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/status/deletion_problems.rs",
        "/* If it is to be more",
        "advice of ttl.check, which is shown",
    ),
    (
        "src/api/policy/consequences.rs",
        "SET (fillfactor = 90)",
        "a HINT, which is shown",
    ),
    (
        "src/api/status/lasting_settings.rs",
        "ALTER SYSTEM SET",
        "advice of ttl.check, which is shown",
    ),
    ("src/api/policy/write_label.rs", "{name} = {", "a message"),
    (
        "src/api/policy/time_source.rs",
        "({column}::{})",
        "a HINT, which is shown",
    ),
    (
        "src/settings.rs",
        "INSERT and UPDATE do not set",
        "a description",
    ),
    (
        "src/lib.rs",
        "shared_preload_libraries",
        "a line of postgresql.conf",
    ),
    (
        "src/lib.rs",
        "ttl.enabled = off",
        "a line of postgresql.conf",
    ),
];

/// Words of which one is in each piece of SQL that is long enough to have a fault.
const WORDS: &[&str] = &[
    "SELECT", "FROM", "WHERE", "JOIN", "INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "DROP",
    "CASE", "AND", "NULL", "LIMIT", "EXISTS", "LEAST", "NULLIF", "COALESCE", "DEFAULT", "CHECK",
];

/// Whether it is SQL, or shows some to a user.
fn is_sql(text: &str) -> bool {
    let marks = [
        "::",
        "OPERATOR(",
        "pg_catalog.",
        "ttl.",
        " = ",
        " <> ",
        " < ",
        " > ",
        " || ",
    ];
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_path = text
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    !is_path
        && !is_sentence(text)
        && (marks.iter().any(|mark| text.contains(mark)) || words.any(|word| WORDS.contains(&word)))
}

/// A hint or a detail: `The default is a number of seconds.`
fn is_sentence(text: &str) -> bool {
    let mut begin = text.chars();
    begin.next().is_some_and(char::is_uppercase)
        && begin.next().is_some_and(|c| c.is_lowercase() || c == ' ')
        && text.ends_with('.')
}

/// Keywords in lower case are not seen as such.
fn begins_in_lower_case(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let commands = [
        "select", "insert", "update", "delete", "alter", "create", "with",
    ];
    commands.contains(&first) && text.contains(['.', '{', '('])
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the source") {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

#[test]
fn every_name_in_sql_has_its_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    files(&root.join("src"), "rs", &mut all);
    files(&root.join("sql"), "sql", &mut all);
    let mut found = Vec::new();
    let mut used = vec![false; ALLOWED.len()];
    let mut read = 0;
    for path in all {
        let shown = path
            .strip_prefix(root)
            .expect("a file below")
            .display()
            .to_string();
        if shown.ends_with("_test.rs") || shown.starts_with("src/tests/") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a file of the source");
        let is_rust = shown.ends_with(".rs");
        let pieces = if is_rust {
            literals::of(&source)
        } else {
            vec![literals::Literal {
                line: 1,
                text: source,
            }]
        };
        for piece in pieces
            .iter()
            .filter(|piece| !is_rust || is_sql(&piece.text))
        {
            read += 1;
            let allowed = ALLOWED
                .iter()
                .position(|(file, part, _)| shown.ends_with(file) && piece.text.contains(part));
            if let Some(allowed) = allowed {
                used[allowed] = true;
                continue;
            }
            if is_rust && begins_in_lower_case(&piece.text) {
                found.push(format!("{shown}:{}: keywords in lower case", piece.line));
            }
            for fault in faults::of(&piece.text, is_rust) {
                found.push(format!(
                    "{shown}:{}: {fault}\n    {}",
                    piece.line, piece.text
                ));
            }
        }
    }
    assert!(read > 50, "only {read} pieces of SQL were found");
    assert!(
        found.is_empty(),
        "{} names without a schema\n{}",
        found.len(),
        found.join("\n")
    );
    for ((file, part, _), used) in ALLOWED.iter().zip(used) {
        assert!(used, "{file} has no string any more with {part:?}");
    }
}

/// What is planted is found, of each kind.
#[test]
fn planted_faults_are_found() {
    let planted = [
        "SELECT c.conname::text FROM pg_catalog.pg_constraint AS c",
        "SELECT a::\"char\" FROM pg_catalog.pg_class",
        "SELECT {}::{}",
        "SELECT 'pg_class'::pg_catalog.regclass",
        "SELECT count(*) FROM {}",
        "SELECT \"count\"(*) FROM {}",
        "SELECT 1 FROM pg_class",
        "SELECT 1 FROM {} AS t JOIN pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.oid",
        "DELETE FROM ONLY t WHERE true",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "{a} = {b}",
        "a OPERATOR(=) b AND true",
        "WHERE a->>'x' IS NULL",
        "WHERE a IN ({})",
        "WHERE a LIKE 'x'",
        "WHERE a BETWEEN 1 AND 2",
        "SELECT NULLIF(a, b)",
        "SELECT CASE a WHEN b THEN c END",
        "WHERE a IS DISTINCT FROM b",
        "FROM {} AS a JOIN {} AS b USING (id)",
        "SELECT timestamptz 'now'",
        "SELECT CAST(a AS text)",
        "SELECT 1 FROM {} TABLESAMPLE system (1)",
        "ORDER BY a COLLATE \"C\" LIMIT 1",
        "ALTER TABLE {t} ADD COLUMN {c} timestamptz",
        "CREATE FUNCTION ttl.f(a text) RETURNS integer",
        "CREATE FUNCTION ttl.f(a integer, text) RETURNS integer",
        "CREATE FUNCTION ttl.f() RETURNS SETOF record",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TYPE ttl.t (INPUT = t_in)",
        "CREATE TYPE ttl.t (LIKE = t)",
        "CREATE CAST (text AS ttl.t) WITH INOUT",
        "CREATE CAST (integer AS t) WITH INOUT",
    ];
    for sql in planted {
        assert!(is_sql(sql) && !faults::of(sql, true).is_empty(), "{sql}");
    }
    assert!(begins_in_lower_case("select count(*) from pg_class"));
    let right = [
        "WITH RECURSIVE t (a) AS (SELECT 1 UNION SELECT a FROM t) SELECT pg_catalog.max(a) FROM t",
        "SELECT t.a::pg_catalog.\"char\"[], b::integer, -1, {}::pg_catalog.{} FROM ONLY {} AS t WHERE t.a \
         OPERATOR(pg_catalog.=) ANY ('{{a,b}}'::pg_catalog.text[]) FOR UPDATE SKIP LOCKED",
        "CREATE FUNCTION ttl.f(a integer DEFAULT -1, OUT b pg_catalog.text) RETURNS double precision",
        "CREATE TYPE ttl.t (INPUT = ttl.t_in, LIKE = integer, CATEGORY = 'U')",
        "CREATE CAST (double precision AS ttl.t) WITHOUT FUNCTION AS IMPLICIT",
    ];
    for sql in right {
        assert_eq!(faults::of(sql, true), Vec::<String>::new(), "{sql}");
    }
}

/// Distinguishes literals from comments, characters and lifetimes.
#[test]
fn literals_are_read() {
    let source = "// \"no\"\nfn f<'a>(c: char) { g('\"', '\\'', \"a\\\n   b\\\"\", r#\"c\"d\"#, c\"e\") } /* \"no\" */";
    let found: Vec<String> = literals::of(source).into_iter().map(|l| l.text).collect();
    assert_eq!(found, ["ab\"", "c\"d", "e"]);
}
