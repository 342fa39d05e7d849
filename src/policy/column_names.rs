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

/// Words in the names of columns that say when a row ends.
const END: &[&str] = &["expir", "until", "valid_to", "deadline", "due_"];

/// Words in the names of columns that have a time once something has happened to a row, and NULL before.
const EVENT: &[&str] = &[
    "delet",
    "remov",
    "discard",
    "revok",
    "archiv",
    "cancel",
    "clos",
    "complet",
    "finish",
    "confirm",
    "verif",
    "publish",
    "approv",
    "reject",
    "accept",
    "resolv",
    "disabl",
    "deactivat",
    "suspend",
    "banned",
    "blocked",
    "locked",
    "paid",
    "shipped",
    "deliver",
    "processed",
    "consumed",
    "redeem",
    "read_at",
    "used_at",
    "failed",
];

/// Whether a column of that name is likely to say by its NULL that something has not happened to a row.
pub(crate) fn is_event(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(EVENT) && !has(CHANGE)
}

/// Whether a column of that name is likely to keep the time at which a row ends.
pub(crate) fn is_end(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_one = |word: &&str| name.contains(*word);
    END.iter().any(is_one) || ["end", "ends", "end_at", "ends_at", "due"].contains(&name.as_str())
}

/// Whether a column of that name is likely to keep the time of a row's creation, which no UPDATE should
/// overwrite.
pub(crate) fn is_creation_time(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(CREATION) && !has(CHANGE)
}
