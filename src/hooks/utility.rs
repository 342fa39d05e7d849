//! The ProcessUtility hook: one trampoline for all that looks at utility statements.

use crate::clock::execution;
use crate::ddl::{self, databases};
use crate::keys::copy_from;
use crate::pg::{externs, nodes};
use crate::store::label_provider;
use crate::visibility::copy_to;
use crate::worker::{evict, prepared};
use core::ffi::c_char;
use pgrx::pg_sys::{self, NodeTag};
use pgrx::prelude::*;
use std::ffi::CStr;

static mut PREVIOUS: pg_sys::ProcessUtility_hook_type = None;

/// Installs the hook; once, at load.
pub(super) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(trampoline);
    }
}

/// What is to be done around a statement. `Copy`: the trampoline must hold
/// nothing that needs dropping.
#[derive(Clone, Copy)]
struct Around {
    /// The statement to run: the given one, or one that replaces it.
    statement: *mut pg_sys::PlannedStmt,
    /// One that can concern a time to live.
    ddl: Option<usize>,
    /// COPY.
    copies: bool,
    /// DROP DATABASE and the like: the database that workers have left for it.
    vacated: Option<u32>,
    /// COMMIT or ROLLBACK PREPARED: whether it commits.
    ends_prepared: Option<bool>,
}

/// Unguarded, with nothing to drop (`docs/decisions/0004-unguarded-trampolines.md`).
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn trampoline(
    pstmt: *mut pg_sys::PlannedStmt,
    query_string: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    query_env: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    qc: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
    unsafe {
        let outer = execution::suspend();
        let around = before(pstmt);
        let stmt = around.statement;
        match PREVIOUS {
            Some(previous) => {
                previous(
                    stmt,
                    query_string,
                    read_only_tree,
                    context,
                    params,
                    query_env,
                    dest,
                    qc,
                );
            }
            None => externs::standard_ProcessUtility(
                stmt,
                query_string,
                read_only_tree,
                context,
                params,
                query_env,
                dest,
                qc,
            ),
        }
        if around.ddl.is_some()
            || around.copies
            || around.vacated.is_some()
            || around.ends_prepared.is_some()
        {
            after(&around);
        }
        outer.resume();
    }
}

/// # Safety
/// `node` is a statement of the parser.
unsafe fn vacate(node: *mut pg_sys::Node) -> Option<u32> {
    // SAFETY: as required of the caller.
    let database = unsafe { databases::wanted_database(node) };
    database.inspect(|&database| evict::vacate(database))
}

/// Whether the statement commits a prepared transaction, or rolls it back.
///
/// # Safety
/// A statement of the parser.
unsafe fn prepared_transaction(stmt: *mut pg_sys::TransactionStmt) -> Option<bool> {
    use pg_sys::TransactionStmtKind::{
        TRANS_STMT_COMMIT_PREPARED, TRANS_STMT_PREPARE, TRANS_STMT_ROLLBACK_PREPARED,
    };
    // SAFETY: as required of the caller; these kinds have an identifier.
    unsafe {
        match (*stmt).kind {
            TRANS_STMT_PREPARE => {
                prepared::begin(CStr::from_ptr((*stmt).gid));
                None
            }
            TRANS_STMT_COMMIT_PREPARED => Some(true),
            TRANS_STMT_ROLLBACK_PREPARED => Some(false),
            _ => None,
        }
    }
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn before(pstmt: *mut pg_sys::PlannedStmt) -> Around {
    let mut around = Around {
        statement: pstmt,
        ddl: None,
        copies: false,
        vacated: None,
        ends_prepared: None,
    };
    // SAFETY: the node's tag tells its type.
    unsafe {
        let node = (*pstmt).utilityStmt;
        around.ddl = ddl::before(node);
        match nodes::tag(node) {
            Some(NodeTag::T_CopyStmt) => {
                around.statement = copy_to::hide_expired(pstmt);
                copy_from::before_write(node.cast());
                around.copies = true;
            }
            Some(NodeTag::T_SecLabelStmt) => around.statement = label_provider::unbind(pstmt),
            Some(NodeTag::T_TransactionStmt) => {
                around.ends_prepared = prepared_transaction(node.cast());
            }
            Some(
                NodeTag::T_DropdbStmt
                | NodeTag::T_CreatedbStmt
                | NodeTag::T_AlterDatabaseStmt
                | NodeTag::T_RenameStmt,
            ) => around.vacated = vacate(node),
            _ => {}
        }
    }
    around
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn after(around: &Around) {
    if around.copies {
        copy_from::end_copies();
    }
    if let Some(database) = around.vacated {
        evict::readmit(database);
    }
    if let Some(commits) = around.ends_prepared {
        // SAFETY: the statement lives as long as the call of the hook; such a one has an
        // identifier.
        unsafe {
            let stmt = (*around.statement).utilityStmt;
            let identifier = (*stmt.cast::<pg_sys::TransactionStmt>()).gid;
            prepared::end(CStr::from_ptr(identifier), commits);
        }
    }
    around.ddl.into_iter().for_each(ddl::after);
}
