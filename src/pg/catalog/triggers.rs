//! Triggers in the system catalogs: reads, creates, enables and drops them.
//!
//! The catalogs are read without a lock on the tables. Changes are made by the C functions
//! behind the statements: no event trigger or other user code runs in between, and `search_path`
//! has no effect.

use super::rows::{Catalog, CatalogRow, KeyDatum};
use crate::pg::abi::lists;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// A trigger, as pg_trigger has it.
#[derive(Debug, Clone)]
pub(crate) struct Trigger {
    pub(crate) oid: pg_sys::Oid,
    /// The bytes by which PostgreSQL sorts triggers before it fires them.
    pub(crate) name: Vec<u8>,
    pub(crate) function: pg_sys::Oid,
    /// It is a clone of the partitioned table's trigger.
    pub(crate) is_clone: bool,
    /// The table at the other end, for a foreign key's trigger.
    pub(crate) other_table: pg_sys::Oid,
    /// The foreign key, for its triggers.
    pub(crate) constraint: pg_sys::Oid,
    is_internal: bool,
    enabled: u8,
    events: u32,
    /// No column list, no WHEN condition, and none of PostgreSQL's own.
    unconditional: bool,
}

impl Trigger {
    /// `BEFORE INSERT OR UPDATE FOR EACH ROW`, unconditionally.
    pub(crate) fn is_before_every_write(&self) -> bool {
        let exactly = pg_sys::TRIGGER_TYPE_ROW
            | pg_sys::TRIGGER_TYPE_BEFORE
            | pg_sys::TRIGGER_TYPE_INSERT
            | pg_sys::TRIGGER_TYPE_UPDATE;
        self.events == exactly && self.unconditional
    }

    /// Whether it can change a row that is about to be written.
    pub(crate) fn sees_row_before_write(&self) -> bool {
        let before_row = pg_sys::TRIGGER_TYPE_ROW | pg_sys::TRIGGER_TYPE_BEFORE;
        let writes = pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE;
        self.enabled != b'D' && self.events & before_row == before_row && self.events & writes != 0
    }

    /// Whether it is a user's, enabled, and fires at this event (`TRIGGER_TYPE_DELETE` …).
    pub(crate) fn fires_at(&self, event: u32) -> bool {
        !self.is_internal && self.enabled != b'D' && self.events & event != 0
    }

    /// Whether it is a foreign key's, and PostgreSQL fires it when a row is deleted that others may refer to.
    pub(crate) fn is_referenced_at_deletion(&self) -> bool {
        [
            pg_sys::F_RI_FKEY_NOACTION_DEL,
            pg_sys::F_RI_FKEY_RESTRICT_DEL,
            pg_sys::F_RI_FKEY_CASCADE_DEL,
            pg_sys::F_RI_FKEY_SETNULL_DEL,
            pg_sys::F_RI_FKEY_SETDEFAULT_DEL,
        ]
        .contains(&self.function.to_u32())
    }

    /// Whether it fires for each row, and not for each statement.
    pub(crate) fn is_for_row(&self) -> bool {
        self.events & pg_sys::TRIGGER_TYPE_ROW != 0
    }

    /// Whether it fires without a condition.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.unconditional
    }

    /// Whether it fires whatever `session_replication_role` is.
    pub(crate) fn fires_always(&self) -> bool {
        self.enabled == pg_sys::TRIGGER_FIRES_ALWAYS
    }

    /// Whether it fires for statements of sessions, but not where others' changes are replayed.
    pub(crate) fn fires_on_origin(&self) -> bool {
        self.enabled == pg_sys::TRIGGER_FIRES_ON_ORIGIN
    }
}

/// The table's triggers, in the order in which they fire.
pub(crate) fn of(relid: pg_sys::Oid) -> Vec<Trigger> {
    let key = (pg_sys::Anum_pg_trigger_tgrelid as i16, KeyDatum::Oid(relid));
    TRIGGERS.collect(&[key], |row| Some(read(row)))
}

// SAFETY: pg_trigger and its index by table and name.
const TRIGGERS: Catalog<pg_sys::FormData_pg_trigger> = unsafe {
    Catalog::new(
        pg_sys::TriggerRelationId,
        Some(pg_sys::Oid::from_u32(pg_sys::TriggerRelidNameIndexId)),
    )
};

/// The tables that foreign keys look up, by name and as their owners, when a row of this table
/// is deleted: the referencing tables, and for NO ACTION the table itself, which may have
/// another row with the same key by now.
pub(crate) fn looked_up_on_delete(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    of(relid)
        .into_iter()
        .filter(Trigger::is_referenced_at_deletion)
        .flat_map(|trigger| {
            let itself = trigger.function.to_u32() == pg_sys::F_RI_FKEY_NOACTION_DEL;
            [Some(trigger.other_table), itself.then_some(relid)]
        })
        .flatten()
        .collect()
}

