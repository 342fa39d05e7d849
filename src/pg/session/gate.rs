//! The gate for other owners' code: nothing else in the crate changes who the current user is.
//!
//! Whatever may run code of a table's owner on another user's behalf comes through here:
//! planning a query over the table (PostgreSQL computes constants in index expressions and
//! predicates), firing its triggers, enforcing its foreign keys (`docs/security.md`).
//!
//! - In a user's transaction, which goes on afterwards: [`visit`], like PostgreSQL's REINDEX or
//!   REFRESH MATERIALIZED VIEW. As the owner, in a security-restricted operation, which refuses
//!   what would run or stay later (held cursors, deferred triggers, prepared statements, temporary
//!   objects), and with settings that end with the visit.
//! - In the background: in a process that belongs to the owner ([`super::owner_session`]).

use super::rewording;
use super::scoped::{Scope, Scoped};
use crate::error::Error;
use crate::pg::abi::externs;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{roles, temporary};
use crate::pg::session;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_int;

/// For errors during a visit, which do not say why the owner's code is restricted.
const HINT: &str = "Code of the table's owner runs here as the owner, in a security-restricted operation. If it needs what that does not allow, connect as the owner to run the statement.";

/// The current user and the security context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    user: pg_sys::Oid,
    context: c_int,
}

impl Identity {
    pub(crate) fn current() -> Self {
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        // SAFETY: reads variables that only this process writes.
        unsafe { pg_sys::GetUserIdAndSecContext(&mut user, &mut context) };
        Self { user, context }
    }

    pub(crate) fn restore(self) {
        // SAFETY: sets variables; the values were current before, or were made of such below.
        unsafe { pg_sys::SetUserIdAndSecContext(self.user, self.context) }
    }

    fn with(self, user: pg_sys::Oid, flags: u32) -> Self {
        Self {
            user,
            context: self.context | flags.cast_signed(),
        }
    }

    fn is_restricted(self) -> bool {
        self.context & RESTRICTED.cast_signed() != 0
    }

    /// Runs `work` with this identity. The former one returns even if `work` panics; after an
    /// error of PostgreSQL, at the end of the (sub)transaction.
    fn during<T>(self, work: impl FnOnce() -> T) -> T {
        struct RestoreOnDrop(Identity);
        impl Drop for RestoreOnDrop {
            fn drop(&mut self) {
                self.0.restore();
            }
        }
        let _former = RestoreOnDrop(Self::current());
        self.restore();
        work()
    }
}

/// Refuses SET ROLE and SET SESSION AUTHORIZATION.
const NO_SET_ROLE: u32 = pg_sys::SECURITY_LOCAL_USERID_CHANGE;
/// Turns row-level security off that is forced on the owner.
const NO_FORCED_RLS: u32 = pg_sys::SECURITY_NOFORCE_RLS;
/// Refuses everything that would run or stay after the operation.
const RESTRICTED: u32 = pg_sys::SECURITY_RESTRICTED_OPERATION;

/// Proof that the session is another user on purpose: required for every query that the
/// extension runs on a user's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateVisit {
    names: Identity,
}

impl GateVisit {
    /// In a process of the table's owner: forced row-level security does not apply to the queries.
    pub(in crate::pg) fn of_owner_session() -> Self {
        let current = Identity::current();
        Self {
            names: current.with(current.user, NO_FORCED_RLS),
        }
    }

    /// Whether names are another user's than the one who runs the query.
    pub(in crate::pg) fn uses_others_names(&self) -> bool {
        self.names.user != roles::current_user()
    }

    /// Runs `work`, which analyzes and rewrites a query, as the user whose names it uses. Planning and running are not allowed
    /// here. Analysis reads constants, which can call functions: a domain's, in an array of it. The caller has these refused
    /// where names are another user's.
    pub(in crate::pg) fn resolve<T>(&self, work: impl FnOnce() -> T) -> T {
        self.names.during(work)
    }
}

/// For a background process of the owner: restricts the rest of the transaction, its commit included, in which the owner is
/// the session's user.
pub(crate) fn restrict_transaction(owner: pg_sys::Oid) {
    let outer = Identity::current();
    outer.with(owner, NO_SET_ROLE | RESTRICTED).restore();
}

