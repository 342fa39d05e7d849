//! The query trees that are the planner's input.

use crate::pg::abi::lists;
use crate::pg::catalog::Attribute;
use crate::pg::catalog::roles;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::NonNull;
use pgrx::pg_sys::{self, CmdType, Expr, List, OnConflictExpr, RangeTblEntry, TargetEntry};

/// A value of PostgreSQL that exists for `'a` and that we may change, with all below it.
#[repr(transparent)]
pub(crate) struct Ref<'a, T>(NonNull<T>, PhantomData<&'a ()>);

impl<T> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<'_, T> {}

impl<T: Copy> Ref<'_, T> {
    /// # Safety
    /// The value exists for `'a`, and so does all below it.
    pub(crate) unsafe fn new(value: *mut T) -> Self {
        // SAFETY: as required of the caller.
        Self(unsafe { NonNull::new_unchecked(value) }, PhantomData)
    }

    /// A copy of the present value. The compiler leaves out fields that are not used.
    #[inline]
    pub(crate) fn read(self) -> T {
        // SAFETY: `new` requires that the node exists for `'a`; its fields are copied.
        unsafe { self.0.read() }
    }

    pub(in crate::pg) fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

/// A query after rewriting, or a subquery of it.
pub(crate) type QueryTree<'a> = Ref<'a, pg_sys::Query>;

type MergeAction<'a> = Ref<'a, pg_sys::MergeAction>;

impl<'a> QueryTree<'a> {
    pub(crate) fn with_queries(self) -> impl Iterator<Item = Self> {
        // SAFETY: analysis has made a Query of each WITH query.
        unsafe {
            lists::iter::<pg_sys::CommonTableExpr>(self.read().cteList)
                .map(|cte| Self::new((*cte).ctequery.cast()))
        }
    }

    /// Whether it neither writes nor locks rows.
    pub(crate) fn only_reads(self) -> bool {
        let query = self.read();
        query.commandType == CmdType::CMD_SELECT
            && !query.hasModifyingCTE
            && query.rowMarks.is_null()
    }

    /// The range table index of the table that it writes to; 0 for none.
    pub(crate) fn target_number(self) -> u32 {
        u32::try_from(self.read().resultRelation).unwrap_or(0)
    }

