//! `COPY table TO` does not pass through the planner: it becomes
//! `COPY (SELECT its columns FROM ONLY table) TO`, as PostgreSQL itself does for
//! tables with row-level security.

use crate::pg::{catalog, lists, roles};
use crate::settings;
use crate::store::cache;
use pgrx::pg_sys::{self, CopyStmt, PlannedStmt};

/// Returns the statement to run: the given one, if nothing must be hidden.
///
/// # Safety
/// `pstmt` holds a CopyStmt of the parser; it is not changed.
pub(crate) unsafe fn hide_expired(pstmt: *mut PlannedStmt) -> *mut PlannedStmt {
    // SAFETY: as required of the caller; a copy is changed, never the original.
    unsafe {
        let stmt = (*pstmt).utilityStmt.cast::<CopyStmt>();
        let Some(query) = replacement(stmt) else {
            return pstmt;
        };
        let copy = pg_sys::copyObjectImpl(pstmt.cast()).cast::<PlannedStmt>();
        let stmt = (*copy).utilityStmt.cast::<CopyStmt>();
        (*stmt).relation = core::ptr::null_mut();
        (*stmt).attlist = core::ptr::null_mut();
        (*stmt).query = parse(&query);
        copy
    }
}

/// The query that reads what the user may see; `None` to leave the statement alone.
///
/// # Safety
/// `stmt` is a CopyStmt of the parser.
unsafe fn replacement(stmt: *mut CopyStmt) -> Option<String> {
    // SAFETY: as required of the caller.
    unsafe {
        if (*stmt).is_from || (*stmt).relation.is_null() || settings::show_expired() {
            return None;
        }
        crate::store::extension::functions()?;
        // The lock that COPY takes before it checks privileges.
        let lock = pg_sys::AccessShareLock.cast_signed();
        let (missing_ok, none) = (pg_sys::RVROption::RVR_MISSING_OK, core::ptr::null_mut());
        let relid =
            pg_sys::RangeVarGetRelidExtended((*stmt).relation, lock, missing_ok, None, none);
        if relid == pg_sys::InvalidOid {
            return None;
        }
        cache::policy(relid).filter(|policy| policy.hides())?;
        if catalog::class(relid)?.relkind != pg_sys::RELKIND_RELATION {
            return None;
        }
        if roles::reads_physically(relid) {
            return None;
        }
        let columns = columns(relid, (*stmt).attlist)?;
        Some(format!(
            "SELECT {} FROM ONLY {}",
            columns.join(", "),
            catalog::qualified_name(relid)
        ))
    }
}

/// The columns that COPY would write, in its order: the named ones, or all that are neither
/// dropped nor generated. `None` if a name is unknown or there twice, which COPY reports better.
///
/// # Safety
/// `named` is a list of String nodes; the relation is locked.
unsafe fn columns(relid: pg_sys::Oid, named: *mut pg_sys::List) -> Option<Vec<String>> {
    let mut columns = Vec::new();
    // SAFETY: as required of the caller.
    unsafe {
        if named.is_null() {
            for name in catalog::copied_columns(relid) {
                columns.push(catalog::quote_identifier(&name));
            }
            return Some(columns);
        }
        for node in lists::iter::<pg_sys::String>(named) {
            let name = crate::pg::encoding::from_pointer((*node).sval);
            let column = catalog::attribute(relid, &name)?;
            let quoted = catalog::quote_identifier(&name);
            if column.generated || columns.contains(&quoted) {
                return None;
            }
            columns.push(quoted);
        }
    }
    Some(columns)
}

/// The raw parse tree of one SELECT.
///
/// # Safety
/// Within a transaction.
unsafe fn parse(query: &str) -> *mut pg_sys::Node {
    let query = crate::pg::encoding::query(query);
    // SAFETY: the parse tree copies what it needs of the text.
    unsafe {
        let trees = pg_sys::raw_parser(query.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        (*pg_sys::list_nth(trees, 0).cast::<pg_sys::RawStmt>()).stmt
    }
}
