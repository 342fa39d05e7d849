//! `ttl_internal.written_here()`: whether this transaction has written a version of a row.

use crate::error::Error;
use crate::pg::abi::fmgr;
use crate::pg::catalog;
use crate::pg::exec::call::Call;
use crate::pg::exec::versions::{self, Version};
use crate::pg::session::scoped::Scoped;
use pgrx::pg_sys::{self, ItemPointerData, Oid};
use pgrx::prelude::*;
use rustc_hash::FxHashSet;

fmgr::finfo_v1!(pg_finfo_ttl_written_here);

/// What the extension asks.
struct Question {
    /// The table that it is about, partitions included.
    table: Oid,
    /// Whether versions are noted instead of answered for.
    notes: bool,
    /// The versions that do not count.
    left_out: FxHashSet<Version>,
}

static ASKED: Scoped<Question> = Scoped::new();

/// Allows [`ttl_written_here`] for rows of the table. If an error leaves it allowed, the user
/// who profits is the table's owner, as whom the query ran.
pub(super) fn asking_about<T>(table: Oid, work: impl FnOnce() -> T) -> T {
    let question = Question {
        table,
        notes: false,
        left_out: FxHashSet::default(),
    };
    ASKED.during(question, work)
}

/// From here on, the versions of rows that `work` asks about do not count in this question.
pub(super) fn leave_out_versions_of(work: impl FnOnce()) {
    ASKED.change(|question| question.notes = true);
    work();
    ASKED.change(|question| question.notes = false);
}

/// Whether the extension is asking about the table.
fn is_asked_about(relid: Oid) -> bool {
    let asked = ASKED.change(|question| question.table);
    asked.is_some_and(|asked| relid == asked || catalog::ancestors(relid).contains(&asked))
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
    if ASKED.change(|question| question.notes) == Some(true) {
        let all = versions::from(relid, tid);
        ASKED.change(|question| question.left_out.extend(all));
        return pg_sys::Datum::from(false);
    }
    let written = versions::written_here(relid, tid);
    let counts = |version| ASKED.change(|question| !question.left_out.contains(&version));
    pg_sys::Datum::from(written.and_then(counts) == Some(true))
}
