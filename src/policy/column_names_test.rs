//! W1: names of columns.

use super::column_names::{is_creation_time, is_end, is_event};

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

#[test]
fn ends() {
    for name in [
        "expires_at",
        "Expires",
        "expiry",
        "valid_until",
        "valid_to",
        "due_date",
        "due",
        "ends_at",
        "end",
    ] {
        assert!(is_end(name), "{name}");
    }
    for name in [
        "_ts",
        "updated_at",
        "created_at",
        "weekend",
        "sender",
        "residue",
        "vendor",
        "",
    ] {
        assert!(!is_end(name), "{name}");
    }
}

#[test]
fn events() {
    for name in [
        "deleted_at",
        "DeletedAt",
        "removed",
        "revoked_at",
        "archived_on",
        "confirmed_at",
        "locked_at",
        "email_verified_at",
    ] {
        assert!(is_event(name), "{name}");
    }
    for name in [
        "_ts",
        "updated_at",
        "modified",
        "last_locked_at",
        "created_at",
        "at",
        "clock",
        "",
    ] {
        assert!(!is_event(name), "{name}");
    }
}
