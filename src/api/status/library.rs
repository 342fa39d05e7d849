//! Whether the library and the extension's objects in this database are of the same version.

use crate::api::policy::problem::Problem;
use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::names;
use crate::store::extension;
use crate::store::release::{self, LIBRARY};
use pgrx::prelude::*;
use std::cmp::Ordering;

/// `ttl_internal.check_library()`, called by CREATE and ALTER EXTENSION … UPDATE, when the catalog has the
/// version that they make: raises 55000 if the server's library is older.
#[pg_extern(sql = false)]
fn check_library() {
    or_raise(check());
}

fn check() -> Result<()> {
    match objects() {
        Some(version) if release::compare(&version) == Some(Ordering::Greater) => {
            Err(Error::not_ready(format!(
                "ttl_ext {version} needs a newer library than the server has loaded"
            ))
            .detail(format!("The server has loaded the library of {LIBRARY}."))
            .hint("Install the new version, restart the server, and repeat the statement."))
        }
        _ => Ok(()),
    }
}

/// What `ttl.problems` says if they are not.
pub(in crate::api) fn problem() -> Option<Problem> {
    let version = objects()?;
    match release::compare(&version)? {
        Ordering::Equal => None,
        Ordering::Less => {
            let text = format!(
                "the objects of ttl_ext in this database are of {version}, the library is of {LIBRARY}: ALTER EXTENSION ttl_ext UPDATE"
            );
            Some(Problem::new(text).with_statement("ALTER EXTENSION ttl_ext UPDATE;"))
        }
        Ordering::Greater => {
            let text = format!(
                "the objects of ttl_ext in this database are of {version}, the library only of {LIBRARY}: install the newer version, and restart"
            );
            Some(Problem::new(text))
        }
    }
}

/// The version of the extension's objects in this database.
fn objects() -> Option<String> {
    names::extension_version(extension::NAME)
}
