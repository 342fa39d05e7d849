//! The ProcessUtility hook: one trampoline for all that looks at utility statements.

use crate::clock::execution;
use crate::ddl::columns::{self, Rename};
use crate::ddl::{databases, purge_before_ddl, sync_label, sync_trigger, trigger_guard};
use crate::keys::copy_from;
use crate::pg::{externs, nodes, roles};
use crate::store::label_provider;
use crate::visibility::constraint_ddl::{self, ConstraintDdl};
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
    /// ALTER TABLE: what ends its mark.
    constraint_ddl: Option<usize>,
    /// ALTER TABLE … INHERIT, ATTACH PARTITION and the like: the table.
    reparented: Option<pg_sys::Oid>,
    /// ALTER TABLE … RENAME COLUMN, ALTER INDEX … RENAME: the policy follows.
    rename: Option<Rename>,
    /// COPY.
    copies: bool,
    /// DROP DATABASE and the like: the database that workers have left for it.
    vacated: Option<u32>,
    /// The trigger for the keys of expired rows is brought to where it is needed.
    keys: Option<sync_trigger::Followed>,
    /// TTL indexes that are renamed or dropped.
    indexes: Option<sync_label::Followed>,
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
        if around.copies
            || around.constraint_ddl.is_some()
            || around.rename.is_some()
            || around.vacated.is_some()
            || around.keys.is_some()
            || around.indexes.is_some()
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
        constraint_ddl: None,
        reparented: None,
        rename: None,
        copies: false,
        vacated: None,
        keys: None,
        indexes: None,
        ends_prepared: None,
    };
    // SAFETY: the node's tag tells its type.
    unsafe {
        let node = (*pstmt).utilityStmt;
        trigger_guard::check(node);
        // First: it takes the strongest lock.
        around.keys = sync_trigger::before(node);
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
            Some(NodeTag::T_DropStmt) => columns::check_drop(node.cast()),
            Some(NodeTag::T_IndexStmt | NodeTag::T_CreateStmt) => {
                purge_before_ddl::delete_expired(node)
            }
            Some(NodeTag::T_RenameStmt) => {
                around.rename = columns::noted_rename(node.cast());
                around.vacated = vacate(node);
            }
            Some(
                NodeTag::T_DropdbStmt | NodeTag::T_CreatedbStmt | NodeTag::T_AlterDatabaseStmt,
            ) => around.vacated = vacate(node),
            Some(NodeTag::T_AlterTableStmt) => {
                columns::check_alter_table(node.cast());
                purge_before_ddl::delete_expired(node);
                around.reparented = columns::reparented(node.cast());
                // Before and after: the old ancestors, and the new ones.
                around.reparented.into_iter().for_each(columns::forget);
            }
            _ => {}
        }
        // After the others: what they refuse is not to be prepared for.
        around.indexes = sync_label::before(node);
        // Last: what is deleted before the statement is not part of it.
        if nodes::tag(node) == Some(NodeTag::T_AlterTableStmt) {
            let ddl = ConstraintDdl {
                user: roles::current_user(),
                tables: columns::validated(node.cast()),
            };
            around.constraint_ddl = Some(constraint_ddl::enter(ddl));
        }
    }
    around
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn after(around: &Around) {
    if let Some(former) = around.constraint_ddl {
        constraint_ddl::leave(former);
    }
    if around.copies {
        copy_from::end_copies();
    }
    if let Some(relid) = around.reparented {
        columns::forget(relid);
    }
    if let Some(rename) = around.rename {
        columns::follow_rename(rename);
    }
    if let Some(database) = around.vacated {
        evict::readmit(database);
    }
    if let Some(commits) = around.ends_prepared {
        // SAFETY: as below; such a statement has an identifier.
        unsafe {
            let stmt = (*around.statement).utilityStmt;
            let identifier = (*stmt.cast::<pg_sys::TransactionStmt>()).gid;
            prepared::end(CStr::from_ptr(identifier), commits);
        }
    }
    if let Some(indexes) = around.indexes {
        sync_label::after(indexes);
    }
    if let Some(keys) = around.keys {
        // SAFETY: the statement lives as long as the call of the hook.
        unsafe { sync_trigger::after(keys, (*around.statement).utilityStmt) };
    }
}
