//! Versions of the extension: the library's, and that of its objects in a database.

use std::cmp::Ordering;

pub(crate) const LIBRARY: &str = env!("CARGO_PKG_VERSION");

/// How objects of this version stand to the library; `None` if it is no version.
pub(crate) fn compare(objects: &str) -> Option<Ordering> {
    Some(numbers(objects)?.cmp(&numbers(LIBRARY)?))
}

/// Major, minor and patch.
pub(super) fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.');
    let mut next = || parts.next()?.parse().ok();
    let found = [next()?, next()?, next()?];
    parts.next().is_none().then_some(found)
}
