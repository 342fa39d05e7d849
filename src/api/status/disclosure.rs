//! What the functions behind the views show of a table, and to whom (`docs/security.md`).
//!
//! The functions check it themselves: each user may call them, whatever is granted on the views.

use crate::pg::catalog::roles;
use pgrx::pg_sys;

/// Whether the current user sees texts of errors, which may quote rows: the table's owner, and
/// members of `pg_read_all_stats`.
pub(in crate::api) fn shows_errors(table: pg_sys::Oid) -> bool {
    roles::reads_all_statistics() || roles::owns_relation(table, roles::current_user())
}

/// Whether the current user sees figures that depend on the table's rows (counts, instants of
/// expiry): also those who could count the rows by a SELECT. A privilege on some columns does not
/// suffice, as the columns that rows expire by may be others; nor does SELECT where row-level
/// security applies, as the figures include hidden rows.
pub(in crate::api) fn shows_figures(table: pg_sys::Oid) -> bool {
    shows_errors(table)
        || roles::may(table, roles::current_user(), pg_sys::ACL_SELECT)
            && !roles::is_subject_to_rls(table)
}
