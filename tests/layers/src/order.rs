//! The order of the rooms, and what breaks it.

use crate::source::Source;

/// From top to bottom. A room uses only those that come after it. Of a large room its folders are rooms of their
/// own, below what stands in the room itself.
pub(crate) const ORDER: &[&str] = &[
    "tests",
    "lib",
    "hooks",
    "api",
    "api/mongo",
    "api/rows",
    "api/status",
    "api/policy",
    "ddl",
    "worker",
    "worker/process",
    "worker/sweep",
    "worker/builder",
    "worker/shared",
    "worker/queue",
    "keys",
    "deletion",
    "stamp",
    "visibility",
    "clock",
    "store",
    "citus",
    "pg",
    "pg/plan",
    "pg/exec",
    "pg/session",
    "pg/catalog",
    "pg/server",
    "pg/abi",
    "mongo",
    "policy",
    "settings",
    "error",
];

/// Words that a room must not know, in code and in comments alike.
pub(crate) const WORDS: &[(&str, &[&str])] = &[("pg", &["ttl", "expir"])];

/// Each use that runs upwards, each room without a place in `order`, and each of `words` in a
/// room that must not know it, one line each.
pub(crate) fn faults(source: &Source, order: &[&str], words: &[(&str, &[&str])]) -> Vec<String> {
    let place = |room: &str| order.iter().position(|name| *name == room);
    let mut faults = Vec::new();
    for file in &source.files {
        if place(&file.room).is_none() {
            faults.push(format!(
                "{}: its room {} has no place",
                file.path, file.room
            ));
        }
        for (_, words) in words.iter().filter(|(room, _)| is_in(&file.room, room)) {
            for (number, line) in file.text.lines().enumerate() {
                let line = line.to_lowercase();
                if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                    let (path, room) = (&file.path, &file.room);
                    let number = number + 1;
                    faults.push(format!("{path}:{number}: {room}/ has no word of {word}"));
                }
            }
        }
    }
    for used in source.between_rooms() {
        if let (Some(from), Some(to)) = (place(used.room), place(used.to_room))
            && from > to
        {
            faults.push(format!(
                "{}:{}: {} uses {} above it: {}",
                used.path, used.line, used.room, used.to_room, used.name
            ));
        }
    }
    faults
}

/// Whether that is the room, or one of its own.
fn is_in(inner: &str, room: &str) -> bool {
    inner
        .strip_prefix(room)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(files: &[(&str, &str)]) -> Vec<String> {
        let order = ["tests", "lib", "upper", "lower"];
        faults(&Source::of(files), &order, &[("lower", &["secret"])])
    }

    const ROOMS: [(&str, &str); 3] = [
        ("lib.rs", "mod upper; mod lower;"),
        ("upper.rs", "use crate::lower::f;"),
        ("lower/mod.rs", "pub fn f() {}"),
    ];

    fn with(path: &'static str, text: &'static str) -> Vec<(&'static str, &'static str)> {
        let mut files = ROOMS.to_vec();
        files.retain(|(name, _)| *name != path);
        files.push((path, text));
        files
    }

    #[test]
    fn downwards_is_fine() {
        assert_eq!(faults_of(&ROOMS), Vec::<String>::new());
    }

    #[test]
    fn upwards_is_not() {
        for text in [
            "use crate::upper::g;",
            "use crate::{upper, other};",
            "use crate::{self, upper::{g, h}};",
            "fn f() { crate::upper::g() }",
            "fn f() { format!(\"{}\", crate::upper::g()) }",
            "use super::upper;",
            "mod inner { use super::super::upper::g; }",
            "mod inner { use super::{f, super::upper}; }",
            "fn f() -> super::upper::T { }",
            "pub(crate) use crate::upper as below;",
        ] {
            let faults = faults_of(&with("lower/mod.rs", text));
            assert_eq!(faults.len(), 1, "{text}: {faults:?}");
            assert!(faults[0].starts_with("lower/mod.rs:1: lower uses upper"));
        }
        let faults = faults_of(&with("lower/deep.rs", "use super::super::upper::g;"));
        assert_eq!(faults.len(), 1, "{faults:?}");
    }

    #[test]
    fn what_looks_like_it() {
        for text in [
            "// use crate::upper;",
            "/// [`crate::upper`]\nfn f() {}",
            "const S: &str = \"crate::upper::g\";",
            "mod upper { use super::f; fn g() {} }",
            "mod inner { use super::f; }",
            "use other::upper;",
        ] {
            let faults = faults_of(&with("lower/mod.rs", text));
            assert!(faults.is_empty(), "{text}: {faults:?}");
        }
    }

    #[test]
    fn rooms_within_a_room() {
        let order = ["lib", "house", "house/roof", "house/ground", "lower"];
        let faults_of =
            |files: &[(&str, &str)]| faults(&Source::of(files), &order, &[("house", &["secret"])]);
        let mut files = vec![
            ("house/mod.rs", "mod roof; mod ground; use roof::f;"),
            ("house/roof/mod.rs", "mod f; use super::ground::g;"),
            (
                "house/roof/f.rs",
                "use crate::house::ground::g; use crate::lower::h;",
            ),
            ("house/ground/mod.rs", "mod g;"),
            ("lower.rs", ""),
        ];
        assert_eq!(faults_of(&files), Vec::<String>::new());
        files.push(("house/ground/g.rs", "use super::super::roof::f; // secret"));
        assert_eq!(
            faults_of(&files),
            [
                "house/ground/g.rs:1: house/ground/ has no word of secret",
                "house/ground/g.rs:1: house/ground uses house/roof above it: house::roof::f"
            ]
        );
    }

    #[test]
    fn tests_may_use_all() {
        let mut files = with("lower/f_test.rs", "use crate::upper::g;");
        files.push(("tests/f.rs", "use crate::upper::g; use crate::lower::f;"));
        assert!(faults_of(&files).is_empty());
    }

    #[test]
    fn a_room_without_a_place() {
        let faults = faults_of(&with("attic.rs", ""));
        assert_eq!(faults, ["attic.rs: its room attic has no place"]);
    }

    #[test]
    fn words() {
        let faults = faults_of(&with("lower/a.rs", "\n// A Secret."));
        assert_eq!(faults, ["lower/a.rs:2: lower/ has no word of secret"]);
        assert!(faults_of(&with("upper.rs", "// secret")).is_empty());
    }
}
