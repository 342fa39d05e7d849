//! COPY FROM into distributed tables.

use ttl_ext_citus::{describe, ids};

use crate::{seen, with_table, young};

#[test]
fn copy_from() {
    let (app, mut session) = with_table("copy_from");
    for node in 0..app.size() {
        let mut from = app.node(node);
        let first = 101 + 20 * i32::try_from(node).expect("small");
        let text: String = (first..first + 20).map(|n| format!("{n}\tnew\n")).collect();
        from.copy_in("COPY o (id, v) FROM STDIN", &text)
            .expect("COPY");
    }
    assert_eq!(young(&mut session), ids(101..=160));
}

/// As in any COPY with `_ts` among its columns (C1).
#[test]
fn copy_keeps_a_given_time() {
    let (_, mut session) = with_table("copy_ts");
    let now = session.value("SELECT now() - interval '30 minutes'");
    let text: String = (101..=120).map(|n| format!("{n}\t{now}\n")).collect();
    session
        .copy_in("COPY o (id, _ts) FROM STDIN", &text)
        .expect("COPY");
    assert_eq!(young(&mut session), "");
    assert_eq!(session.value("SELECT count(*) FROM o WHERE id > 100"), "20");
}

/// The keys of expired rows are free, those of live ones are not.
#[test]
fn copy_over_expired_rows() {
    let (app, mut session) = with_table("copy_keys");
    let text: String = (1..=10).map(|n| format!("{n}\tnew\n")).collect();
    session
        .copy_in("COPY o (id, v) FROM STDIN", &text)
        .expect("COPY");
    assert_eq!(app.on_disk("o"), ids(1..=20));
    assert_eq!(seen(&mut session), ids(1..=20));
    // Citus says the shard's error in its own.
    let error = session
        .copy_in("COPY o (id, v) FROM STDIN", "15\tnew\n")
        .expect_err("a live row has the key");
    let text = describe(&error);
    assert!(text.contains("duplicate key"), "{text}");
}
