//! Who may do what.

use pgrx::pg_sys;
use std::cell::Cell;

/// Whether `role` owns the relation or is a member of the owning role.
pub(crate) fn owns_relation(relid: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups within a transaction.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relid, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relid, role);
    }
}

/// Whether `role` owns the schema or is a member of the owning role.
pub(crate) fn owns_schema(schema: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups within a transaction.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_namespace_ownercheck(schema, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::NamespaceRelationId, schema, role);
    }
}

/// Whether `role` owns the database or is a member of the owning role.
pub(crate) fn owns_database(database: u32, role: pg_sys::Oid) -> bool {
    let database = pg_sys::Oid::from(database);
    // SAFETY: syscache look-ups within a transaction.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(database, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, database, role);
    }
}

/// Whether `role` may UPDATE the column, by a privilege on the table or on it.
pub(crate) fn may_update_column(relid: pg_sys::Oid, attno: i16, role: pg_sys::Oid) -> bool {
    let update = pg_sys::AclMode::from(pg_sys::ACL_UPDATE);
    // SAFETY: syscache look-ups within a transaction.
    unsafe {
        pg_sys::pg_class_aclcheck(relid, role, update) == pg_sys::AclResult::ACLCHECK_OK
            || pg_sys::pg_attribute_aclcheck(relid, attno, role, update)
                == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Whether the current user may INSERT into the relation as a whole.
pub(crate) fn may_insert(relid: pg_sys::Oid) -> bool {
    has_privilege(relid, pg_sys::ACL_INSERT)
}

/// Whether the current user may SELECT from the relation as a whole.
pub(crate) fn may_select(relid: pg_sys::Oid) -> bool {
    has_privilege(relid, pg_sys::ACL_SELECT)
}

fn has_privilege(relid: pg_sys::Oid, privilege: u32) -> bool {
    let privilege = pg_sys::AclMode::from(privilege);
    // SAFETY: a syscache look-up within a transaction.
    unsafe {
        pg_sys::pg_class_aclcheck(relid, current_user(), privilege)
            == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Whether the current user may see the statistics of others.
pub(crate) fn reads_all_statistics() -> bool {
    // SAFETY: a cached look-up within a transaction.
    unsafe {
        let role = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_STATS);
        pg_sys::has_privs_of_role(current_user(), role)
    }
}

/// Whether the role is a superuser.
fn is_superuser(role: pg_sys::Oid) -> bool {
    // SAFETY: a cached look-up within a transaction.
    unsafe { pg_sys::superuser_arg(role) }
}

/// Whether the current user reads the table as it is on disk: its owner or a
/// superuser, while `row_security` is off, as pg_dump and its scripts set it.
pub(crate) fn reads_physically(relid: pg_sys::Oid) -> bool {
    // SAFETY: reads a backend-local variable.
    if unsafe { pg_sys::row_security } {
        return false;
    }
    // The user outside any SECURITY DEFINER function or referential check, so
    // that nobody reads by way of another's function what they could not read
    // themselves; and the current one, so that a superuser who calls a function
    // does not lend it this right.
    // SAFETY: reads a backend-local variable.
    let outer = unsafe { pg_sys::GetOuterUserId() };
    [outer, current_user()]
        .into_iter()
        .all(|user| is_superuser(user) || owns_relation(relid, user))
}

/// The current user.
pub(crate) fn current_user() -> pg_sys::Oid {
    // SAFETY: reads a backend-local variable.
    unsafe { pg_sys::GetUserId() }
}

/// Who the current user is, and in what security context.
#[derive(Clone, Copy)]
pub(crate) struct Identity(pg_sys::Oid, i32);

impl Identity {
    /// The current one.
    pub(crate) fn current() -> Self {
        let mut identity = Self(pg_sys::InvalidOid, 0);
        // SAFETY: reads backend-local variables.
        unsafe { pg_sys::GetUserIdAndSecContext(&mut identity.0, &mut identity.1) };
        identity
    }

    /// Makes it the current one again.
    pub(crate) fn restore(self) {
        // SAFETY: restores what GetUserIdAndSecContext gave.
        unsafe { pg_sys::SetUserIdAndSecContext(self.0, self.1) }
    }
}

thread_local! {
    /// Whose code may have run in this session since it was cleaned.
    static RAN_AS: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
    /// Whether that of several may have.
    static RAN_AS_SEVERAL: Cell<bool> = const { Cell::new(false) };
}

/// Whether nobody's code but that of `role` can have left anything in this
/// session; with `None`: nobody's at all. Functions of a table's owner run in its
/// triggers, and already when a query on it is planned.
pub(crate) fn is_clean_for(role: Option<pg_sys::Oid>) -> bool {
    !RAN_AS_SEVERAL.get() && RAN_AS.get().is_none_or(|ran| Some(ran) == role)
}

/// The session has been cleaned.
pub(crate) fn set_clean() {
    RAN_AS.set(None);
    RAN_AS_SEVERAL.set(false);
}

/// Becomes `role` in a context that refuses `SET ROLE` and
/// `SET SESSION AUTHORIZATION` and in which row-level security does not bind
/// the table's owner. The caller restores the former identity.
pub(crate) fn become_role(role: pg_sys::Oid) {
    if RAN_AS.replace(Some(role)).is_some_and(|ran| ran != role) {
        RAN_AS_SEVERAL.set(true);
    }
    let flags = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_NOFORCE_RLS;
    // SAFETY: what PostgreSQL itself does (ri_triggers.c).
    unsafe {
        pg_sys::SetUserIdAndSecContext(role, Identity::current().1 | flags.cast_signed());
    }
}

/// Runs `work` after [`become_role`]. The former identity returns also when
/// `work` raises.
pub(crate) fn as_role<T>(role: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    struct RestoreOnDrop(Identity);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            self.0.restore();
        }
    }
    let _former = RestoreOnDrop(Identity::current());
    become_role(role);
    work()
}