    pub(crate) fn target(self) -> Option<RangeTableEntry<'a>> {
        self.entry(self.target_number())
    }

    pub(crate) fn entry(self, varno: u32) -> Option<RangeTableEntry<'a>> {
        // SAFETY: the parser puts range table entries into this list; a query counts them from 1.
        unsafe {
            let entry = Ref::new(lists::nth(self.read().rtable, varno.cast_signed() - 1)?);
            Some(RangeTableEntry {
                query: self,
                varno,
                entry,
            })
        }
    }

    pub(crate) fn merge_actions(self) -> impl Iterator<Item = MergeAction<'a>> {
        // SAFETY: the parser puts MergeActions, none of them null, into this list.
        unsafe { lists::iter(self.read().mergeActionList).map(|action| Ref::new(action)) }
    }

    pub(crate) fn assignments(self) -> Assignments<'a> {
        // SAFETY: the address of a list in a node that exists for `'a`.
        Assignments(unsafe { &raw mut (*self.as_ptr()).targetList }, PhantomData)
    }

    /// ON CONFLICT, and what it is now.
    fn conflict(self) -> Option<(*mut OnConflictExpr, OnConflictExpr)> {
        let conflict = self.read().onConflict.cast::<OnConflictExpr>();
        // SAFETY: the field is null or a node that exists for `'a`.
        Some((conflict, *unsafe { conflict.as_ref() }?))
    }

    /// The target list of ON CONFLICT DO UPDATE.
    pub(crate) fn conflict_assignments(self) -> Option<Assignments<'a>> {
        let (conflict, clause) = self.conflict()?;
        // SAFETY: the address of a list in a node that exists for `'a`.
        (clause.action == pg_sys::OnConflictAction::ONCONFLICT_UPDATE)
            .then(|| Assignments(unsafe { &raw mut (*conflict).onConflictSet }, PhantomData))
    }

    /// Where the condition of ON CONFLICT DO SELECT is, and whether the row is locked before.
    #[cfg(since19)]
    pub(crate) fn conflict_selection(self) -> Option<(*mut *mut pg_sys::Node, bool)> {
        let (conflict, clause) = self.conflict()?;
        let locks = clause.lockStrength != pg_sys::LockClauseStrength::LCS_NONE;
        // SAFETY: the address of an expression in a node that exists for `'a`.
        (clause.action == pg_sys::OnConflictAction::ONCONFLICT_SELECT)
            .then(|| (unsafe { &raw mut (*conflict).onConflictWhere }, locks))
    }

    /// The range table index of EXCLUDED in ON CONFLICT DO UPDATE.
    pub(crate) fn excluded(self) -> Option<u32> {
        let (_, clause) = self.conflict()?;
        u32::try_from(clause.exclRelIndex)
            .ok()
            .filter(|&index| index > 0)
    }

    /// Of INSERT … SELECT, which begins with its target: the first table of FROM.
    pub(crate) fn inserted_from(self) -> Option<pg_sys::Oid> {
        self.entry(2)?.subquery()?.entry(1)?.table()
    }

    /// The table that it writes to, or else the first two tables of FROM, also of a subquery there.
    pub(crate) fn first_tables(self) -> Option<(pg_sys::Oid, Option<pg_sys::Oid>)> {
        // The entries of FROM come first in the range table, in order.
        let first = self.target_number().max(1);
        let entries = self.entry(first)?.subquery().unwrap_or(self);
        let table = |number| entries.entry(number)?.table();
        Some((table(first)?, table(first + 1)))
    }
}

impl<'a> MergeAction<'a> {
    pub(crate) fn assignments(self) -> Assignments<'a> {
        // SAFETY: the address of a list in a node that exists for `'a`.
        Assignments(unsafe { &raw mut (*self.as_ptr()).targetList }, PhantomData)
    }
}

/// A target list, by the address of its pointer.
pub(crate) struct Assignments<'a>(*mut *mut List, PhantomData<&'a ()>);

