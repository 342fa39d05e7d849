//! D4, M1, M7: `ttl.create_index`: what is read, what is refused, and that the field is named.

use super::value::Seconds;
use super::*;

pub(super) fn seconds(text: &str) -> Result<Seconds, CommandError> {
    let options = format!(r#"{{"expireAfterSeconds": {text}}}"#);
    CreateIndex::parse(r#"{"a": 1}"#, &options).map(|index| index.expire_after_seconds)
}

/// The field that the error names, having looked at its words.
#[track_caller]
fn refused(keys: &str, options: &str) -> (String, String) {
    let error = CreateIndex::parse(keys, options).expect_err(&format!("{keys} {options}"));
    assert!(
        !error.reason.is_empty() && !error.reason.ends_with('.'),
        "{error}"
    );
    assert!(error.to_string().len() < 1000, "{error}");
    (error.field, error.reason)
}

#[test]
fn m7_all_options() {
    let index = CreateIndex::parse(
        r#" {"last_modified": -1} "#,
        r#" {"partialFilterExpression": "level = 'debug'", "name": "by \"time\"", "expireAfterSeconds": 0}"#,
    )
    .unwrap();
    assert_eq!(index.column, "last_modified");
    assert!(index.descending);
    assert_eq!(index.name.as_deref(), Some("by \"time\""));
    assert_eq!(index.predicate.as_deref(), Some("level = 'debug'"));
    assert_eq!(index.expire_after_seconds.for_index(), Ok(0));
    let index = CreateIndex::parse(r#"{"a": 1}"#, r#"{"expireAfterSeconds": 5}"#).unwrap();
    assert_eq!((index.name, index.predicate), (None, None));
}

/// M7: one column, ascending or descending.
#[test]
fn m7_keys() {
    let options = r#"{"expireAfterSeconds": 1}"#;
    for (direction, descending) in [
        ("1", false),
        ("1.0", false),
        ("1e0", false),
        ("-1", true),
        ("-1.00", true),
    ] {
        let index = CreateIndex::parse(&format!(r#"{{"Spalte é": {direction}}}"#), options);
        let index = index.unwrap();
        assert_eq!(index.column, "Spalte é");
        assert_eq!(index.descending, descending, "{direction}");
    }
    for bad in [
        "\"hashed\"",
        "\"text\"",
        "\"2dsphere\"",
        "\"1\"",
        "true",
        "null",
        "0",
        "2",
        "-2",
        "1.5",
        "1.0000000000000000000001",
        "1e400",
        "[1]",
        "{}",
    ] {
        let (field, reason) = refused(&format!(r#"{{"a": {bad}}}"#), options);
        assert_eq!(field, "keys.a", "{bad}");
        assert!(
            reason.starts_with("must be 1 (ascending) or -1 (descending)"),
            "{reason}"
        );
    }
    let long = format!(r#"{{"{}": 1}}"#, "x".repeat(64));
    for bad in [
        "{}",
        r#"{"a": 1, "b": 1}"#,
        r#"{"a": 1, "b": "hashed", "c": -1}"#,
        r#"{"": 1}"#,
        r#"{"a\u0000b": 1}"#,
        &long,
        "[]",
        r#"["a"]"#,
        "null",
        "1",
        "1e400",
        "\"a\"",
        "",
        "{\"a\": 1",
        "{\"a\": 1} x",
    ] {
        assert_eq!(refused(bad, options).0, "keys", "{bad}");
    }
    let (_, reason) = refused(r#"{"a": 1, "b": 1}"#, options);
    assert!(reason.contains("one column"), "{reason}");
}

/// M1: 0 to 2147483647, however the number is written.
#[test]
fn m1_seconds() {
    for (text, value) in [
        ("0", 0),
        ("0.0", 0),
        ("-0", 0),
        ("0e5", 0),
        ("1", 1),
        ("3600", 3600),
        ("3600.0", 3600),
        ("3.6e3", 3600),
        ("36E+2", 3600),
        ("360000e-2", 3600),
        ("2147483647", i32::MAX),
        ("2147483647.000", i32::MAX),
        ("2.147483647e9", i32::MAX),
    ] {
        assert_eq!(seconds(text).unwrap().for_index(), Ok(value), "{text}");
    }
}

/// M7, M12: anything else is refused, and the error names the field.
#[test]
fn m12_bad_seconds() {
    let digits = format!("1{}", "0".repeat(400));
    let small = format!("0.{}1", "0".repeat(400));
    for bad in [
        "20.5",
        "0.1",
        "1e-1",
        "20.00000000000000000000000001",
        "-1.5",
        "-2",
        "-2147483648",
        "-2147483649",
        "2147483648",
        "2147483647.5",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551616",
        "1e10",
        "1e400",
        "-1e400",
        "1e99999999999",
        &digits,
        &small,
        "\"NaN\"",
        "\"Infinity\"",
        "\"20\"",
        "\"\"",
        "true",
        "false",
        "null",
        "[]",
        "[20]",
        "{}",
        r#"{"$numberInt": "20"}"#,
    ] {
        let options = format!(r#"{{"expireAfterSeconds": {bad}}}"#);
        let (field, reason) = refused(r#"{"a": 1}"#, &options);
        assert_eq!(field, "options.expireAfterSeconds", "{bad}");
        assert!(
            reason.starts_with("must be a whole number of seconds from 0 to 2147483647, not "),
            "{reason}"
        );
    }
}

/// D4, C2: the table's default may be -1, which an index's seconds may not, and
/// may not be 0, which an index's may.
#[test]
fn d4_seconds_of_the_default() {
    let never = seconds("-1").unwrap();
    assert_eq!(never.for_default(), Ok(-1));
    let error = never.for_index().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""options.expireAfterSeconds" must be a whole number of seconds from 0 to 2147483647, not -1"#
    );
    let zero = seconds("0.0").unwrap();
    assert_eq!(zero.for_index(), Ok(0));
    let error = zero.for_default().unwrap_err();
    assert_eq!(error.field, "options.expireAfterSeconds");
    assert!(error.reason.ends_with(", not 0"), "{error}");
    let most = seconds("2147483647").unwrap();
    assert_eq!(most.for_default(), Ok(i32::MAX));
}

/// M7: each option by its name, whatever is wrong with it.
#[test]
fn m7_options() {
    for (options, field) in [
        ("{}", "options.expireAfterSeconds"),
        (r#"{"name": "a"}"#, "options.expireAfterSeconds"),
        (r#"{"expireafterseconds": 1}"#, "options.expireafterseconds"),
        (
            r#"{"expireAfterSeconds": 1, "unique": 1}"#,
            "options.unique",
        ),
        (
            r#"{"expireAfterSeconds": 1, "hidden": null}"#,
            "options.hidden",
        ),
        (
            r#"{"collation": {"a": [1e400]}, "expireAfterSeconds": 1}"#,
            "options.collation",
        ),
        (r#"{"expireAfterSeconds": 1, "": 1}"#, "options."),
        ("[]", "options"),
        ("[3600]", "options"),
        ("null", "options"),
        ("3600", "options"),
        ("1e400", "options"),
        ("\"expireAfterSeconds\"", "options"),
    ] {
        assert_eq!(refused(r#"{"a": 1}"#, options).0, field, "{options}");
    }
    let (_, reason) = refused(r#"{"a": 1}"#, "{}");
    assert!(reason.contains("CREATE INDEX"), "{reason}");
    let (_, reason) = refused(r#"{"a": 1}"#, r#"{"collation": {}}"#);
    assert_eq!(reason, "is not supported");
    let long = format!(r#"{{"{}": 1}}"#, "é".repeat(5000));
    let (field, _) = refused(r#"{"a": 1}"#, &long);
    assert!(field.starts_with("options.éé") && field.ends_with("... (5008 characters)"));
}

/// M7: what drivers add and `getIndexes()` shows changes nothing.
#[test]
fn m7_ignored_options() {
    let plain = CreateIndex::parse(r#"{"a": -1}"#, r#"{"expireAfterSeconds": 5, "name": "n"}"#);
    let plain = plain.unwrap();
    for more in [
        r#""v": 2"#,
        r#""v": 1.0, "background": true, "ns": "db.c""#,
        r#""background": null, "sparse": true, "unique": false"#,
        r#""key": {"a": -1}"#,
        r#""v": {"$numberInt": "2"}, "ns": [[1e400]]"#,
    ] {
        let options = format!(r#"{{{more}, "expireAfterSeconds": 5, "name": "n"}}"#);
        let index = CreateIndex::parse(r#"{"a": -1}"#, &options);
        assert_eq!(index.as_ref(), Ok(&plain), "{more}");
    }
    for (key, field) in [
        (r#"{"a": 1}"#, "options.key"),
        (r#"{"b": -1}"#, "options.key"),
        ("{}", "options.key"),
        ("1", "options.key"),
        (r#"{"a": "text"}"#, "options.key.a"),
    ] {
        let options = format!(r#"{{"key": {key}, "expireAfterSeconds": 5}}"#);
        assert_eq!(refused(r#"{"a": -1}"#, &options).0, field, "{key}");
    }
    let unique = r#"{"unique": true, "expireAfterSeconds": 5}"#;
    assert!(CreateIndex::parse(r#"{"a": 1}"#, unique).unwrap().unique);
}

/// M7: an index of `getIndexes()` in place of the keys.
#[test]
fn m7_whole_index() {
    let shown =
        r#"{"v": 2, "key": {"a": -1}, "name": "a_-1", "expireAfterSeconds": 5, "ns": "db.c"}"#;
    let index = CreateIndex::parse(shown, "{}").unwrap();
    assert_eq!((index.column.as_str(), index.descending), ("a", true));
    assert_eq!(index.name.as_deref(), Some("a_-1"));
    assert_eq!(index.expire_after_seconds.for_index(), Ok(5));
    let negative = shown.replace(": 5", ": -1");
    let negative = CreateIndex::parse(&negative, "{}").unwrap();
    let error = negative.expire_after_seconds.for_index().unwrap_err();
    assert_eq!(error.field, "keys.expireAfterSeconds");
    for (keys, options, field) in [
        (shown, r#"{"expireAfterSeconds": 5}"#, "options"),
        (shown, "[]", "options"),
        (
            r#"{"v": 2, "key": {"a": 1}}"#,
            "{}",
            "keys.expireAfterSeconds",
        ),
        (r#"{"key": {"a": 1}, "weights": {}}"#, "{}", "keys.weights"),
        (r#"{"key": {"a": 1, "b": 1}}"#, "{}", "keys.key"),
        (r#"{"key": {"_fts": "text"}}"#, "{}", "keys.key._fts"),
        // A column of that name.
        (r#"{"key": 1}"#, "{}", "options.expireAfterSeconds"),
    ] {
        assert_eq!(refused(keys, options).0, field, "{keys} {options}");
    }
    let column = CreateIndex::parse(r#"{"key": 1}"#, r#"{"expireAfterSeconds": 5}"#).unwrap();
    assert_eq!(column.column, "key");
}

#[test]
fn m7_name() {
    let long = format!("\"{}\"", "é".repeat(32));
    for bad in [
        "\"\"",
        &long,
        "\"a\\u0000b\"",
        "null",
        "1",
        "true",
        "[\"a\"]",
        "{}",
        "1e400",
        "\"\\ud800\"",
    ] {
        let options = format!(r#"{{"expireAfterSeconds": 1, "name": {bad}}}"#);
        let (field, reason) = refused(r#"{"a": 1}"#, &options);
        assert_eq!(field, "options.name", "{bad}");
        assert!(
            reason.starts_with("must be a name of 1 to 63 bytes"),
            "{reason}"
        );
    }
}

/// M4: the predicate is SQL; MongoDB's form is told from other mistakes.
#[test]
fn m7_partial_filter_expression() {
    let of = |value: &str| {
        let options = format!(r#"{{"expireAfterSeconds": 1, "partialFilterExpression": {value}}}"#);
        let (field, reason) = refused(r#"{"a": 1}"#, &options);
        assert_eq!(field, "options.partialFilterExpression", "{value}");
        reason
    };
    for bad in [
        "null",
        "1",
        "1e400",
        "true",
        "[\"a\"]",
        "\"\"",
        "\" \\n\\t\"",
        "\"a\\u0000\"",
    ] {
        of(bad);
    }
    let reason = of(r#"{"level": {"$eq": "debug"}}"#);
    assert!(
        reason.starts_with("must be an SQL predicate as a string") && reason.contains("MongoDB"),
        "{reason}"
    );
}

/// M12: nesting does not exhaust the stack; the server's would end every session.
#[test]
fn m12_deep_nesting() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(refused(&deep, "{}").0, "keys");
    assert_eq!(refused(&format!(r#"{{"a": {deep}}}"#), "{}").0, "keys.a");
    for field in ["expireAfterSeconds", "name", "unique", "key"] {
        let options = format!(r#"{{"{field}": {deep}}}"#);
        let expected = format!("options.{field}");
        assert_eq!(refused(r#"{"a": 1}"#, &options).0, expected);
    }
}
