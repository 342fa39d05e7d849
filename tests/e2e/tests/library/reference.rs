//! The documents are right: `docs/reference.md`, `views.md` and `settings.md` list exactly the functions, views,
//! columns and settings that the server's catalog has.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ttl_ext_e2e::{Server, Session};

const REFERENCE: &str = concat!(
    include_str!("../../../../docs/reference.md"),
    include_str!("../../../../docs/views.md"),
    include_str!("../../../../docs/settings.md"),
);

/// Background deletion is on by default, but not in other tests' servers.
fn connect() -> Session {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let server = Server::start(&[
            ("ttl.enabled", "on"),
            ("ttl.guard_fraction", "0.5"),
            ("ttl.change_delay", "300"),
        ]);
        // Not the first test's alone.
        server.keep_databases();
        server.database("app");
        server
    });
    server.connect("app", "postgres")
}

/// The lines below a heading, up to the next one of its level or above.
fn section(heading: &str) -> impl Iterator<Item = &'static str> {
    let level = |line: &str| line.chars().take_while(|&c| c == '#').count();
    let mut lines = REFERENCE.lines();
    assert!(lines.any(|line| line == heading), "no heading '{heading}'");
    lines.take_while(move |line| level(line) == 0 || level(line) > level(heading))
}

/// The cells of the tables in a section whose rows begin with code, without its backquotes.
fn rows(heading: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let rows = section(heading).filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter(|row| row.starts_with('`'));
    rows.map(|row| {
        let cells = row.split('|');
        cells.map(|cell| cell.trim().trim_matches('`')).collect()
    })
}

/// The signatures in the fenced blocks of SQL, each in one line.
fn signatures() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut inside, mut text) = (false, String::new());
    for line in section("## Functions") {
        match line {
            "```sql" => inside = true,
            // What had no result was an example.
            "```" => {
                inside = false;
                text.clear();
            }
            _ if inside => {
                text = format!("{text} {}", line.trim());
                if text.contains('→') {
                    found.insert(text.trim().to_owned());
                    text.clear();
                }
            }
            _ => {}
        }
    }
    found
}

fn assert_same(what: &str, documented: &BTreeSet<String>, catalog: &BTreeSet<String>) {
    let missing: Vec<_> = catalog.difference(documented).collect();
    let invented: Vec<_> = documented.difference(catalog).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "{what} of the reference: missing {missing:#?}, not in the catalog {invented:#?}"
    );
}

#[test]
fn every_function() {
    let internal: BTreeSet<String> = rows("### Internal functions")
        .map(|row| row[0].to_owned())
        .collect();
    // As the reference writes them: short names of types, no casts of defaults, and names of
    // arguments as in a call, where "concurrently" needs no quotes.
    let functions = connect().rows(
        r#"SELECT oid::regprocedure,
                 regexp_replace(regexp_replace(regexp_replace(regexp_replace(
                     format('ttl.%s(%s) → %s', proname, replace(pg_get_function_arguments(oid), '"', ''),
                            pg_get_function_result(oid)),
                     'timestamp with time zone', 'timestamptz', 'g'),
                     'timestamp without time zone', 'timestamp', 'g'),
                     '''(-?\d+)''::integer', '\1', 'g'),
                     '::(name|text|integer|boolean|jsonb|regclass|timestamptz|ttl\.seconds)', '', 'g')
            FROM pg_proc WHERE pronamespace IN ('ttl'::regnamespace, 'ttl_internal'::regnamespace)"#,
    );
    let mut catalog = BTreeSet::new();
    for function in functions {
        let name = &function[usize::from(!internal.contains(&function[0]))];
        catalog.insert(name.clone());
    }
    let documented = signatures().union(&internal).cloned().collect();
    assert_same("functions", &documented, &catalog);
}

#[test]
fn every_column_of_every_view() {
    let mut session = connect();
    let views = session.column(
        "SELECT oid::regclass FROM pg_class
          WHERE relnamespace = 'ttl'::regnamespace AND relkind IN ('r', 'v', 'm', 'f', 'p')",
    );
    let headings = section("# Views").filter_map(|line| line.strip_prefix("## "));
    assert_same(
        "views",
        &headings.map(str::to_owned).collect(),
        &views.iter().cloned().collect(),
    );
    for view in views {
        let columns = session.column(&format!(
            "SELECT attname, replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz')
               FROM pg_attribute WHERE attrelid = '{view}'::regclass AND attnum > 0 AND NOT attisdropped
              ORDER BY attnum"
        ));
        let documented: Vec<String> = rows(&format!("## {view}"))
            .map(|row| format!("{}|{}", row[0], row[1]))
            .collect();
        assert_eq!(documented, columns, "columns of {view} in docs/views.md");
    }
}

/// Names, defaults, ranges and contexts.
#[test]
fn every_setting() {
    let settings = connect().column(
        "SELECT name, current_setting(name),
                CASE WHEN min_val IS NULL THEN '' ELSE concat_ws(' ', min_val, 'to', max_val, unit) END, context
           FROM pg_settings WHERE name LIKE 'ttl.%'",
    );
    let documented = rows("# Settings").map(|row| row[..4].join("|"));
    assert_same(
        "settings",
        &documented.collect(),
        &settings.into_iter().collect(),
    );
}