impl Assignments<'_> {
    pub(crate) fn columns(&self) -> impl Iterator<Item = i16> {
        // SAFETY: the address points to a target list: the parser puts TargetEntries, and nothing else, into it.
        unsafe { lists::iter::<TargetEntry>(*self.0).map(|entry| *entry) }
            .filter(|entry| !entry.resjunk)
            .map(|entry| entry.resno)
    }

    /// Removes what is assigned to the column, if that is so.
    ///
    /// # Safety
    /// Without it the list means what is wanted.
    pub(crate) unsafe fn remove(self, attno: i16, if_so: impl Fn(*mut Expr) -> bool) {
        // SAFETY: the address points to a target list of a query that is planned next, and by nothing else.
        unsafe {
            let mut entries = lists::iter::<TargetEntry>(*self.0);
            let is_it = |entry: &*mut TargetEntry| (**entry).resno == attno && !(**entry).resjunk;
            if let Some(entry) = entries.find(is_it)
                && if_so((*entry).expr)
            {
                *self.0 = pg_sys::list_delete_ptr(*self.0, entry.cast());
            }
        }
    }

    /// Assigns the value to the column, replacing an assignment or adding one where the planner
    /// expects it: ordered by column, before resjunk entries.
    ///
    /// # Safety
    /// The value is an expression that exists as long as the list.
    pub(crate) unsafe fn assign(
        self,
        column: &Attribute,
        name: &CStr,
        value: impl FnOnce(Option<*mut Expr>) -> *mut Expr,
    ) {
        // SAFETY: a target list that we may change; as required of the caller.
        unsafe {
            let mut position = 0;
            for entry in lists::iter::<TargetEntry>(*self.0) {
                if (*entry).resjunk || (*entry).resno > column.attno {
                    break;
                }
                if (*entry).resno == column.attno {
                    (*entry).expr = value(Some((*entry).expr));
                    return;
                }
                position += 1;
            }
            let (value, name) = (value(None), pg_sys::pstrdup(name.as_ptr()));
            let entry = pg_sys::makeTargetEntry(value, column.attno, name, false);
            *self.0 = pg_sys::list_insert_nth(*self.0, position, entry.cast());
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RangeTableEntry<'a> {
    pub(in crate::pg) query: QueryTree<'a>,
    pub(in crate::pg) varno: u32,
    pub(in crate::pg) entry: Ref<'a, RangeTblEntry>,
}

impl<'a> RangeTableEntry<'a> {
    pub(crate) fn read(self) -> RangeTblEntry {
        self.entry.read()
    }

    pub(crate) fn subquery(self) -> Option<QueryTree<'a>> {
        let subquery = self.read().subquery;
        // SAFETY: the field is null or a query within this one, which exists as long.
        (!subquery.is_null()).then(|| unsafe { Ref::new(subquery) })
    }

    /// Its index in the range table.
    pub(crate) fn varno(self) -> u32 {
        self.varno
    }

    pub(crate) fn table(self) -> Option<pg_sys::Oid> {
        let entry = self.read();
        (entry.rtekind == pg_sys::RTEKind::RTE_RELATION).then_some(entry.relid)
    }

    /// Whether the query writes to it.
    pub(crate) fn is_target(self) -> bool {
        self.query.target_number() == self.varno
    }

    /// The user whose privileges on the table are checked, such as a view's owner; `InvalidOid` for
    /// the current user.
    pub(crate) fn check_as_user(self) -> pg_sys::Oid {
        #[cfg(not(since16))]
        return self.read().checkAsUser;
        #[cfg(since16)]
        match self.read().perminfoindex {
            0 => pg_sys::InvalidOid,
            // SAFETY: the entry is one of the query's, so that its permissions are the query's.
            _ => unsafe { (*self.permissions()).checkAsUser },
        }
    }

    /// The columns that an update of column `attno` affects: the column itself if a trigger or a
    /// unique key names it, and generated columns that depend on it. Empty for most tables.
    pub(crate) fn dependents_of_update(self, attno: i16) -> Vec<i16> {
        let offset = -pg_sys::FirstLowInvalidHeapAttributeNumber;
        let bit = i32::from(attno) + offset;
        let mut dependents = Vec::new();
        // SAFETY: the relation is locked, as analysis has done, and stays open while it is read.
        unsafe {
            let relation = pg_sys::relation_open(self.read().relid, pg_sys::NoLock.cast_signed());
            let key_kind = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_KEY;
            let in_key =
                pg_sys::bms_is_member(bit, pg_sys::RelationGetIndexAttrBitmap(relation, key_kind));
            // Children may have triggers on the column; marking it without need does no harm.
            let has_children = (*(*relation).rd_rel).relhassubclass;
            if in_key || has_children || trigger_names((*relation).trigdesc, attno) {
                dependents.push(attno);
            }
            let tuple_desc = (*relation).rd_att;
            let constraints = (*tuple_desc).constr;
            if !constraints.is_null() && (*constraints).has_generated_stored {
                for i in 0..(*constraints).num_defval {
                    let default = (*constraints).defval.add(usize::from(i));
                    let column = (*default).adnum;
                    if pg_sys::get_attgenerated(self.read().relid, column) == 0 {
                        continue;
                    }
                    let mut used = core::ptr::null_mut();
                    pg_sys::pull_varattnos(
                        pg_sys::stringToNode((*default).adbin).cast(),
                        1,
                        &mut used,
                    );
                    if pg_sys::bms_is_member(bit, used) {
                        dependents.extend([attno, column]);
                    }
                }
            }
            pg_sys::relation_close(relation, pg_sys::NoLock.cast_signed());
        }
        dependents.sort_unstable();
        dependents.dedup();
        dependents
    }

    /// Makes the executor treat these columns as updated too, so that triggers and generated
    /// columns are run. The statement does not name them and needs no privilege on them. Only for
    /// the entry that the query writes to.
    ///
    /// PostgreSQL uses the same column set to check privileges. If the two must differ, the named
    /// columns are checked on a second range table entry that is not scanned, as PostgreSQL does
    /// for views.
    pub(crate) fn mark_updated(self, columns: &[i16]) {
        let asked = Some(self.check_as_user()).filter(|&user| user != pg_sys::InvalidOid);
        let user = asked.unwrap_or_else(roles::current_user);
        let may_update = |&column: &i16| roles::may_update_column(self.read().relid, column, user);
        if !columns.iter().all(may_update) {
            self.check_separately();
        }
        // SAFETY: an entry of the query; bitmapsets are copied before they grow.
        unsafe {
            #[cfg(not(since16))]
            let updated = &mut (*self.entry.as_ptr()).updatedCols;
            #[cfg(since16)]
            let updated = &mut (*self.permissions()).updatedCols;
            let offset = -pg_sys::FirstLowInvalidHeapAttributeNumber;
            *updated = columns.iter().fold(pg_sys::bms_copy(*updated), |set, &c| {
                pg_sys::bms_add_member(set, i32::from(c) + offset)
            });
        }
    }

    #[cfg(since16)]
    fn permissions(self) -> *mut pg_sys::RTEPermissionInfo {
        // SAFETY: a table's entry in the query's range table.
        unsafe { pg_sys::getRTEPermissionInfo(self.query.read().rteperminfos, self.entry.as_ptr()) }
    }

    /// Moves the privilege check to a copy of the entry.
    fn check_separately(self) {
        let (query, entry) = (self.query.as_ptr(), self.entry.as_ptr());
        // SAFETY: copies are made in the current memory context, which is the planner's.
        unsafe {
            let check = pg_sys::copyObjectImpl(entry.cast()).cast::<RangeTblEntry>();
            (*check).inh = false;
            (*check).inFromCl = false;
            (*check).securityQuals = core::ptr::null_mut();
            #[cfg(not(since16))]
            {
                (*entry).requiredPerms = 0;
            }
            #[cfg(since16)]
            {
                // From 16 on an entry must have a check; this one is for the owner, who passes it.
                let perminfo = self.permissions();
                let copy = pg_sys::copyObjectImpl(perminfo.cast());
                (*query).rteperminfos = pg_sys::lappend((*query).rteperminfos, copy.cast());
                (*check).perminfoindex = lists::len((*query).rteperminfos) as u32;
                let class = crate::pg::catalog::class((*entry).relid);
                (*perminfo).checkAsUser = class.map_or((*perminfo).checkAsUser, |c| c.owner);
            }
            (*query).rtable = pg_sys::lappend((*query).rtable, check.cast());
        }
    }
}

/// Whether an UPDATE trigger is declared `UPDATE OF` that column.
///
/// # Safety
/// `triggers` is null, or the trigger descriptor of an open relation.
unsafe fn trigger_names(triggers: *mut pg_sys::TriggerDesc, attno: i16) -> bool {
    // SAFETY: as required of the caller.
    unsafe {
        let Some(triggers) = triggers.as_ref() else {
            return false;
        };
        (0..usize::try_from(triggers.numtriggers).unwrap_or(0)).any(|i| {
            let trigger = triggers.triggers.add(i);
            (0..usize::try_from((*trigger).tgnattr).unwrap_or(0))
                .any(|c| *(*trigger).tgattr.add(c) == attno)
        })
    }
}