/// The tables that foreign keys look at or delete from when a row of this table is deleted; `None` if
/// one of them changes rows (SET NULL, SET DEFAULT).
pub(crate) fn reached_by_deletion(relid: pg_sys::Oid) -> Option<Vec<pg_sys::Oid>> {
    let changes = [
        pg_sys::F_RI_FKEY_SETNULL_DEL,
        pg_sys::F_RI_FKEY_SETDEFAULT_DEL,
    ];
    let mut all = of(relid).into_iter();
    let is_changed = all.any(|trigger| changes.contains(&trigger.function.to_u32()));
    (!is_changed).then(|| looked_up_on_delete(relid))
}

fn read(row: &CatalogRow<'_, pg_sys::FormData_pg_trigger>) -> Trigger {
    // SAFETY: PostgreSQL ends every value of type name with a zero byte; the row outlives the use.
    let name = unsafe { CStr::from_ptr(row.tgname.data.as_ptr()) };
    let when = row.value(pg_sys::Anum_pg_trigger_tgqual);
    Trigger {
        oid: row.oid,
        name: name.to_bytes().to_vec(),
        function: row.tgfoid,
        is_clone: row.tgparentid != pg_sys::InvalidOid,
        other_table: row.tgconstrrelid,
        constraint: row.tgconstraint,
        is_internal: row.tgisinternal,
        enabled: row.tgenabled.cast_unsigned(),
        events: u32::from(row.tgtype.cast_unsigned()),
        unconditional: row.tgattr.dim1 == 0 && !row.tgisinternal && when.is_none(),
    }
}

/// Creates a trigger `BEFORE INSERT OR UPDATE FOR EACH ROW` that fires under any
/// `session_replication_role`, on the table and its partitions. The current user needs the
/// privileges of CREATE TRIGGER.
pub(crate) fn create(relid: pg_sys::Oid, name: &str, function: pg_sys::Oid, comment: &str) {
    let (Ok(name), Ok(comment)) = (CString::new(name), CString::new(comment)) else {
        return;
    };
    let none = pg_sys::InvalidOid;
    let mut stmt = pg_sys::CreateTrigStmt {
        type_: pg_sys::NodeTag::T_CreateTrigStmt,
        trigname: name.as_ptr().cast_mut(),
        row: true,
        timing: pg_sys::TRIGGER_TYPE_BEFORE as i16,
        events: (pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE) as i16,
        ..Default::default()
    };
    // SAFETY: the statement and its strings outlive the call; the function's name is for error messages.
    unsafe {
        let function_name = pg_sys::makeString(pg_sys::get_func_name(function));
        stmt.funcname = lists::of(&[function_name]);
        let created = pg_sys::CreateTriggerFiringOn(
            &raw mut stmt,
            core::ptr::null(),
            relid,
            none,
            none,
            none,
            function,
            none,
            core::ptr::null_mut(),
            false,
            false,
            pg_sys::TRIGGER_FIRES_ALWAYS.cast_signed(),
        );
        pg_sys::CreateComments(
            created.objectId,
            pg_sys::TriggerRelationId,
            0,
            comment.as_ptr(),
        );
        pg_sys::CommandCounterIncrement();
    }
}

/// Makes a trigger of this one table fire under any `session_replication_role`.
pub(crate) fn enable_always(relid: pg_sys::Oid, name: &str) {
    let Ok(name) = CString::new(name) else { return };
    let lock = pg_sys::ShareRowExclusiveLock.cast_signed();
    let always = pg_sys::TRIGGER_FIRES_ALWAYS.cast_signed();
    // SAFETY: the table is locked as ALTER TABLE would, until the end of the transaction.
    unsafe {
        let rel = pg_sys::table_open(relid, lock);
        #[cfg(not(since16))]
        pg_sys::EnableDisableTriggerNew(rel, name.as_ptr(), always, true, false, lock);
        #[cfg(since16)]
        pg_sys::EnableDisableTrigger(
            rel,
            name.as_ptr(),
            pg_sys::InvalidOid,
            always,
            true,
            false,
            lock,
        );
        pg_sys::table_close(rel, pg_sys::NoLock.cast_signed());
        pg_sys::CommandCounterIncrement();
    }
}

/// Drops a trigger, and its clones on partitions.
pub(crate) fn drop(trigger: pg_sys::Oid) {
    let address = pg_sys::ObjectAddress {
        classId: pg_sys::TriggerRelationId,
        objectId: trigger,
        objectSubId: 0,
    };
    let internal = pg_sys::PERFORM_DELETION_INTERNAL.cast_signed();
    // SAFETY: within a transaction; what depends on the trigger is its clones.
    unsafe {
        pg_sys::performDeletion(&address, pg_sys::DropBehavior::DROP_RESTRICT, internal);
        pg_sys::CommandCounterIncrement();
    }
}
