//! Privileges and ownership.

use super::rows::Cache;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values;
use crate::pg::catalog;
use crate::pg::server::background;
use pgrx::pg_sys;

/// Whether `role` owns the relation or is a member of the owning role. False if the relation is
/// gone, where PostgreSQL's own check would raise an error.
pub(crate) fn owns_relation(relid: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    catalog::class(relid).is_some_and(|class| has_rights_of(role, class.owner))
}

/// Whether `role` owns an object of pg_namespace, pg_database or pg_extension, by the OIDs of that catalog and the object,
/// or is a member of the owning role. The object exists.
pub(crate) fn owns(class: pg_sys::Oid, object: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups within a transaction.
    unsafe {
        #[cfg(not(since16))]
        return match class {
            pg_sys::NamespaceRelationId => pg_sys::pg_namespace_ownercheck(object, role),
            pg_sys::DatabaseRelationId => pg_sys::pg_database_ownercheck(object, role),
            pg_sys::ExtensionRelationId => pg_sys::pg_extension_ownercheck(object, role),
            _ => false,
        };
        #[cfg(since16)]
        return pg_sys::object_ownercheck(class, object, role);
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

/// Whether `role` has USAGE on the schema.
pub(crate) fn may_use_schema(schema: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    may_in_schema(schema, role, pg_sys::ACL_USAGE)
}

/// Whether `role` has CREATE on the schema.
pub(crate) fn may_create_in_schema(schema: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    may_in_schema(schema, role, pg_sys::ACL_CREATE)
}

fn may_in_schema(schema: pg_sys::Oid, role: pg_sys::Oid, privilege: u32) -> bool {
    let privilege = pg_sys::AclMode::from(privilege);
    // SAFETY: syscache look-ups within a transaction.
    let result = unsafe {
        #[cfg(not(since16))]
        let result = pg_sys::pg_namespace_aclcheck(schema, role, privilege);
        #[cfg(since16)]
        let result = pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, schema, role, privilege);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// The role that can rename the schema at any time, if it could not act as this one: to run a statement that names a table of this role's
/// there is to let that role choose the table. Nothing locks a schema.
pub(crate) fn renamer(schema: pg_sys::Oid, owner: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let query = format!(
        "SELECT (CASE WHEN n.nspowner OPERATOR(pg_catalog.=) {}::pg_catalog.oid THEN d.datdba ELSE n.nspowner END)::pg_catalog.int8::pg_catalog.text \
           FROM pg_catalog.pg_namespace AS n, pg_catalog.pg_database AS d \
          WHERE n.oid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND d.oid OPERATOR(pg_catalog.=) {}::pg_catalog.oid",
        pg_sys::ROLE_PG_DATABASE_OWNER,
        schema.to_u32(),
        background::my_database().to_u32()
    );
    let of_schema = or_raise(values::oids(&query)).into_iter().next()?;
    (!has_rights_of(of_schema, owner)).then_some(of_schema)
}

pub(crate) fn has_rights_of(role: pg_sys::Oid, owner: pg_sys::Oid) -> bool {
    // SAFETY: cached look-ups within a transaction.
    unsafe { pg_sys::has_privs_of_role(role, owner) }
}

/// Whether `role` could act as `owner`: it has the rights of that role, or could SET ROLE to it.
pub(crate) fn could_act_as(role: pg_sys::Oid, owner: pg_sys::Oid) -> bool {
    // SAFETY: cached look-ups within a transaction.
    let can_become = unsafe {
        #[cfg(not(since16))]
        let can_become = pg_sys::is_member_of_role(role, owner);
        #[cfg(since16)]
        let can_become = pg_sys::member_can_set_role(role, owner);
        can_become
    };
    can_become || has_rights_of(role, owner)
}

/// Whether `role` has the privilege (`ACL_SELECT`, …) on the relation as a whole. False if it is gone.
pub(crate) fn may(relid: pg_sys::Oid, role: pg_sys::Oid, privilege: u32) -> bool {
    let privilege = pg_sys::AclMode::from(privilege);
    let mut is_missing = false;
    // SAFETY: a syscache look-up within a transaction; with the flag it raises no error if the
    // relation is gone.
    let result = unsafe { pg_sys::pg_class_aclcheck_ext(relid, role, privilege, &mut is_missing) };
    !is_missing && result == pg_sys::AclResult::ACLCHECK_OK
}

/// Whether row-level security of the relation applies to the current user.
pub(crate) fn is_subject_to_rls(relid: pg_sys::Oid) -> bool {
    // SAFETY: look-ups within a transaction; without an error where it is off.
    let state = unsafe { pg_sys::check_enable_rls(relid, pg_sys::InvalidOid, true) };
    state == pg_sys::CheckEnableRlsResult::RLS_ENABLED.cast_signed()
}

/// Whether the current user may see the statistics of others.
pub(crate) fn reads_all_statistics() -> bool {
    has_rights_of(current_user(), pg_sys::ROLE_PG_READ_ALL_STATS.into())
}

/// Whether PostgreSQL lets the role connect to the database in a background process: LOGIN (from
/// 17 on that can be passed by) and CONNECT. Limits of connections do not count background
/// processes. Reads shared catalogs only; within a transaction.
pub(crate) fn may_connect(database: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups within a transaction.
    let may = unsafe {
        let connect = pg_sys::AclMode::from(pg_sys::ACL_CONNECT);
        #[cfg(not(since16))]
        let result = pg_sys::pg_database_aclcheck(database, role, connect);
        #[cfg(since16)]
        let result = pg_sys::object_aclcheck(pg_sys::DatabaseRelationId, database, role, connect);
        result == pg_sys::AclResult::ACLCHECK_OK
    };
    may && !needs_login(role)
}

/// Whether the role lacks LOGIN, and a background process needs it.
pub(crate) fn needs_login(role: pg_sys::Oid) -> bool {
    cfg!(not(since17)) && !can_login(role)
}

// SAFETY: AUTHOID is the syscache of pg_authid by OID, whose rows begin with this struct.
const ROLE: Cache<pg_sys::FormData_pg_authid> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::AUTHOID) };

fn can_login(role: pg_sys::Oid) -> bool {
    ROLE.get(role, |row| row.rolcanlogin).unwrap_or(false)
}

pub(crate) fn exists(role: pg_sys::Oid) -> bool {
    ROLE.get(role, |_| ()).is_some()
}

pub(crate) fn is_superuser(role: pg_sys::Oid) -> bool {
    // SAFETY: a cached look-up within a transaction.
    unsafe { pg_sys::superuser_arg(role) }
}

/// Whether the current user reads the table as it is on disk: its owner or a superuser, with
/// `row_security` off, as pg_dump and its scripts set it.
pub(crate) fn reads_physically(relid: pg_sys::Oid) -> bool {
    // The outer user, because no user may read through another's function what they could not
    // read themselves; and the current one, because a superuser who calls a function does not
    // lend it this right.
    // SAFETY: reads a variable that only this process writes.
    may_read_physically(relid) && may_reach_disk(relid, unsafe { pg_sys::GetOuterUserId() })
}

/// Whether a plan made for the current user may be executed where they read the table as it is
/// on disk ([`reads_physically`]). It does not ask for the outer user: a plan is kept when that
/// one changes.
pub(crate) fn may_read_physically(relid: pg_sys::Oid) -> bool {
    is_row_security_off() && may_reach_disk(relid, current_user())
}

/// `row_security = off`.
pub(crate) fn is_row_security_off() -> bool {
    // SAFETY: reads a variable that only this process writes.
    !unsafe { pg_sys::row_security }
}

fn may_reach_disk(relid: pg_sys::Oid, user: pg_sys::Oid) -> bool {
    is_superuser(user) || owns_relation(relid, user)
}

/// The role's name, for a message; its number if it has no name any more.
pub(crate) fn name(role: pg_sys::Oid) -> String {
    // SAFETY: a cached look-up within a transaction; a C string in its memory, or null.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        if name.is_null() {
            return role.to_u32().to_string();
        }
        crate::pg::abi::encoding::from_pointer(name)
    }
}

pub(crate) fn current_user() -> pg_sys::Oid {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::GetUserId() }
}
