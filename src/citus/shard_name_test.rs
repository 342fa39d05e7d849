//! Names of shards.

use super::shard_name::{number, of};

fn name(table: &str, number: i64) -> String {
    let name = of(table.as_bytes(), number, |_| 0xabc, |_, limit| limit);
    String::from_utf8(name).expect("ASCII")
}

#[test]
fn a_short_name_gets_the_number() {
    assert_eq!(name("orders", 102_008), "orders_102008");
    let longest = "t".repeat(56);
    assert_eq!(name(&longest, 102_008), format!("{longest}_102008"));
}

#[test]
fn a_long_name_is_cut_and_hashed() {
    let table = "t".repeat(57);
    let cut = "t".repeat(64 - 7 - 10);
    assert_eq!(name(&table, 102_008), format!("{cut}_00000abc_102008"));
    assert!(name(&"t".repeat(63), 102_008).len() < 64);
}

#[test]
fn the_number_is_read_again() {
    for (name, expected) in [
        ("orders_102008", Some(102_008)),
        ("a_b_1", Some(1)),
        ("_5", Some(5)),
        ("orders", None),
        ("orders_", None),
        ("orders_1a", None),
        ("orders_-1", None),
        ("orders_99999999999999999999", None),
        ("", None),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
}
