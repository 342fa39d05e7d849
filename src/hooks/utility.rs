//! The ProcessUtility hook: one trampoline for all code that handles utility statements.

use crate::api::policy::apply_options;
use crate::clock::execution;
use crate::ddl::{self, exclusive_database, with_options};
use crate::keys::copy_from;
use crate::pg::abi::externs;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::syntax::Node;
use crate::pg::session::scoped::Scope;
use crate::store::label_provider;
use crate::visibility::copy_to;
use crate::worker::shared::{leave_database, prepared_transactions};
use core::ffi::c_char;
use pgrx::pg_sys::{self, NodeTag, PlannedStmt, TransactionStmt, TransactionStmtKind};
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::ProcessUtility_hook_type = None;

/// Installs the hook; once, at load.
pub(super) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(trampoline);
    }
}

/// What to do around a statement. `Copy`, as the trampoline must own no values with destructors.
#[derive(Clone, Copy)]
struct UtilityHooks {
    /// The statement to run: the given one or a replacement.
    statement: *mut PlannedStmt,
    /// A statement that can affect TTL: what `ddl::after` needs.
    ddl: Option<Scope>,
    /// It has options of ours, or copies a table: what `table_options::after` needs.
    options: Option<Scope>,
    /// Without our options nothing is left that Citus could repeat on shards.
    is_for_us_alone: bool,
    /// A COPY that is replaced: what `copy_to::end` needs.
    copied: Option<Scope>,
    /// DROP DATABASE and similar: the database that the workers have left for it.
    vacated: Option<u32>,
    /// COMMIT PREPARED (true) or ROLLBACK PREPARED (false).
    ends_prepared: Option<bool>,
}

impl UtilityHooks {
    fn nothing(statement: *mut PlannedStmt) -> Self {
        Self {
            statement,
            ddl: None,
            options: None,
            is_for_us_alone: false,
            copied: None,
            vacated: None,
            ends_prepared: None,
        }
    }
}

/// Unguarded, and nothing needs dropping (`docs/decisions/0004-unguarded-trampolines.md`).
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn trampoline(
    pstmt: *mut PlannedStmt,
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
        let is_plain = is_of_transaction_only(pstmt);
        let outer = (!is_plain).then(execution::suspend);
        let around = match is_plain {
            true => UtilityHooks::nothing(pstmt),
            false => before(pstmt, query_string),
        };
        let next = PREVIOUS.filter(|_| !around.is_for_us_alone);
        let run = next.unwrap_or(externs::standard_ProcessUtility);
        run(
            around.statement,
            query_string,
            read_only_tree,
            context,
            params,
            query_env,
            dest,
            qc,
        );
        let UtilityHooks {
            ddl,
            options,
            copied,
            vacated,
            ends_prepared,
            ..
        } = around;
        if copied.is_some()
            || ddl.is_some()
            || options.is_some()
            || vacated.is_some()
            || ends_prepared.is_some()
        {
            after(&around);
        }
        if let Some(outer) = outer {
            execution::leave(outer);
        }
    }
}

/// Whether it is a BEGIN, COMMIT, SAVEPOINT or the like, which needs nothing: most transactions have two. The triggers that a
/// COMMIT fires run queries, which have times of their own.
fn is_of_transaction_only(planned: *mut PlannedStmt) -> bool {
    // SAFETY: PostgreSQL passes a statement.
    let stmt = unsafe { Node::new(planned) }.and_then(utility_statement);
    stmt.and_then(|node| node.cast::<TransactionStmt>())
        .is_some_and(|stmt| stmt.gid.is_null())
}

/// True for COMMIT PREPARED, false for ROLLBACK PREPARED. Notes that one begins, or a PREPARE
/// TRANSACTION.
fn prepared_transaction(stmt: Node<'_, TransactionStmt>) -> Option<bool> {
    match stmt.kind {
        TransactionStmtKind::TRANS_STMT_PREPARE => {
            prepared_transactions::begin(stmt.text(|stmt| &stmt.gid)?);
            None
        }
        TransactionStmtKind::TRANS_STMT_COMMIT_PREPARED => {
            prepared_transactions::before_commit(stmt.text(|stmt| &stmt.gid)?);
            Some(true)
        }
        TransactionStmtKind::TRANS_STMT_ROLLBACK_PREPARED => Some(false),
        _ => None,
    }
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn before(pstmt: *mut PlannedStmt, text: *const c_char) -> UtilityHooks {
    let mut around = UtilityHooks::nothing(pstmt);
    // SAFETY: the statement has not run yet and is not changed here.
    let planned = unsafe { Node::new(pstmt) };
    let Some((planned, node)) = planned.zip(planned.and_then(utility_statement)) else {
        return around;
    };
    if let Some(taken) = with_options::before(planned, node) {
        around.statement = taken.statement;
        around.options = Some(taken.place);
        around.is_for_us_alone = taken.is_for_us_alone;
    }
    around.ddl = ddl::before(node);
    match node.type_ {
        NodeTag::T_CopyStmt => {
            // SAFETY: the node's tag was matched above, and says which struct it is.
            unsafe {
                if let Some((statement, scope)) = copy_to::hide_expired(pstmt, text) {
                    around.statement = statement;
                    around.copied = Some(scope);
                }
                copy_from::before_write(node.as_ptr().cast());
            }
        }
        NodeTag::T_SecLabelStmt => {
            around.statement = label_provider::mark_restored(planned).unwrap_or(pstmt);
        }
        NodeTag::T_TransactionStmt => {
            around.ends_prepared = node.cast().and_then(prepared_transaction);
        }
        NodeTag::T_DropdbStmt
        | NodeTag::T_CreatedbStmt
        | NodeTag::T_AlterDatabaseStmt
        | NodeTag::T_RenameStmt => {
            around.vacated = exclusive_database::wanted_database(node);
            around.vacated.into_iter().for_each(leave_database::vacate);
        }
        _ => {}
    }
    around
}

fn utility_statement(planned: Node<'_, PlannedStmt>) -> Option<Node<'_>> {
    planned.node(|planned| &planned.utilityStmt)
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn after(around: &UtilityHooks) {
    if let Some(scope) = around.copied {
        copy_to::end(scope);
    }
    if let Some(database) = around.vacated {
        leave_database::readmit(database);
    }
    // SAFETY: the statement lives as long as the call of the hook.
    let Some(node) = unsafe { Node::new(around.statement) }.and_then(utility_statement) else {
        return;
    };
    if let Some(commits) = around.ends_prepared
        && let Some(stmt) = node.cast::<TransactionStmt>()
        && let Some(identifier) = stmt.text(|stmt| &stmt.gid)
    {
        prepared_transactions::end(identifier, commits);
    }
    if let Some(place) = around.ddl {
        ddl::after(place, node);
    }
    if let Some(place) = around.options
        && let Some(asked) = with_options::after(place, node)
    {
        or_raise(apply_options::carry_out(&asked));
    }
}
