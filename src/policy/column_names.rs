//! What names of columns say.

/// Words in the names of columns that say when a row came into being.
const CREATION: &[&str] = &[
    "creat",
    "insert",
    "issued",
    "added",
    "logged",
    "received",
    "occurred",
    "joined",
    "registered",
    "started",
    "birth",
    "born",
    "purchased",
    "ordered",
    "sent",
    "placed",
];
/// And when it was changed.
const CHANGE: &[&str] = &["updat", "modif", "chang", "touch", "last", "edit"];

/// Whether a column of that name is likely to keep the time of a row's creation, which no UPDATE should
/// overwrite.
pub(crate) fn is_creation_time(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(CREATION) && !has(CHANGE)
}
