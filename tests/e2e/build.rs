//! Writes the list of the pages below docs with their texts, for `tests/library/pages.rs`: tests run as a user who
//! cannot read the repository, and a new page must not be forgotten.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The Markdown files below a folder. Decisions tell of the past: what they show need not work any more.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder docs") {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            if !path.ends_with("decisions") {
                pages(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

fn main() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    println!("cargo:rerun-if-changed={}", docs.display());
    let mut found = Vec::new();
    pages(&docs, &mut found);
    found.sort();
    let mut list = "&[\n".to_owned();
    for path in found {
        let name = path.strip_prefix(&docs).expect("a page below docs");
        let name = name.to_str().expect("a name in UTF-8");
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string");
    }
    list.push(']');
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("pages.rs"), list).expect("the list of pages");
}
