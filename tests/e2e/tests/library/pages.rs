//! All SQL of all pages below docs, decisions aside, runs without an error: the blocks (`blocks.rs`), and the
//! statements in the text and in tables (`text.rs`). `build.rs` makes the list of pages, so that a new one is run too.
//!
//! What pages take for granted, their tables for example, is in `pages/before.sql`: below `-- page: NAME` for the
//! blocks of a page, which have a database of their own. `-- page: NAME, at: TEXT` begins another database, for the
//! blocks below the page's line, a heading for example, that begins with TEXT. Below `-- page: text` is what the
//! statements in the text of all pages have, for one page in a schema of its name.

mod blocks;
mod text;

use std::collections::BTreeMap;

/// Names, without the folder docs, and texts.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// A page, and the text at which it is run: the empty one is the page's beginning.
type Place = (&'static str, &'static str);

const TEXT: Place = ("text", "");

fn before() -> BTreeMap<Place, &'static str> {
    let parts = include_str!("pages/before.sql").split("-- page: ").skip(1);
    let parts = parts.map(|part| {
        let (head, sql) = part.split_once('\n').expect("SQL after its head");
        (head.split_once(", at: ").unwrap_or((head, "")), sql)
    });
    parts.collect()
}

/// Statements that cannot run here: the page, how they begin, and why. Each must be there.
struct LeftOut {
    list: &'static [(&'static str, &'static str, &'static str)],
    counts: Vec<usize>,
}

impl LeftOut {
    fn new(list: &'static [(&str, &str, &str)]) -> LeftOut {
        LeftOut {
            list,
            counts: vec![0; list.len()],
        }
    }

    fn has(&mut self, page: &str, sql: &str) -> bool {
        let is = |entry: &&(&str, &str, &str)| entry.0 == page && sql.starts_with(entry.1);
        let found = self.list.iter().position(|entry| is(&entry));
        if let Some(n) = found {
            self.counts[n] += 1;
        }
        found.is_some()
    }

    fn report(&self) {
        for (count, (page, begin, why)) in self.counts.iter().zip(self.list) {
            println!("left out: {count} of docs/{page}: {begin}…: {why}");
            assert!(*count > 0, "docs/{page} has no statement {begin}…");
        }
    }
}
