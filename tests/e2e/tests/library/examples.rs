//! The examples that users copy do what they say: README.md, `docs/recipes.md`, `docs/foreign-keys.md`,
//! `docs/first-session.md`, and the statements in the table of `docs/expiry-columns.md`. `--> …` after a statement is
//! what it returns (`ttl_ext_e2e::answers`). The other pages: `pages.rs`.

use ttl_ext_e2e::{Server, answers};

const README: &str = include_str!("../../../../README.md");
const RECIPES: &str = include_str!("../../../../docs/recipes.md");
const FOREIGN_KEYS: &str = include_str!("../../../../docs/foreign-keys.md");
const FIRST_SESSION: &str = include_str!("../../../../docs/first-session.md");
const EXPIRY_COLUMNS: &str = include_str!("../../../../docs/expiry-columns.md");

/// The fenced blocks of SQL.
fn blocks(text: &str) -> Vec<&str> {
    let blocks = text.split("```sql\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default());
    blocks.collect()
}

#[test]
fn the_readmes_first_lines() {
    let script = blocks(README)[0];
    assert_eq!(answers::steps(script).len(), 8, "{script}");
    let above = README.split("```sql").next().unwrap_or_default();
    assert!(above.lines().count() < 10, "SQL comes first");
    assert!(README.lines().count() <= 150);

    let server = Server::start_sweeping(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    assert_eq!(answers::follow(&mut session, script), 3);
}

/// What stands in code in the second column of "You want, you type", in its order.
#[test]
fn what_the_readme_says_to_type() {
    let (_, section) = README
        .split_once("## You want, you type")
        .expect("a heading");
    let (section, _) = section.split_once("\n## ").expect("a heading after it");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").nth(1));
    let code = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let typed: Vec<&str> = code.filter(|code| code.ends_with(';')).collect();
    assert!(typed.len() > 15, "{typed:?}");

    let server = Server::start_sweeping(&[("ttl.change_delay", "0")]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(
        "CREATE TABLE carts (id bigint PRIMARY KEY, what text);
         CREATE TABLE orders (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now());
         CREATE TABLE codes (id bigint PRIMARY KEY, expires_at timestamptz);
         CREATE TABLE items (id bigint PRIMARY KEY, epoch bigint);
         INSERT INTO carts VALUES (7, 'here'), (8, 'here');
         INSERT INTO orders VALUES (7, now() - interval '91 days'), (8, now());
         INSERT INTO codes VALUES (7, now() - interval '1 second'), (8, now() + interval '1 hour');
         CREATE TABLE visits (id bigint PRIMARY KEY, began timestamptz, seconds bigint);
         INSERT INTO items VALUES (7, 1000000000), (8, 9000000000);
         INSERT INTO visits VALUES (7, now(), -1), (8, now(), 3600);",
    );
    for statement in typed {
        session.run(statement);
        // From that statement on its expired row is hidden. NULL seconds end the rule.
        let named = statement.split('\'').nth(1);
        let table = named
            .filter(|_| !statement.contains("NULL"))
            .and_then(|name| {
                let of_index = format!(
                    "SELECT indrelid::regclass FROM pg_index WHERE indexrelid = '{name}'::regclass"
                );
                if statement.contains("ttl.expire_index(") {
                    Some(session.value(&of_index))
                } else {
                    statement
                        .contains("ttl.expire_after(")
                        .then(|| name.to_owned())
                }
            });
        if let Some(table) = table {
            let seen = session.column(&format!("SELECT id FROM {table}"));
            assert_eq!(seen, ["8"], "{statement}");
        }
    }
    assert_eq!(session.column("SELECT ttl FROM carts WHERE id = 7"), ["-1"]);
    assert_eq!(
        session.column("SELECT default_ttl FROM ttl.tables WHERE relation = 'tokens'::regclass"),
        ["1800"]
    );
    assert_eq!(
        session.column("SELECT default_ttl FROM ttl.tables WHERE relation = 'carts'::regclass"),
        ["∅"]
    );
}

/// "What you type" for each kind of column: of two rows, 7 has expired by all of its columns, and 8 by none.
#[test]
fn what_the_page_on_columns_says_to_type() {
    let rows = EXPIRY_COLUMNS
        .lines()
        .filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.rsplit(" | ").next());
    let code = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let typed: Vec<&str> = code
        .filter(|code| code.contains("INDEX i ON") || code.contains("ttl.expire_after("))
        .collect();
    assert_eq!(typed.len(), 14, "{typed:#?}");

    let server = Server::start(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(
        "CREATE TABLE events (id integer, created_at timestamptz);
         CREATE TABLE tokens (id integer, expires_at timestamptz);
         CREATE TABLE session (id integer, expire timestamp);
         CREATE TABLE cache (id integer, expires bigint);
         CREATE TABLE s (id integer, last_activity bigint);
         CREATE TABLE t (id integer, at timestamptz, expires_at text, expires_in integer DEFAULT 60,
                         minutes integer DEFAULT 1, lifetime interval DEFAULT '1 minute', last_used timestamptz,
                         status text DEFAULT 'done', data jsonb, during tstzrange,
                         created_at timestamptz, a timestamptz, b timestamptz, done_at timestamptz, failed_at timestamptz);
         INSERT INTO t (id, at) VALUES (7, now() - interval '1 year'), (8, now() + interval '1 day');
         UPDATE t SET created_at = at, a = at, b = at, done_at = at, failed_at = at, during = tstzrange(NULL, at),
                      expires_at = to_char(at, 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),
                      data = jsonb_build_object('exp', extract(epoch FROM at)::bigint);
         INSERT INTO events SELECT id, at FROM t;
         INSERT INTO tokens SELECT id, at FROM t;
         INSERT INTO session SELECT id, at FROM t;
         INSERT INTO cache SELECT id, extract(epoch FROM at) FROM t;
         INSERT INTO s SELECT id, extract(epoch FROM at) * 1000 FROM t;",
    );
    for statements in typed {
        // The page: "… is SELECT ttl.expire_index('i', 0); or other seconds".
        session.run(&statements.replace('…', "SELECT ttl.expire_index('i', 0);"));
        let table = session.value("SELECT relation FROM ttl.tables WHERE rules <> '[]'");
        let seen = session.column(&format!("SELECT id FROM {table}"));
        assert_eq!(seen, ["8"], "{statements}");
        session.run(&format!(
            "SELECT ttl.disable('{table}', revive_expired => true); DROP INDEX IF EXISTS i"
        ));
    }
}

#[test]
fn each_recipe() {
    let server = Server::start_sweeping(&[]);
    let mut answers = 0;
    for (n, section) in RECIPES.split("\n## ").skip(1).enumerate() {
        let title = section.lines().next().unwrap_or_default();
        let scripts = blocks(section);
        assert!(!scripts.is_empty(), "no SQL in {title}");
        // A database each: they use each other's names.
        let database = format!("recipe{n}");
        server.database(&database);
        let mut session = server.connect(&database, "postgres");
        let compared: usize = scripts
            .iter()
            .map(|sql| answers::follow(&mut session, sql))
            .sum();
        assert!(compared > 0, "no answer in {title}");
        answers += compared;
    }
    assert!(answers > 20, "{answers}");
}

/// Its tables say what happens; these are the same, as statements. Without workers, as `ttl.purge` counts.
#[test]
fn the_page_on_foreign_keys() {
    let server = Server::start(&[]);
    let mut answers = 0;
    for (n, section) in FOREIGN_KEYS.split("\n## ").skip(1).enumerate() {
        let scripts = blocks(section);
        if scripts.is_empty() {
            continue;
        }
        let database = format!("keys{n}");
        server.database(&database);
        let mut session = server.connect(&database, "postgres");
        answers += scripts
            .iter()
            .map(|sql| answers::follow(&mut session, sql))
            .sum::<usize>();
    }
    assert!(answers > 10, "{answers}");
}

/// Pasted into psql. What the worker has already done depends on the machine.
#[test]
fn the_first_session() {
    let server = Server::start_sweeping(&[]);
    server.database("app");
    let file = server.dir().join("session.sql");
    std::fs::write(&file, blocks(FIRST_SESSION).concat()).expect("a file");
    let mut psql = server.tool("psql", "app");
    psql.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(&file);
    let output = server.must_run(&mut psql).stdout;
    let output = String::from_utf8(output).expect("UTF-8");
    let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[..2], ["3|root", "3|root"], "{output}");
    for part in [
        "Filter: ttl.live(_ts, ttl, 3600)",
        "\nsessions|3600|{}\n",
        "\nsessions|",
    ] {
        assert!(output.contains(part), "{part}\n{output}");
    }
}
