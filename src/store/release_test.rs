//! Versions are compared by their numbers.

use super::release::{LIBRARY, compare, numbers};
use std::cmp::Ordering;

#[test]
fn the_library_has_a_version() {
    assert_eq!(compare(LIBRARY), Some(Ordering::Equal));
    assert_eq!(compare("0.0.1"), Some(Ordering::Less));
    assert_eq!(compare("1000.0.0"), Some(Ordering::Greater));
}

#[test]
fn by_numbers() {
    assert!(numbers("0.10.0") > numbers("0.9.9"));
    assert!(numbers("1.0.0") > numbers("0.99.99"));
    assert!(numbers("1.2.1") > numbers("1.2.0"));
}

#[test]
fn what_is_no_version() {
    for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1.2.-3", "1.2.3-rc1"] {
        assert_eq!(numbers(text), None, "{text}");
        assert_eq!(compare(text), None, "{text}");
    }
}
