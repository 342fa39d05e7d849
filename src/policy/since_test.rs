//! Labels of 0.1.0, and labels that its library would refuse.

use super::Policy;

#[track_caller]
fn newer(label: &str) -> Option<String> {
    Policy::parse(label).expect("a label").newer_than_0_1()
}

/// As the library of 0.1.0 wrote them.
#[test]
fn labels_of_0_1() {
    for label in [
        r#"{"version":1,"default_ttl":3600,"ts_column":"_ts","ttl_column":"ttl","index":"btree","table_oid":16543,"added":{"columns":["_ts","ttl"],"ts_default":true,"ttl_check":true,"indexes":["t__ts_idx","t_expires_at_idx"]}}"#,
        r#"{"version":1,"default_ttl":-1,"ts_column":"_ts","ttl_column":"ttl","document_column":"body","index":"brin","drop_partitions":true,"ts_granularity":60,"hidden":false}"#,
        r#"{"version":1,"default_ttl":null,"ts_column":null,"ttl_column":null,"index":"none","rules":[{"index":"i","expire_after_seconds":0}]}"#,
    ] {
        assert_eq!(newer(label), None, "{label}");
        let read = Policy::parse(label).expect("a label");
        let again = Policy::parse(&read.to_label()).expect("a label");
        assert_eq!(read, again);
    }
}

#[test]
fn what_came_later() {
    for (label, expected) in [
        (r#"{"default_ttl":1,"keep_expired":60}"#, "keep_expired"),
        (r#"{"default_ttl":1,"build_pending":true}"#, "build_pending"),
        (r#"{"default_ttl":1,"archive_to":"public.a"}"#, "archive_to"),
        (r#"{"default_ttl":1,"notify":"gone"}"#, "notify"),
        (
            r#"{"default_ttl":1,"added":{"views":["public.v"]}}"#,
            "views",
        ),
    ] {
        assert_eq!(newer(label).as_deref(), Some(expected), "{label}");
    }
}
