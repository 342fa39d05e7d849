//! A background process that belongs to the owner of tables, for good.
//!
//! Whatever runs code of a table's owner in the background (deletion, partitions, archives,
//! indexes, constraints) runs in such a process. It serves this owner only, in one database, and
//! never has more rights than the owner again (`docs/security.md`).
//!
//! | way | the process is | for |
//! |---|---|---|
//! | [`Way::Connected`] | authenticated as the owner, as a session of the owner's is | every owner that PostgreSQL lets connect |
//! | [`Way::Renounced`] | authenticated as the bootstrap superuser, whose identity it gives up before anything of the owner's is planned or run; each transaction is a security-restricted operation from its first act until after its commit | others: NOLOGIN before 17, without CONNECT on the database … |

use super::gate::{self, GateVisit};
use crate::error::Error;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{self, functions_used, roles};
use crate::pg::server::background;
use crate::pg::session;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::OnceLock;

/// How a process comes to belong to its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Authenticated as the owner.
    Connected,
    /// Authenticated as the bootstrap superuser, whose rights it has given up.
    Renounced,
}

impl Ownership {
    /// The best way that PostgreSQL allows now. In a process without a database, too: it reads
    /// shared catalogs only. Within a transaction.
    pub(crate) fn of(database: pg_sys::Oid, owner: pg_sys::Oid) -> Self {
        if roles::may_connect(database, owner) {
            Self::Connected
        } else {
            Self::Renounced
        }
    }
}

/// The owner of this process.
struct Session {
    owner: pg_sys::Oid,
    way: Ownership,
    settings: Settings,
}

/// Passes the settings that each transaction needs to its argument.
pub(crate) type Settings = fn(&dyn Fn(&CStr, &CStr));

static SESSION: OnceLock<Session> = OnceLock::new();

/// Connects this process to the database and makes it the owner's; once. `settings` hold in each
/// of its transactions, whatever the configuration, the role or code of the owner sets.
pub(crate) fn begin(database: pg_sys::Oid, owner: pg_sys::Oid, way: Ownership, settings: Settings) {
    match way {
        Ownership::Connected => background::connect_as(database, owner),
        Ownership::Renounced => {
            background::connect(Some(database));
            session::force("role", "none");
            renounce(owner);
        }
    }
    gate::belong_to(owner);
    // With "snapshot", each look at a table's statistics would copy those of all tables.
    session::force("stats_fetch_consistency", "cache");
    // The only call.
    let _ = SESSION.set(Session {
        owner,
        way,
        settings,
    });
}

/// Makes the owner the session's user. Nothing but a reset of the session's user leads back, which
/// PostgreSQL refuses in a security-restricted operation.
fn renounce(owner: pg_sys::Oid) {
    // SAFETY: a background worker that has just connected, in no transaction. The look-up of the
    // role needs one.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::SetSessionAuthorization(owner, pg_sys::superuser_arg(owner));
        pg_sys::CommitTransactionCommand();
    }
}

/// Before each transaction of a background process: it begins as the owner, whatever role the owner's
/// settings or code have set. Not within the transaction, at whose end PostgreSQL would set the former
/// role again, which it does not do in a restricted operation.
pub(in crate::pg) fn before_transaction() {
    if way() == Some(Ownership::Connected) {
        // SAFETY: in no transaction; "none" needs no look-up.
        unsafe { session::set(c"role", c"none") };
    }
}

/// At the start of each transaction of a background process, before anything else runs in it.
/// Nothing happens in a process that belongs to no owner.
pub(in crate::pg) fn begin_transaction() {
    let Some(it) = SESSION.get() else { return };
    // SAFETY: at the start of a transaction, before its first snapshot; each transaction begins with
    // the defaults, which the role, the database or code of the owner may have set.
    unsafe {
        pg_sys::XactIsoLevel = pg_sys::XACT_READ_COMMITTED.cast_signed();
        pg_sys::XactReadOnly = false;
        pg_sys::XactDeferrable = false;
    }
    // SAFETY: within a transaction; the settings end with it.
    (it.settings)(&|name, value| unsafe { session::set_locally(name, value) });
    if it.way == Ownership::Renounced {
        gate::restrict_transaction(it.owner);
    }
}

/// Whether this process has given up its identity; `None`: it belongs to no owner.
pub(crate) fn way() -> Option<Ownership> {
    SESSION.get().map(|session| session.way)
}

/// For queries on a table of this process's owner. The caller has locked the table, so that its
/// owner cannot change: deletion by the table access method passes by the checks of the executor.
/// Nor does the table have indexes and triggers of others, as a partition of their table.
pub(crate) fn visit(relid: pg_sys::Oid) -> Result<GateVisit, Error> {
    let owner = catalog::owner(relid);
    match SESSION.get() {
        Some(session)
            if owner == Some(session.owner) && catalog::cascade::may_act_below(relid, relid) =>
        {
            Ok(GateVisit::of_owner_session())
        }
        _ => Err(Error::not_ready("the owner of the table has changed")),
    }
}

/// Whether code of users has run in the session since it was asked.
static HAS_RUN_CODE: Variable<Cell<bool>> = Variable::new(Cell::new(false));

/// What follows may run code of users that is no function of theirs: rules and defaults with functions of PostgreSQL's.
pub(crate) fn note_code() {
    HAS_RUN_CODE.set(true);
}

/// Whether functions that PostgreSQL looks up to call them are to be noted: in a process of an owner's, until there is one.
#[inline]
pub(crate) fn notes_functions() -> bool {
    SESSION.get().is_some() && !HAS_RUN_CODE.get()
}

/// PostgreSQL looks a function up to call it: in planning, too, an index's for example. Those that only superusers can have made, in
/// C, leave nothing behind.
#[pg_guard]
pub(crate) extern "C-unwind" fn note_function(function: pg_sys::Oid) {
    if !functions_used::is_trusted(function) {
        note_code();
    }
}

/// Before a transaction commits: temporary objects that code of users has made in it go with it. Later, what drops them, [`discard`] or the
/// end of the process, would wait for locks that another session has taken on them, for as long as that likes.
#[pg_guard]
pub(crate) extern "C-unwind" fn before_commit() {
    // SAFETY: within a transaction whose deferred triggers have fired; the snapshot that is pushed is popped.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        pg_sys::ResetTempTableNamespace();
        pg_sys::PopActiveSnapshot();
    }
}

/// Whether code of users has run in the transaction of this process, which belongs to an owner.
#[inline]
pub(crate) fn is_to_be_cleaned() -> bool {
    HAS_RUN_CODE.get() && way() == Some(Ownership::Connected)
}

/// Whether code of users has run in the session since this was asked last.
pub(super) fn has_run_code() -> bool {
    HAS_RUN_CODE.take()
}

/// Discards what code of users has left in the session (temporary tables, prepared statements,
/// settings, advisory locks), as a connection pooler does between two clients. Outside a
/// transaction block, within a transaction.
pub(super) fn discard() {
    match way() {
        Some(Ownership::Connected) => session::discard_all(),
        // DISCARD ALL would reset the session's user. Restricted transactions leave nothing else.
        Some(Ownership::Renounced) => session::discard_locks_and_settings(),
        None => {}
    }
}
