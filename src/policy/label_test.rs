//! C2, D1, M1: the label's format: what is read, what is refused, and the round trip.

use super::added::Added;
use super::label::*;
use super::local_state::LocalState;
use super::local_state::{ArchiveChoice, Home};
use super::rule::IndexRule;
use pgrx::PgSqlErrorCode;
use proptest::prelude::*;

#[test]
fn minimal_label_has_defaults() {
    let policy = Policy::parse(r#"{"default_ttl": 30}"#).unwrap();
    assert_eq!(policy.default_ttl, Some(30));
    assert_eq!(policy.ts_column.as_deref(), Some("_ts"));
    assert!(policy.rules.is_empty() && policy.hidden);
    assert_eq!(policy.ttl_column.as_deref(), Some("ttl"));
    assert_eq!(policy.version, LABEL_VERSION);
    let policy = Policy::parse(r#"{"ttl_column": null}"#).unwrap();
    assert_eq!((policy.default_ttl, policy.ttl_column), (None, None));
}

/// C2: what the default may be.
#[test]
fn c2_range_of_default_ttl() {
    for good in ["null", "-1", "1", "2147483647"] {
        assert!(
            Policy::parse(&format!(r#"{{"default_ttl": {good}}}"#)).is_ok(),
            "{good}"
        );
    }
    for bad in [
        "0",
        "-2",
        "2147483648",
        "-2147483649",
        "1e3",
        "30.0",
        "\"30\"",
        "true",
        "[]",
        "NaN",
    ] {
        assert!(
            Policy::parse(&format!(r#"{{"default_ttl": {bad}}}"#)).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn refused_labels() {
    for bad in [
        "",
        "null",
        "[]",
        "30",
        "{",
        r#"{"default": 30}"#,
        r#"{"version": 2}"#,
        r#"{"version": 0}"#,
        r#"{"ts_column": null}"#,
        r#"{"ts_column": null, "ttl_column": null, "default_ttl": 30}"#,
        r#"{"ts_column": ""}"#,
        r#"{"ttl_column": "_ts"}"#,
        r#"{"ttl_column": null, "document_column": "body"}"#,
        r#"{"document_column": "ttl"}"#,
        r#"{"default_ttl": 30, "default_ttl": 31}"#,
        r#"{"default_ttl": 30} x"#,
    ] {
        assert!(Policy::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn renames_are_followed() {
    let mut policy = Policy::parse(r#"{"document_column": "body"}"#).unwrap();
    assert!(policy.rename_column("ttl", "lifetime"));
    assert!(policy.rename_column("body", "doc"));
    assert!(policy.rename_column("_ts", "changed"));
    assert!(!policy.rename_column("other", "x"));
    assert_eq!(
        policy.columns().collect::<Vec<_>>(),
        ["changed", "lifetime", "doc"]
    );
}

/// C16: absent means 0, and 0 is not written; half of the default at most.
#[test]
fn c16_granularity() {
    let policy = Policy::parse(r#"{"default_ttl": 1800}"#).unwrap();
    assert_eq!(policy.ts_granularity, 0);
    assert!(!policy.to_label().contains("ts_granularity"));
    let policy = Policy::parse(r#"{"default_ttl": 1800, "ts_granularity": 900}"#).unwrap();
    assert_eq!(policy.ts_granularity, 900);
    assert!(policy.to_label().contains(r#""ts_granularity":900"#));
    // Without a default, or while TTL is off, no row is promised a time.
    for default in ["-1", "null"] {
        let label = format!(r#"{{"default_ttl": {default}, "ts_granularity": 2147483647}}"#);
        assert!(Policy::parse(&label).is_ok(), "{default}");
    }
    for (bad, default) in [(901, "1800"), (1, "1"), (-1, "-1"), (-1, "1800")] {
        let label = format!(r#"{{"default_ttl": {default}, "ts_granularity": {bad}}}"#);
        let error = Policy::parse(&label).unwrap_err();
        assert_eq!(error.message, format!("invalid ts_granularity: {bad} s"));
    }
    let lacking = r#"{"ts_column": null, "ttl_column": null, "ts_granularity": 1}"#;
    let error = Policy::parse(lacking).unwrap_err();
    assert_eq!(error.message, "ts_granularity needs a ts_column");
}

/// C26, C28: an archive has a name; a channel has one that NOTIFY takes.
#[test]
fn c26_archive() {
    let label = r#"{"archive_to": "s.t", "notify": "gone"}"#;
    let policy = Policy::parse(label).unwrap();
    let archive = policy.archive().unwrap();
    assert_eq!((archive.name.as_str(), archive.chosen), ("s.t", None));
    assert_eq!(Policy::parse(&policy.to_label()), Ok(policy));
    assert!(Policy::parse("{}").unwrap().archive().is_none());
    let long = "é".repeat(32);
    for bad in ["", "a\\u0000b", &"c".repeat(64), &long] {
        let label = format!(r#"{{"notify": "{bad}"}}"#);
        let error = Policy::parse(&label).unwrap_err();
        assert!(error.message.contains("\"notify\""), "{bad}: {error:?}");
    }
    for bad in [
        r#"{"archive_to": ""}"#,
        r#"{"local": {"database": 5}}"#,
        r#"{"archive_to": 7}"#,
    ] {
        assert!(Policy::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(
        crate::policy::batch_payload("s.\"T\"", 7),
        r#"{"rows":7,"table":"s.\"T\""}"#
    );
}

/// M11: absent means false, and false is not written.
#[test]
fn m11_drop_partitions() {
    let policy = Policy::parse("{}").unwrap();
    assert!(!policy.drop_partitions);
    assert!(!policy.to_label().contains("drop_partitions"));
    let policy = Policy::parse(r#"{"drop_partitions": true}"#).unwrap();
    assert!(policy.drop_partitions);
    assert!(policy.to_label().contains(r#""drop_partitions":true"#));
    for bad in ["1", "null", "\"true\""] {
        let label = format!(r#"{{"drop_partitions": {bad}}}"#);
        assert!(Policy::parse(&label).is_err(), "{bad}");
    }
}

/// A place for states in a database, of its extension.
fn home(database: u32) -> Home {
    Home {
        database,
        extension: 3,
    }
}

/// A label says what its owner wants, and nothing of this database: a dump of it, a label that a
/// statement gives, and one in a copy of the database are restored.
#[test]
fn labels_without_a_state_of_this_database_are_restored() {
    let label = r#"{"default_ttl": 60}"#;
    let read = |label: &str, local| {
        Policy::parse(label)
            .unwrap()
            .read_in(home(5), local, |owner| owner == 10)
    };
    let stored_in =
        |database| LocalState::parse(&LocalState::default().stored_in(home(database), 10));
    assert!(!read(label, stored_in(5)).restored);
    assert!(read(label, stored_in(6)).restored);
    let former = Home {
        extension: 2,
        ..home(5)
    };
    let before_it_was_dropped = LocalState::parse(&LocalState::default().stored_in(former, 10));
    assert!(read(label, before_it_was_dropped).restored);
    let of_another = LocalState::parse(&LocalState::default().stored_in(home(5), 11));
    assert!(read(label, of_another).restored && read(label, of_another).handed_over);
    assert!(!read(label, None).handed_over);
    assert_eq!(Some(read(label, of_another).local), of_another);
    assert!(read(label, None).restored);
    assert!(read(r#"{"restored": true}"#, stored_in(5)).restored);
    assert!(
        read(
            label,
            LocalState::parse(r#"{"home": {"database": 5, "extension": 3}, "newer": 1}"#)
        )
        .restored
    );
    let mut resumed = read(label, None);
    resumed.restored = false;
    assert_eq!(resumed.to_label(), Policy::parse(label).unwrap().to_label());
}

/// An archive is one that was chosen in this database, and stays so while the table waits for
/// `ttl.resume`.
#[test]
fn archives_of_other_databases_are_not_chosen() {
    let chosen = ArchiveChoice {
        table: 7,
        owner: 10,
    };
    let mut policy = Policy::parse("{}").unwrap();
    policy.choose_archive("s.t".to_owned(), chosen);
    let (label, stored) = (policy.to_label(), policy.local.stored_in(home(5), 10));
    let read = |database| {
        let policy = Policy::parse(&label).unwrap();
        policy.read_in(home(database), LocalState::parse(&stored), |owner| {
            owner == 10
        })
    };
    let archive = |policy: &Policy| policy.archive().expect("an archive").chosen;
    assert_eq!(archive(&read(5)), Some(chosen));
    assert_eq!(archive(&read(6)), None);
    let mut held = read(5);
    held.restored = true;
    assert_eq!(archive(&held), Some(chosen));
    held.end_archive();
    assert_eq!((held.archive(), held.local.archive), (None, None));
}

/// After pg_upgrade the archive is to be found by its name, once.
#[test]
fn archives_are_found_by_name_after_pg_upgrade() {
    let mut policy = Policy::parse(r#"{"archive_to": "s.t"}"#).unwrap();
    assert_eq!(policy.local.archive_by_name_of(), None);
    policy.local = LocalState::upgraded(10);
    assert_eq!(policy.local.archive_by_name_of(), Some(10));
    policy.choose_archive(
        "s.t".to_owned(),
        ArchiveChoice {
            table: 7,
            owner: 10,
        },
    );
    assert_eq!(policy.local.archive_by_name_of(), None);
    policy.end_archive();
    assert_eq!(policy.local.archive_by_name_of(), None);
}

proptest! {
    #[test]
    fn round_trip(
        default_ttl in proptest::option::of(prop_oneof![Just(-1), 1i32..]), hidden in any::<bool>(),
        seconds in proptest::collection::vec(0i32.., 0..4),
        ts_column in "[a-z_\"' é]{1,10}", ttl_column in proptest::option::of("[A-Z\\\\]{1,10}"),
        restored in any::<bool>(), drop_partitions in any::<bool>(), keep_expired in 0i32..,
        columns in proptest::collection::vec("[a-z\"]{1,5}", 0..3), ts_default in any::<bool>(), ttl_check in any::<bool>(),
        archive in proptest::option::of("[a-z\".é]{1,12}"), zone in proptest::option::of("[A-Za-z/_+<>0-9-]{1,63}"),
    ) {
        let policy = Policy {
            version: LABEL_VERSION, default_ttl, ts_column: Some(ts_column), ttl_column, document_column: None,
            archive_to: archive.clone(), notify: archive, restored, handed_over: restored, reaches_handed_over: restored, local: LocalState::default(), index: IndexMethod::Btree, build_pending: true, drop_partitions, hidden,
            ts_granularity: default_ttl.filter(|&ttl| ttl > 0).map_or(7, |ttl| ttl / 2),
            keep_expired,
            paused_until: None, delete_between: None,
            added: Added { indexes: columns.clone(), columns, ts_default, ttl_check, views: vec![] },
            rules: seconds.into_iter().enumerate().map(|(at, expire_after_seconds)| IndexRule {
                index: format!("i \"{at}"), expire_after_seconds, time_zone: zone.clone(),
            }).collect(),
        };
        prop_assert_eq!(Policy::parse(&policy.to_label()), Ok(policy.in_order()));
    }

    /// No text makes the parser fail otherwise than by an error.
    #[test]
    fn any_text(text in ".{0,60}") {
        let _ = Policy::parse(&text);
    }
}

/// C8, C9: a change by which rows that are expired could live again.
#[test]
fn changes_that_revive() {
    let of = |default_ttl| Policy {
        default_ttl,
        ..Policy::parse("{}").unwrap()
    };
    let off = None;
    for (from, to) in [
        (Some(10), off),
        (Some(-1), off),
        (Some(10), Some(-1)),
        (Some(10), Some(11)),
    ] {
        assert!(of(from).revives(Some(&of(to))), "{from:?} to {to:?}");
        assert!(of(from).revives(None));
    }
    for (from, to) in [
        (off, off),
        (off, Some(-1)),
        (off, Some(10)),
        (Some(-1), Some(-1)),
        (Some(-1), Some(10)),
        (Some(10), Some(10)),
        (Some(10), Some(9)),
    ] {
        assert!(!of(from).revives(Some(&of(to))), "{from:?} to {to:?}");
    }
    assert!(!of(off).revives(None));
    // D1: overrides in documents may be longer than the default.
    let documents = |default_ttl| Policy {
        document_column: Some("body".into()),
        ..of(default_ttl)
    };
    assert!(of(Some(10)).revives(Some(&documents(Some(10)))));
    assert!(of(Some(-1)).revives(Some(&documents(Some(10)))));
    assert!(!of(off).revives(Some(&documents(Some(10)))));
    assert!(!documents(Some(10)).revives(Some(&documents(Some(9)))));
}

/// S6 (docs/security.md): one label takes nobody else's time.
#[test]
fn labels_have_a_largest_size() {
    let rules = |count: usize, name: &str| Policy {
        rules: (0..count)
            .map(|n| IndexRule {
                index: format!("{n:03}{name}"),
                expire_after_seconds: i32::MAX,
                time_zone: Some("z".repeat(63)),
            })
            .collect(),
        ..Policy::parse("{}").unwrap()
    };
    let limit = |label: &str| Policy::parse(label).unwrap_err().code;
    let too_large = PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    assert_eq!(limit(&rules(MAX_RULES + 1, "i").to_label()), too_large);
    assert!(rules(MAX_RULES + 1, "i").check().is_err());
    // The longest names, each byte of which takes six in JSON.
    let longest = rules(MAX_RULES, &"\u{1}".repeat(60));
    let longest = Policy {
        ts_column: Some("\u{1}".repeat(63)),
        ttl_column: Some("\u{2}".repeat(63)),
        document_column: Some("\u{3}".repeat(63)),
        ..longest
    };
    let label = longest.to_label();
    assert_eq!(Policy::parse(&label), Ok(longest));
    let padded = format!("{label}{}", " ".repeat(MAX_LABEL_BYTES - label.len()));
    assert!(Policy::parse(&padded).is_ok());
    assert_eq!(limit(&format!("{padded} ")), too_large);
    let mut views = Policy::parse("{}").unwrap();
    views.added.views = vec!["v".to_owned(); 100];
    assert_eq!(views.check(), Ok(()));
    views.added.views.push("v".to_owned());
    assert_eq!(views.check().unwrap_err().code, too_large);
}

/// What `ttl.enable` added: absent, it is nothing, so that nothing is taken for added.
#[test]
fn what_was_added() {
    let mut policy = Policy::parse("{}").unwrap();
    assert!(policy.added.is_nothing() && !policy.added.has_column("_ts"));
    assert!(!policy.to_label().contains("added"));
    let label = r#"{"added": {"columns": ["_ts", "ttl"], "ts_default": true, "indexes": ["i"]}}"#;
    policy = Policy::parse(label).unwrap();
    assert!(policy.added.ts_default && !policy.added.ttl_check);
    // Its columns and indexes may be renamed.
    assert!(policy.rename_column("ttl", "lifetime"));
    assert!(policy.added.rename_index("i", "j") && !policy.added.rename_index("i", "k"));
    assert_eq!(policy.added.columns, ["_ts", "lifetime"]);
    // A column of the same name that comes after it is another.
    assert!(policy.added.forget_column("_ts") && !policy.added.forget_column("_ts"));
    policy.added.note_column("lifetime");
    assert_eq!(policy.added.columns, ["lifetime"]);
    let read = Policy::parse(&policy.to_label()).unwrap();
    assert_eq!(
        (&read.added.indexes, read.added.columns),
        (&vec!["j".to_owned()], vec!["lifetime".to_owned()])
    );
    // TTL that is off may be turned on again.
    assert_eq!(policy.turned_off().added, policy.added);
    for bad in [
        "null",
        "[]",
        "[[\"_ts\"], true, true, []]",
        r#"{"column": []}"#,
        r#"{"columns": "_ts"}"#,
    ] {
        assert!(
            Policy::parse(&format!(r#"{{"added": {bad}}}"#)).is_err(),
            "{bad}"
        );
    }
}
