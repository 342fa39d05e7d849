//! `ttl.deleting`.

use crate::deletion::underway;
use pgrx::prelude::*;

/// `ttl.deleting() RETURNS boolean` (C27): whether what runs now was set off by a deletion of the
/// extension's.
#[pg_extern(sql = false)]
fn deleting() -> bool {
    underway::is_underway()
}
