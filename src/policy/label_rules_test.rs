//! M1, M6, M8: the TTL indexes of a label.

use super::label::*;
use super::rule::IndexRule;

fn rule(index: &str, expire_after_seconds: i32) -> IndexRule {
    IndexRule {
        index: index.to_owned(),
        expire_after_seconds,
        time_zone: None,
    }
}

/// M6, M8: a change by which rows that are expired could live again.
#[test]
fn m8_changes_that_revive() {
    let of = |rules: &[(&str, i32)]| {
        let mut policy = Policy::parse(r#"{"ts_column": null, "ttl_column": null}"#).unwrap();
        for &(index, seconds) in rules {
            policy.set_rule(rule(index, seconds));
        }
        policy
    };
    let two = of(&[("a", 10), ("b", 20)]);
    for to in [
        of(&[]),
        of(&[("a", 10)]),
        of(&[("a", 11), ("b", 20)]),
        of(&[("a", 10), ("c", 20)]),
        two.turned_off(),
        Policy {
            hidden: false,
            ..of(&[("a", 11), ("b", 20)])
        },
    ] {
        assert!(two.revives(Some(&to)), "{to:?}");
    }
    for to in [
        two.clone(),
        of(&[("b", 0), ("a", 10)]),
        of(&[("a", 10), ("b", 20), ("c", 0)]),
        // They are seen until they are deleted, and deleted as before.
        Policy {
            hidden: false,
            ..two.clone()
        },
    ] {
        assert!(!two.revives(Some(&to)), "{to:?}");
    }
    // What is not hidden does not come back.
    let visible = Policy {
        hidden: false,
        ..two
    };
    assert!(!visible.revives(None));
}

/// M1, M5: the label's TTL indexes.
#[test]
fn m1_rules_of_a_label() {
    let parse = |rules: &str| Policy::parse(&format!(r#"{{"rules": {rules}}}"#));
    let policy = parse(r#"[{"index": "a", "expire_after_seconds": 0}]"#).unwrap();
    assert_eq!(
        policy.rule("a").map(|rule| rule.expire_after_seconds),
        Some(0)
    );
    assert!(policy.is_on() && policy.rule("b").is_none());
    for bad in [
        "null",
        "{}",
        r#"[{"index": "a"}]"#,
        r#"[["a", 0]]"#,
        r#"[{"index": "", "expire_after_seconds": 0}]"#,
        r#"[{"index": "a", "expire_after_seconds": -1}]"#,
        r#"[{"index": "a", "expire_after_seconds": 2147483648}]"#,
        r#"[{"index": "a", "expire_after_seconds": 1.5}]"#,
        r#"[{"index": "a", "expire_after_seconds": NaN}]"#,
        r#"[{"index": "a", "expire_after_seconds": 1, "column": "x"}]"#,
        r#"[{"index": "a", "expire_after_seconds": 1, "time_zone": ""}]"#,
        r#"[{"index": "a", "expire_after_seconds": 1, "time_zone": "a b"}]"#,
        r#"[{"index": "a", "expire_after_seconds": 1, "time_zone": 5}]"#,
        r#"[{"index": "a", "expire_after_seconds": 1, "time_zone": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]"#,
        r#"[{"index": "a", "expire_after_seconds": 1}, {"index": "a", "expire_after_seconds": 2}]"#,
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

/// M8: an index may be renamed, and goes with its rule.
#[test]
fn m8_indexes_are_followed() {
    let mut policy = Policy::parse("{}").unwrap();
    policy.set_rule(rule("a", 5));
    policy.set_rule(rule("b", 6));
    assert!(policy.rename_index("a", "c"));
    assert!(!policy.rename_index("a", "d"));
    assert_eq!(
        policy.rule("c").map(|rule| rule.expire_after_seconds),
        Some(5)
    );
    policy.remove_rule("b");
    policy.set_rule(rule("c", 7));
    assert_eq!(policy.rules.len(), 1);
    assert!(policy.turned_off().rules.is_empty());
    assert!(!policy.turned_off().is_empty());
}
