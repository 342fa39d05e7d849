//! The blocks of SQL, in the order of the page. `--> …` after a statement is what it returns
//! (`ttl_ext_e2e::answers`).

use ttl_ext_e2e::{Server, Session, answers, lacks_library};

use super::{LeftOut, PAGES, Place, TEXT, before};

/// Run by `examples.rs`: with workers, or a database for each section.
const ELSEWHERE: [&str; 3] = ["first-session.md", "foreign-keys.md", "recipes.md"];

/// A server may have been built without PostgreSQL's contrib.
const FOREIGN: Place = ("archive.md", "Another server");

const LEFT_OUT: &[(&str, &str, &str)] = &[
    (
        "archive.md",
        "COPY orders_archive TO 's3:",
        "needs pg_parquet and S3",
    ),
    ("citus.md", "", "needs Citus: tests/citus"),
    (
        "tools/pg_partman.md",
        "SELECT partman.",
        "needs pg_partman: tests/ecosystem/pg_partman",
    ),
    (
        "tools/pg_partman.md",
        "CALL partman.",
        "needs pg_partman: tests/ecosystem/pg_partman",
    ),
    (
        "tools/pgvector.md",
        "",
        "needs pgvector: tests/ecosystem/pgvector",
    ),
    (
        "tools/timescaledb.md",
        "",
        "needs TimescaleDB: tests/ecosystem/timescaledb",
    ),
];

/// A block of SQL, and the lines of the page between the former one and it, without marks of headings.
struct Block<'a> {
    above: Vec<&'a str>,
    sql: String,
}

impl Block<'_> {
    /// No statement begins with a name in the schema ttl: this is the signature of a function. `reference.rs` compares
    /// these with the catalog.
    fn is_signature(&self) -> bool {
        self.sql.starts_with("ttl.")
    }
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut above = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let Some(language) = text.strip_prefix("```") else {
            above.push(text.trim_start_matches(['#', ' ']));
            continue;
        };
        // In a list it is indented.
        let indent = line.len() - text.len();
        let inside = lines.by_ref();
        let inside = inside.take_while(|line| line.trim_start() != "```");
        let inside = inside.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default()));
        let sql = inside.collect();
        if language == "sql" {
            let above = std::mem::take(&mut above);
            found.push(Block { above, sql });
        }
    }
    found
}

#[derive(Debug, Default)]
struct Counts {
    pages: usize,
    databases: usize,
    blocks: usize,
    statements: usize,
    answers: usize,
    blocks_left_out: usize,
    signatures: usize,
}

impl Counts {
    /// Run a block, or what of it is not left out; its faults.
    fn run(
        &mut self,
        page: &str,
        block: &Block,
        session: &mut Session,
        left_out: &mut LeftOut,
    ) -> Vec<String> {
        let (mut any, mut faults) = (false, Vec::new());
        for step in answers::steps(&block.sql) {
            if left_out.has(page, step.sql()) {
                continue;
            }
            any = true;
            self.statements += 1;
            match step.run(session) {
                Ok(compared) => self.answers += usize::from(compared),
                Err(fault) => faults.push(format!("docs/{page}: {fault}\n{}", step.sql())),
            }
        }
        self.blocks += usize::from(any);
        self.blocks_left_out += usize::from(!any);
        faults
    }
}

#[test]
fn every_block_of_every_page() {
    let mut before = before();
    before.remove(&TEXT);
    let mut left_out = LeftOut::new(LEFT_OUT);
    let (mut counts, mut faults) = (Counts::default(), Vec::new());
    // The settings that users have, and slots for the workers of so many databases.
    let server = Server::start(&[
        ("ttl.enabled", "on"),
        ("ttl.guard_fraction", "0.5"),
        ("ttl.change_delay", "300"),
        ("max_worker_processes", "40"),
    ]);
    server.keep_databases();
    for (page, text) in PAGES {
        let blocks = blocks(text);
        if ELSEWHERE.contains(page) {
            assert!(!blocks.is_empty(), "docs/{page} has no SQL");
            continue;
        }
        let (signatures, blocks): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(Block::is_signature);
        assert!(signatures.is_empty() || *page == "reference.md", "{page}");
        counts.signatures += signatures.len();
        counts.pages += usize::from(!blocks.is_empty());

        let mut session = None;
        for block in &blocks {
            let begins = |at: &str| block.above.iter().any(|line| line.starts_with(at));
            let mut places = before.keys();
            let place = places.find(|(of, at)| of == page && !at.is_empty() && begins(at));
            let place = place.copied();
            if place == Some(FOREIGN) && lacks_library("postgres_fdw", "pages: docs/archive.md") {
                before.remove(&FOREIGN);
                continue;
            }
            if place.is_some() || session.is_none() {
                counts.databases += 1;
                let name = format!("page{}", counts.databases);
                server.database(&name);
                let session = session.insert(server.connect(&name, "postgres"));
                if let Some(sql) = before.remove(&place.unwrap_or((page, ""))) {
                    session.run(sql);
                }
            }
            if let Some(session) = &mut session {
                faults.extend(counts.run(page, block, session, &mut left_out));
            }
        }
    }
    println!("{counts:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    left_out.report();
    assert!(before.is_empty(), "for no block: {:?}", before.keys());
}
