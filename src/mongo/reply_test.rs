//! D4, M6: the replies, by MongoDB's names.

use super::*;
use serde_json::{json, to_value};

/// D4: at least `ok`, `numIndexesBefore` and `numIndexesAfter`.
#[test]
fn d4_create_index() {
    assert_eq!(
        to_value(CreateIndexReply::new(1, 2)).unwrap(),
        json!({
            "ok": 1, "createdCollectionAutomatically": false,
            "numIndexesBefore": 1, "numIndexesAfter": 2,
        })
    );
    assert_eq!(
        to_value(CreateIndexReply::existing(2).named("a_idx")).unwrap(),
        json!({
            "ok": 1, "createdCollectionAutomatically": false,
            "numIndexesBefore": 2, "numIndexesAfter": 2,
            "note": "all indexes already exist", "name": "a_idx",
        })
    );
}

/// M6: the old seconds are left out where there were none.
#[test]
fn m6_coll_mod() {
    assert_eq!(
        to_value(CollModReply::new(Some(3600), 100)).unwrap(),
        json!({"ok": 1, "expireAfterSeconds_old": 3600, "expireAfterSeconds_new": 100})
    );
    assert_eq!(
        to_value(CollModReply::new(None, 0)).unwrap(),
        json!({"ok": 1, "expireAfterSeconds_new": 0})
    );
}
