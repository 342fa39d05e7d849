//! C32: the options `ttl.*` as they are written.

use super::table_options::{OptionError, TableOptions};

type Given<'a> = (&'a str, Option<&'a str>, bool);

fn read(given: &[Given<'_>]) -> Result<TableOptions, OptionError> {
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
    let name = |name: &str| name.to_owned();
    for (given, error) in [
        (
            &[("defualt", Some("1"), false)][..],
            OptionError::Unknown(name("defualt")),
        ),
        (
            &[
                ("default_ttl", Some("1"), false),
                ("default_ttl", None, true),
            ],
            OptionError::Twice(name("default_ttl")),
        ),
        (&[("default_ttl", Some("1"), true)], OptionError::ResetValue),
        (
            &[("default_ttl", None, false)],
            OptionError::NoValue(name("default_ttl")),
        ),
        (
            &[("confirm", None, false)],
            OptionError::Nothing(name("confirm")),
        ),
        (
            &[("confirm", Some("maybe"), false)],
            OptionError::Boolean(name("confirm"), name("maybe")),
        ),
    ] {
        assert_eq!(read(given), Err(error));
    }
    let options = read(&[("hidden", Some("2"), false)]).unwrap();
    assert!(options.flag("hidden", true).is_err());
    for name in [
        "ttl.default_ttl, ",
        "ttl.ts_granularity, ",
        "ttl.index, ",
        "ttl.confirm",
    ] {
        assert!(OptionError::known().contains(name));
    }
}
