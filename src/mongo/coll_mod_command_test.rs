//! M6, M7: `ttl.coll_mod`: what is read, what is refused, and that the field is named.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn refused(command: &str) -> CommandError {
    let error = CollMod::parse(command).expect_err(command);
    assert!(!error.reason.ends_with('.'), "{error}");
    error
}

/// M6: the index by its key or by its name.
#[test]
fn m6_both_forms() {
    let by_key = CollMod::parse(
        r#"{"collMod": "eventlog", "index": {"keyPattern": {"last_modified": 1}, "expireAfterSeconds": 100}}"#,
    )
    .unwrap();
    assert_eq!(by_key.table.as_deref(), Some("eventlog"));
    assert_eq!(
        by_key.index,
        IndexRef::KeyPattern {
            column: "last_modified".into(),
            descending: false
        }
    );
    assert_eq!(by_key.expire_after_seconds.for_index(), Ok(100));
    let by_name =
        CollMod::parse(r#"{"index": {"expireAfterSeconds": 1e2, "name": "idx"}}"#).unwrap();
    assert_eq!(by_name.table, None);
    assert_eq!(by_name.index, IndexRef::Name("idx".into()));
    assert_eq!(by_name.expire_after_seconds.for_index(), Ok(100));
    let descending =
        CollMod::parse(r#"{"index": {"expireAfterSeconds": 1, "keyPattern": {"a": -1.0}}}"#);
    assert_eq!(
        descending.unwrap().index,
        IndexRef::KeyPattern {
            column: "a".into(),
            descending: true
        }
    );
}

/// D4: `_ts` stands for the table's default here, too.
#[test]
fn d4_seconds_of_the_default() {
    let command = r#"{"index": {"keyPattern": {"_ts": 1}, "expireAfterSeconds": -1}}"#;
    let seconds = CollMod::parse(command).unwrap().expire_after_seconds;
    assert_eq!(seconds.for_default(), Ok(-1));
    assert_eq!(
        seconds.for_index().unwrap_err().field,
        "index.expireAfterSeconds"
    );
}

/// M7: each field by its name, whatever is wrong with it.
#[test]
fn m7_refused_commands() {
    let key = r#""keyPattern": {"a": 1}"#;
    let index = format!(r#""index": {{{key}, "expireAfterSeconds": 1}}"#);
    for (command, field) in [
        ("{}".into(), "index"),
        (r#"{"collMod": "t"}"#.into(), "index"),
        (r#"{"index": null}"#.into(), "index"),
        (r#"{"index": 1e400}"#.into(), "index"),
        (r#"{"index": []}"#.into(), "index"),
        (r#"{"index": [{"a": 1}, "b", 1]}"#.into(), "index"),
        (r#"{"index": "a"}"#.into(), "index"),
        (r#"{"index": {}}"#.into(), "index.keyPattern"),
        (
            r#"{"index": {"expireAfterSeconds": 1}}"#.into(),
            "index.keyPattern",
        ),
        (
            format!(r#"{{"index": {{{key}}}}}"#),
            "index.expireAfterSeconds",
        ),
        (
            r#"{"index": {"name": "a"}}"#.into(),
            "index.expireAfterSeconds",
        ),
        (
            format!(r#"{{"index": {{{key}, "name": "a", "expireAfterSeconds": 1}}}}"#),
            "index.name",
        ),
        (
            format!(r#"{{"index": {{{key}, "hidden": true}}}}"#),
            "index.hidden",
        ),
        (
            format!(r#"{{"index": {{{key}, "prepareUnique": true}}}}"#),
            "index.prepareUnique",
        ),
        (format!(r#"{{{index}, "validator": {{}}}}"#), "validator"),
        (format!(r#"{{"hidden": 1e400, {index}}}"#), "hidden"),
        (format!(r#"{{{index}, "collMod": 1}}"#), "collMod"),
        (format!(r#"{{{index}, "collMod": null}}"#), "collMod"),
        (format!(r#"{{{index}, "collMod": ""}}"#), "collMod"),
        (format!(r#"{{{index}, "": ""}}"#), ""),
        ("[]".into(), "command"),
        ("null".into(), "command"),
        ("1e400".into(), "command"),
        ("\"index\"".into(), "command"),
        ("{".into(), "command"),
        ("".into(), "command"),
    ] {
        assert_eq!(refused(&command).field, field, "{command}");
    }
    for name in ["hidden", "prepareUnique", "unique"] {
        let error = refused(&format!(r#"{{"index": {{"{name}": true}}}}"#));
        assert_eq!(
            error.to_string(),
            format!("\"index.{name}\" is not supported")
        );
    }
}

/// M12: the seconds are judged as those of `ttl.create_index`.
#[test]
fn m12_bad_seconds() {
    let digits = format!("-1{}", "0".repeat(400));
    for bad in [
        "-2",
        "2147483648",
        "9223372036854775808",
        "1e400",
        &digits,
        "0.5",
        "\"NaN\"",
        "\"20\"",
        "true",
        "null",
        "[]",
        "{}",
    ] {
        let error = refused(&format!(
            r#"{{"index": {{"name": "a", "expireAfterSeconds": {bad}}}}}"#
        ));
        assert_eq!(error.field, "index.expireAfterSeconds", "{bad}");
        assert!(error.to_string().len() < 300, "{error}");
    }
}

/// M7: the key is judged as that of `ttl.create_index`.
#[test]
fn m7_bad_key_patterns() {
    for (pattern, field) in [
        ("{}", "index.keyPattern"),
        (r#"{"a": 1, "b": 1}"#, "index.keyPattern"),
        (r#"{"": 1}"#, "index.keyPattern"),
        ("[]", "index.keyPattern"),
        ("null", "index.keyPattern"),
        ("\"a\"", "index.keyPattern"),
        ("1e400", "index.keyPattern"),
        (r#"{"a": "hashed"}"#, "index.keyPattern.a"),
        (r#"{"a": 0}"#, "index.keyPattern.a"),
        (r#"{"a": 1e400}"#, "index.keyPattern.a"),
    ] {
        let error = refused(&format!(
            r#"{{"index": {{"keyPattern": {pattern}, "expireAfterSeconds": 1}}}}"#
        ));
        assert_eq!(error.field, field, "{pattern}");
    }
    for name in ["\"\"", "null", "1", "{}"] {
        let error = refused(&format!(
            r#"{{"index": {{"name": {name}, "expireAfterSeconds": 1}}}}"#
        ));
        assert_eq!(error.field, "index.name", "{name}");
    }
}

proptest! {
    /// M6: what a client's JSON library writes is read as it was meant.
    #[test]
    fn m6_round_trip(
        name in "[^\u{0}]{1,15}", by_name in any::<bool>(), descending in any::<bool>(), value in 0i32..,
    ) {
        let index = if by_name {
            serde_json::json!({"name": name, "expireAfterSeconds": value})
        } else {
            let direction = if descending { -1 } else { 1 };
            serde_json::json!({"keyPattern": {name.as_str(): direction}, "expireAfterSeconds": value})
        };
        let command = CollMod::parse(&serde_json::json!({"index": index}).to_string()).unwrap();
        prop_assert_eq!(command.expire_after_seconds.for_index(), Ok(value));
        prop_assert_eq!(command.index, if by_name {
            IndexRef::Name(name)
        } else {
            IndexRef::KeyPattern { column: name, descending }
        });
    }

    /// No text makes it fail otherwise than by an error.
    #[test]
    fn m12_any_text(text in ".{0,60}") {
        let _ = CollMod::parse(&text);
        let _ = CollMod::parse(&format!(r#"{{"index": {{"keyPattern": {text}}}}}"#));
    }
}
