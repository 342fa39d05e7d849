//! `ttl_internal.written_here()`: whether this transaction has written a version of a row.

use crate::error::Error;
use crate::pg::abi::fmgr;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog;
use crate::pg::exec::call::Call;
use crate::pg::exec::versions::{self, Version};
use pgrx::pg_sys::{self, ItemPointerData, Oid};
use pgrx::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::cell::{Cell, RefCell};

fmgr::finfo_v1!(pg_finfo_ttl_written_here);

/// The table, partitions included, that the extension is asking about.
static ASKED_ABOUT: Variable<Cell<pg_sys::Oid>> = Variable::new(Cell::new(pg_sys::InvalidOid));
/// Whether versions are noted instead of answered for.
static NOTING: Variable<Cell<bool>> = Variable::new(Cell::new(false));
/// The versions that do not count.
static LEFT_OUT: Variable<RefCell<FxHashSet<Version>>> =
    Variable::new(RefCell::new(FxHashSet::with_hasher(FxBuildHasher)));

/// Proof that the extension is asking.
pub(super) struct Question(());

/// Allows [`ttl_written_here`] for rows of the table. If an error leaves it allowed, the user
/// who profits is the table's owner, as whom the query ran.
pub(super) fn asking_about<T>(table: pg_sys::Oid, work: impl FnOnce(&Question) -> T) -> T {
    struct AskedScope(pg_sys::Oid, bool, FxHashSet<Version>);
    impl Drop for AskedScope {
        fn drop(&mut self) {
            ASKED_ABOUT.set(self.0);
            NOTING.set(self.1);
            *LEFT_OUT.borrow_mut() = core::mem::take(&mut self.2);
        }
    }
    let _outer = AskedScope(
        ASKED_ABOUT.replace(table),
        NOTING.replace(false),
        LEFT_OUT.take(),
    );
    work(&Question(()))
}

impl Question {
    /// From here on, the versions of rows that `work` asks about do not count.
    pub(super) fn leave_out_versions_of(&self, work: impl FnOnce()) {
        struct LeftOutScope;
        impl Drop for LeftOutScope {
            fn drop(&mut self) {
                NOTING.set(false);
            }
        }
        NOTING.set(true);
        let _counting = LeftOutScope;
        work();
    }
}

/// Whether the extension is asking about the table.
fn is_asked_about(relid: pg_sys::Oid) -> bool {
    let asked = ASKED_ABOUT.get();
    asked != pg_sys::InvalidOid && (relid == asked || catalog::ancestors(relid).contains(&asked))
}

/// `ttl_internal.written_here(relation oid, place tid) RETURNS boolean`: whether this transaction has
/// written the version with this TID, and it counts. False if there is none, and for a table
/// that is no heap. Raises 0A000 outside the extension's own query on that table.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_written_here(
    call: Call<'_, (Oid, ItemPointerData)>,
) -> pg_sys::Datum {
    // STRICT.
    let (Some(relid), Some(tid)) = call.args() else {
        return pg_sys::Datum::from(false);
    };
    if !is_asked_about(relid) {
        Error::unsupported(
            "ttl_internal.written_here() can be called only by the extension itself",
        )
        .hint("Compare the row's xmin with pg_current_xact_id().")
        .raise();
    }
    if NOTING.get() {
        let all = versions::from(relid, tid);
        LEFT_OUT.with_borrow_mut(|left_out| left_out.extend(all));
        return pg_sys::Datum::from(false);
    }
    let counts = versions::written_here(relid, tid)
        .is_some_and(|version| LEFT_OUT.with_borrow(|left_out| !left_out.contains(&version)));
    pg_sys::Datum::from(counts)
}
