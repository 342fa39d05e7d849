//! One name, one thing: no two files and no two types have the same name.

use crate::source::Source;
use std::collections::BTreeMap;

const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// A file named like another, and a type named like another. Tests and associated types are left out; a room's name
/// may be a folder's of another room.
pub(crate) fn faults(source: &Source) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut types: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in source.files.iter().filter(|file| !is_test(&file.path)) {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        if name != "mod.rs" {
            files.entry(name).or_default().push(file.path.clone());
        }
        for (number, line) in file.text.lines().enumerate() {
            if let Some(name) = declared(line) {
                let place = format!("{}:{}", file.path, number + 1);
                types.entry(name).or_default().push(place);
            }
        }
    }
    let files = files
        .into_iter()
        .map(|(name, places)| ("file", name, places));
    let types = types
        .into_iter()
        .map(|(name, places)| ("type", name, places));
    files
        .chain(types)
        .filter(|(_, _, places)| places.len() > 1)
        .map(|(what, name, places)| format!("{what} {name} is there twice: {}", places.join(", ")))
        .collect()
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.ends_with("_test.rs")
}

/// The type that the line declares.
fn declared(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let is_indented = code.len() < line.len();
    let rest = code.strip_prefix("pub").map_or(code, |rest| {
        rest.strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest)
    });
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    // Indented, it belongs to a trait.
    if !KINDS.contains(&kind) || (kind == "type" && is_indented) {
        return None;
    }
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let name = &rest[..end];
    name.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice() {
        let source = Source::of(&[
            ("a/one.rs", "pub(crate) struct Row;\nenum Way {}"),
            ("b/one.rs", "pub(super) type Way = u8;"),
            ("c.rs", "mod inner {\n    struct Row<'a>(&'a u8);\n}"),
        ]);
        assert_eq!(
            faults(&source),
            [
                "file one.rs is there twice: a/one.rs, b/one.rs",
                "type Row is there twice: a/one.rs:1, c.rs:2",
                "type Way is there twice: a/one.rs:2, b/one.rs:1",
            ]
        );
    }

    #[test]
    fn once() {
        let text = "pub struct Row;\nimpl Deref for Row {\n    type Target = u8;\n}";
        let other = "impl Deref for Line {\n    type Target = u8;\n}\n// struct Row is elsewhere";
        let source = Source::of(&[
            ("a/mod.rs", text),
            ("b/mod.rs", other),
            ("b/row_test.rs", "struct Row;"),
        ]);
        assert_eq!(faults(&source), [""; 0]);
    }
}
