//! C32: the options `ttl.*` as they are written.

use super::table_options::TableOptions;
use crate::error::Result;

type Given<'a> = (&'a str, Option<&'a str>, bool);

fn read(given: &[Given<'_>]) -> Result<TableOptions> {
    TableOptions::read(
        given
            .iter()
            .map(|&(name, value, reset)| (name.to_owned(), value.map(str::to_owned), reset)),
    )
}

#[test]
fn values_and_resets() {
    let options = read(&[
        ("default_ttl", Some("30 days"), false),
        ("hidden", None, false),
        ("ts_granularity", None, true),
        ("ttl_column", Some("none"), false),
        ("confirm", Some("ON"), false),
    ])
    .unwrap();
    assert_eq!(options.get("default_ttl"), Some(Some("30 days")));
    assert_eq!(options.flag("hidden", true), Ok(Some(true)));
    assert_eq!(options.flag("drop_partitions", false), Ok(None));
    assert_eq!(options.value("ts_granularity", "0"), Some("0"));
    assert_eq!(options.value("index", "btree"), None);
    assert_eq!(options.column("ttl_column"), Some(None));
    assert_eq!(options.column("ts_column"), None);
    assert!(options.confirm && !options.revive_expired);
    assert_eq!(
        options.confirmed(|text| format!("'{text}'")),
        "SET (ttl.default_ttl = '30 days', ttl.hidden = 'true', ttl.ttl_column = 'none', \
         ttl.confirm = true), RESET (ttl.ts_granularity)"
    );
}

#[test]
fn who_sets_what() {
    let names = |options: &TableOptions, with_enabling| {
        let others = options.others(with_enabling);
        others.map(|(option, _)| option.name).collect::<Vec<_>>()
    };
    let options = read(&[
        ("hidden", None, false),
        ("default_ttl", Some("60"), false),
        ("ts_granularity", None, true),
    ])
    .unwrap();
    assert!(options.enables());
    assert!(names(&options, true).is_empty());
    assert_eq!(names(&options, false), ["hidden", "ts_granularity"]);
    for (name, value, enables) in [
        ("default_ttl", None, false),
        ("index", None, true),
        ("document_column", Some("doc"), true),
        ("hidden", Some("on"), false),
    ] {
        let options = read(&[(name, value, value.is_none())]).unwrap();
        assert_eq!(options.enables(), enables, "{name}");
    }
}

#[test]
fn flags_in_reset() {
    let options = read(&[("default_ttl", None, true), ("revive_expired", None, true)]).unwrap();
    assert_eq!(options.get("default_ttl"), Some(None));
    assert_eq!(options.first_set(), None);
    assert!(options.revive_expired);
    let options = read(&[("hidden", None, true)]).unwrap();
    assert_eq!(options.flag("hidden", true), Ok(Some(true)));
}

#[test]
fn refused() {
    for (given, message) in [
        (
            &[("defualt", Some("1"), false)][..],
            "unrecognized parameter \"ttl.defualt\"",
        ),
        (
            &[
                ("default_ttl", Some("1"), false),
                ("default_ttl", None, true),
            ],
            "parameter \"ttl.default_ttl\" specified more than once",
        ),
        (
            &[("default_ttl", Some("1"), true)],
            "RESET must not include values for parameters",
        ),
        (
            &[("default_ttl", None, false)],
            "parameter \"ttl.default_ttl\" needs a value",
        ),
        (
            &[("confirm", None, false)],
            "parameter \"ttl.confirm\" cannot be given alone",
        ),
        (
            &[("confirm", Some("maybe"), false)],
            "invalid value for boolean parameter \"ttl.confirm\": \"maybe\"",
        ),
    ] {
        assert_eq!(read(given).unwrap_err().message, message);
    }
    let options = read(&[("hidden", Some("2"), false)]).unwrap();
    assert!(options.flag("hidden", true).is_err());
    let unknown = read(&[("defualt", Some("1"), false)]).unwrap_err();
    for name in [
        "ttl.default_ttl, ",
        "ttl.ts_granularity, ",
        "ttl.index, ",
        "ttl.confirm",
    ] {
        assert!(
            unknown
                .hint
                .as_ref()
                .is_some_and(|hint| hint.contains(name))
        );
    }
}