/// For a user's transaction: runs `work` as the table's owner. The owner themselves runs nobody
/// else's code and is not restricted.
///
/// `search_path` stays the session's for those who could become the owner anyway, so that
/// triggers find what they find in a DELETE; others must not choose what the owner's code finds.
pub(crate) fn visit<T>(owner: pg_sys::Oid, work: impl FnOnce(&GateVisit) -> T) -> T {
    visit_as(owner, false, work)
}

/// As [`visit`], but restricted even for the owner: foreign keys reach tables of other owners, whose code must leave nothing
/// behind that runs with the owner's rights.
pub(crate) fn visit_confined<T>(owner: pg_sys::Oid, work: impl FnOnce(&GateVisit) -> T) -> T {
    visit_as(owner, true, work)
}

fn visit_as<T>(owner: pg_sys::Oid, confined: bool, work: impl FnOnce(&GateVisit) -> T) -> T {
    let outer = Identity::current();
    let trusted = roles::has_rights_of(outer.user, owner) && !is_untrusted(owner);
    let visit = GateVisit {
        names: outer.with(if trusted { outer.user } else { owner }, NO_FORCED_RLS),
    };
    let is_own = outer.user == owner && session_user() == owner && !confined;
    let restricted = if is_own { 0 } else { RESTRICTED };
    let identity = outer.with(owner, NO_SET_ROLE | NO_FORCED_RLS | restricted);
    let bounds = Bounded::begin(outer, identity);
    if !trusted {
        // SAFETY: within the nest level that has just begun.
        unsafe { session::set_locally(c"search_path", c"pg_catalog, pg_temp") };
    }
    let result = rewording::hinting_at_missing_privileges(HINT, || {
        identity.during(|| {
            let result = work(&visit);
            bounds.check();
            result
        })
    });
    bounds.end();
    result
}

/// For a query that is the current user's own, like their SELECT: it gives nobody else's rights,
/// and leaves nothing behind.
pub(crate) fn as_oneself<T>(work: impl FnOnce(&GateVisit) -> T) -> T {
    let identity = Identity::current();
    let restricted = identity.with(identity.user, RESTRICTED);
    let bounds = Bounded::begin(identity, restricted);
    let visit = GateVisit { names: identity };
    let result = restricted.during(|| {
        let result = work(&visit);
        bounds.check();
        result
    });
    bounds.end();
    result
}

/// For a statement that the current user wrote, and that they may as well run themselves: it is
/// not more restricted than they are.
pub(crate) fn own_statement() -> GateVisit {
    GateVisit {
        names: Identity::current(),
    }
}

/// Becomes the owner of a table in another user's statement, for the owner's code, in a security-restricted operation until
/// [`Bounded::end`], or the end of the (sub)transaction. `None`, without a change, if the session is the owner's
/// own: a foreign key's query or a function may have made the owner the current user in another's session.
///
/// The user could become the owner ([`is_untrusted`]). Names in the code mean what they mean in the session.
pub(crate) fn lend(owner: pg_sys::Oid) -> Option<Bounded> {
    let former = Identity::current();
    if former.user == owner && session_user() == owner {
        return None;
    }
    let flags = NO_SET_ROLE | NO_FORCED_RLS | RESTRICTED;
    let identity = former.with(owner, flags);
    Some(Bounded::begin(identity, identity))
}

/// Restricts the current user until [`Bounded::end`], or the end of the (sub)transaction: foreign keys may set off code of
/// other owners, which must leave nothing behind.
pub(crate) fn confine() -> Bounded {
    let former = Identity::current();
    let identity = former.with(former.user, RESTRICTED);
    Bounded::begin(identity, identity)
}

/// Whether the user of the session could not become the owner, or somebody else's code who could not runs in it. Code of the
/// owner that is not in C must not run in such a session: what it calls may have been compiled there before, with names that
/// mean what that role wants.
pub(crate) fn is_untrusted(owner: pg_sys::Oid) -> bool {
    let lacks_rights = |role| !roles::has_rights_of(role, owner);
    lacks_rights(session_user())
        || is_in_operation_of_another(owner)
        || ACTING
            .find(|role| lacks_rights(role).then_some(()))
            .is_some()
}

