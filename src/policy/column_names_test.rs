//! W1: names of columns.

use super::column_names::is_creation_time;

#[test]
fn creation_and_change() {
    for name in [
        "created_at",
        "CreatedAt",
        "date_created",
        "inserted_on",
        "issued_at",
        "date_joined",
    ] {
        assert!(is_creation_time(name), "{name}");
    }
    for name in [
        "_ts",
        "at",
        "updated_at",
        "modified",
        "last_created",
        "changed",
        "last_login",
        "touched",
        "expires",
        "created_or_updated",
        "",
    ] {
        assert!(!is_creation_time(name), "{name}");
    }
}
