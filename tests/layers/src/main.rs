//! `ttl_layers [SRC]`: every use between the rooms of `src/` runs downwards.
//!
//! A room is a folder or a file right below `src/`. Prints how often each uses which, the
//! uses that run upwards, and the circles of files; fails if there is an upward use, a circle that no decision accepts,
//! a room without a place in the order, a word that a room must not know, a condition on one version of
//! PostgreSQL, or a name that two files or two types have.

mod circle;
mod names;
mod order;
mod source;
mod versions;

use order::{ORDER, WORDS};
use source::Source;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Where cargo runs it, not where it was built: clones share a target directory.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let default = package.join("../../src");
    let root = std::env::args().nth(1).map_or(default, PathBuf::from);
    let source = match Source::read(&root) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("ttl_layers: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut faults = order::faults(&source, ORDER, WORDS);
    faults.extend(versions::faults(&source));
    faults.extend(names::faults(&source));
    let circles = circle::all(&source);
    faults.extend(circle::faults(&circles));
    let mut between: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for used in source.between_rooms() {
        *between.entry((used.room, used.to_room)).or_default() += 1;
    }
    for room in ORDER {
        let uses: Vec<String> = between
            .iter()
            .filter(|((from, _), _)| from == room)
            .map(|((_, to), count)| format!("{to} {count}"))
            .collect();
        println!("{room:<12} {}", uses.join(", "));
    }
    for fault in &faults {
        println!("{fault}");
    }
    for circle in &circles {
        println!("circle: {}", circle.files.join(", "));
        if std::env::var_os("TTL_CIRCLE").is_some() {
            for (from, to) in &circle.uses {
                println!("    {from} uses {to}");
            }
        }
    }
    println!(
        "{} uses between rooms, {} faults, {} circles of files",
        between.values().sum::<usize>(),
        faults.len(),
        circles.len()
    );
    if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