/// Whether a security-restricted operation goes on, for a role that could not become the owner: PostgreSQL runs code of a
/// table's owner in another's session by one, as in ANALYZE, by autovacuum, too, in REINDEX and in REFRESH. Who the current
/// user is says nothing of whose operation it is: that code may call a function with SECURITY DEFINER. Only a worker of logical
/// replication has one for the table's owner itself, which no such function has changed.
fn is_in_operation_of_another(owner: pg_sys::Oid) -> bool {
    if !externs::InSecurityRestrictedOperation() {
        return false;
    }
    match RESTRICTED_FOR.current().or(OF_PROCESS.get()) {
        Some(role) => !roles::has_rights_of(role, owner),
        None => {
            !session::applies_others_changes()
                || externs::InLocalUserIdChange()
                || !roles::has_rights_of(roles::current_user(), owner)
        }
    }
}

/// The roles whose code may be running in this session by a foreign key, which PostgreSQL enforces as the owner of a table, or by a function
/// with SECURITY DEFINER. That code can call others' functions of that kind, so that the current user alone says nothing.
static ACTING: Scoped<pg_sys::Oid> = Scoped::new();

/// A query is planned or runs: if its user is another than the session's, that one acts until [`leave_query`].
#[inline]
pub(crate) fn enter_query() -> Option<Scope> {
    let user = externs::GetUserId();
    (user != externs::GetOuterUserId()).then(|| ACTING.enter(user))
}

#[inline]
pub(crate) fn leave_query(acting: Option<Scope>) {
    if let Some(acting) = acting {
        ACTING.leave(acting);
    }
}

/// A function is called that may run as another user: as from now the current one, until [`leave_function`].
pub(in crate::pg) fn enter_function() {
    ACTING.enter(externs::GetUserId());
}

/// Such a function returns, or an error passes it.
pub(in crate::pg) fn leave_function() {
    ACTING.leave_innermost();
}

/// The roles for whose code this module has begun a security-restricted operation that goes on.
static RESTRICTED_FOR: Scoped<pg_sys::Oid> = Scoped::new();
/// The role to which this background process belongs.
static OF_PROCESS: Variable<Cell<Option<pg_sys::Oid>>> = Variable::new(Cell::new(None));

/// From now on this process belongs to the role, whose code alone runs in it.
pub(super) fn belong_to(owner: pg_sys::Oid) {
    OF_PROCESS.set(Some(owner));
}

/// The user of the session, or the role that it has set, whatever function or foreign key runs.
pub(crate) fn session_user() -> pg_sys::Oid {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::GetOuterUserId() }
}

/// Becomes the owner for triggers that are to fire; the former identity is to be restored, by
/// [`Identity::restore`] or the end of the (sub)transaction.
pub(crate) fn become_for_triggers(owner: pg_sys::Oid) -> Identity {
    let former = Identity::current();
    former.with(owner, NO_SET_ROLE | NO_FORCED_RLS).restore();
    former
}

/// What runs as another user, or restricted, in a session that goes on afterwards. `Copy`: unguarded code holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounded {
    former: Identity,
    /// The nest level of its settings: whatever it sets ends with it.
    settings: c_int,
    temporary: temporary::Objects,
    /// Its entry among those that are restricted.
    restricted: Option<Scope>,
}

impl Bounded {
    /// Becomes `identity`; what runs until the end does so with `runs_as`.
    fn begin(identity: Identity, runs_as: Identity) -> Self {
        let bounded = Self {
            former: Identity::current(),
            // SAFETY: within a transaction; ended by `end`, or with the (sub)transaction.
            settings: unsafe { pg_sys::NewGUCNestLevel() },
            temporary: temporary::Objects::now(),
            restricted: runs_as
                .is_restricted()
                .then(|| RESTRICTED_FOR.enter(runs_as.user)),
        };
        identity.restore();
        bounded
    }

    /// Ends it. Raises 42501 if something was left behind.
    pub(crate) fn end(self) {
        self.check();
        if let Some(restricted) = self.restricted {
            RESTRICTED_FOR.leave(restricted);
        }
        self.former.restore();
        // SAFETY: the level that `begin` began. Not as a commit, so that its settings are undone.
        unsafe { pg_sys::AtEOXact_GUC(false, self.settings) };
    }

    /// A security-restricted operation refuses temporary tables, but neither functions nor
    /// types, which the user's next cast would find before PostgreSQL's own.
    fn check(&self) {
        if !Identity::current().is_restricted() {
            return;
        }
        if temporary::Objects::now() != self.temporary {
            Error::denied("cannot create temporary objects within security-restricted operation")
                .raise();
        }
    }
}
