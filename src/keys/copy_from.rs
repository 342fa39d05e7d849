//! What precedes a COPY FROM into a table with a time to live.

use super::restoring;
use crate::store::{cache, extension, written};
use pgrx::pg_sys::{self, CopyStmt};

/// Prepares a COPY that writes to a table with TTL, and notes the write for the workers.
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn before_write(stmt: *mut CopyStmt) {
    // In a read-only transaction COPY fails, and PostgreSQL says why.
    // SAFETY: fields of a parsed statement; the lock that COPY takes first.
    unsafe {
        if !(*stmt).is_from
            || (*stmt).relation.is_null()
            || pg_sys::XactReadOnly
            || extension::is_known_to_be_absent()
        {
            return;
        }
        let lock = pg_sys::RowExclusiveLock.cast_signed();
        let (missing_ok, none) = (pg_sys::RVROption::RVR_MISSING_OK, core::ptr::null_mut());
        let relid =
            pg_sys::RangeVarGetRelidExtended((*stmt).relation, lock, missing_ok, None, none);
        if let Some(policy) = cache::policy(relid).filter(|policy| policy.expires()) {
            restoring::before_copy(stmt, relid, &policy);
            written::note_copy(&policy);
        }
    }
}
