//! The indexes that deletion works from (C11).

use super::catalog::{self, Attribute};
use super::dates::DateType;
use super::externs::raising;
use super::predicate::Predicate;
use super::{extension, lists, nodes, roles, session, ttl_index};
use pgrx::pg_sys;
use std::ffi::CStr;

/// What an index must offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// `(_ts)`, all rows: for a table without an override column.
    AllByTimestamp,
    /// `(_ts) WHERE ttl IS NULL`: rows that inherit the default.
    InheritingByTimestamp,
    /// `(ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0`: rows that override it.
    OverridingByExpiry,
}

/// The valid btree and BRIN indexes of the relation that offer it.
///
/// PostgreSQL simplifies an index's expressions and predicate when it reads
/// them, and may call functions of the table's owner to do so: with the owner's
/// rights, whoever asks.
pub(crate) fn find(
    relid: pg_sys::Oid,
    wanted: Wanted,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> Vec<pg_sys::Oid> {
    // SAFETY: called with open, locked indexes.
    all(relid, &|index| unsafe { offers(index, wanted, ts, ttl) })
}

/// The valid indexes of the relation that are in the order of the dates in a column, the
/// earliest ones of arrays, and hold all rows for which the predicate is true. As [`find`].
pub(crate) fn find_by_date(
    relid: pg_sys::Oid,
    column: &Attribute,
    date: DateType,
    predicate: Option<&Predicate>,
) -> Vec<pg_sys::Oid> {
    // SAFETY: called with open, locked indexes.
    all(relid, &|index| unsafe {
        is_by_date(index, column, date) && has_predicate(index, predicate)
    })
}

/// The relation's indexes for which `serves` says so.
fn all(relid: pg_sys::Oid, serves: &dyn Fn(pg_sys::Relation) -> bool) -> Vec<pg_sys::Oid> {
    let owner = catalog::class(relid).map_or_else(roles::current_user, |class| class.owner);
    session::as_owner(owner, || all_as_owner(relid, serves))
}

fn all_as_owner(relid: pg_sys::Oid, serves: &dyn Fn(pg_sys::Relation) -> bool) -> Vec<pg_sys::Oid> {
    let share = pg_sys::AccessShareLock.cast_signed();
    let mut found = Vec::new();
    // SAFETY: relation and indexes are locked while they are read.
    unsafe {
        let relation = pg_sys::relation_open(relid, share);
        for index_oid in lists::oids(pg_sys::RelationGetIndexList(relation)) {
            let index = pg_sys::index_open(index_oid, share);
            if serves(index) {
                found.push(index_oid);
            }
            pg_sys::index_close(index, share);
        }
        pg_sys::relation_close(relation, share);
    }
    found
}

/// The indexes of the relation, those of a partitioned table and invalid ones included.
pub(crate) fn list(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let share = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: the relation is locked while it is read.
    unsafe {
        let relation = pg_sys::relation_open(relid, share);
        let indexes = lists::oids(pg_sys::RelationGetIndexList(relation)).collect();
        pg_sys::relation_close(relation, share);
        indexes
    }
}

/// The index of the relation's constraint of that name.
///
/// # Safety
/// `name` is a C string.
pub(crate) unsafe fn of_constraint(
    relid: pg_sys::Oid,
    name: *const core::ffi::c_char,
) -> Option<pg_sys::Oid> {
    // SAFETY: as required of the caller; syscache look-ups within a transaction.
    unsafe {
        let constraint = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            raising::get_relation_constraint_oid(relid, name, true)
        });
        let index =
            (constraint != pg_sys::InvalidOid).then(|| pg_sys::get_constraint_index(constraint))?;
        (index != pg_sys::InvalidOid).then_some(index)
    }
}

/// The name of a table's index, in the table's schema, as a user would write it.
pub(crate) fn qualified_name(table: pg_sys::Oid, name: &str) -> String {
    // SAFETY: a palloc'd C string or null.
    let schema = unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
        if schema.is_null() {
            return catalog::quote_identifier(name);
        }
        CStr::from_ptr(schema).to_string_lossy().into_owned()
    };
    format!(
        "{}.{}",
        catalog::quote_identifier(&schema),
        catalog::quote_identifier(name)
    )
}

/// The column of an index on one, of its values or its earliest dates, and whether it is
/// in descending order.
pub(crate) fn single_key(index: pg_sys::Oid) -> Option<(i16, bool)> {
    ttl_index::single_key(index)
}

/// Whether the index gives NULLs after all others when it is read in ascending order of
/// its first column.
pub(crate) fn has_nulls_last(index: pg_sys::Oid) -> bool {
    ttl_index::has_nulls_last(index)
}

/// Whether rows can be refused for what other rows hold: the relation has a unique
/// index or an exclusion constraint, even one that is not valid, or still being
/// built. The catalog is read without a lock on the relation.
pub(crate) fn is_any_unique(relid: pg_sys::Oid) -> bool {
    let mut found = false;
    // SAFETY: a systable scan over a locked catalog, closed before return; the
    // key's function is oideq, of which F_OIDEQ is the OID.
    unsafe {
        let share = pg_sys::AccessShareLock.cast_signed();
        let catalog = pg_sys::table_open(pg_sys::IndexRelationId, share);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            pg_sys::Anum_pg_index_indrelid as i16,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::Oid::from(pg_sys::F_OIDEQ),
            pg_sys::Datum::from(relid),
        );
        let by_table = pg_sys::Oid::from(pg_sys::IndexIndrelidIndexId);
        let none = core::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(catalog, by_table, true, none, 1, &mut key);
        while !found {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>();
            found = (*form).indislive && ((*form).indisunique || (*form).indisexclusion);
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, share);
    }
    found
}

/// # Safety
/// `index` is an open, locked index.
unsafe fn offers(
    index: pg_sys::Relation,
    wanted: Wanted,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> bool {
    // SAFETY: as required of the caller; expression and predicate are copies.
    unsafe {
        let form = (*index).rd_index;
        let method = (*(*index).rd_rel).relam;
        if !(*form).indisvalid || ![pg_sys::BTREE_AM_OID, pg_sys::BRIN_AM_OID].contains(&method) {
            return false;
        }
        let first = *(*form).indkey.values.as_ptr();
        let predicate: Vec<*mut pg_sys::Node> =
            lists::iter(pg_sys::RelationGetIndexPredicate(index)).collect();
        let covers = |condition: *mut pg_sys::Expr| match predicate.as_slice() {
            [] => true,
            [only] => nodes::same(*only, condition),
            _ => false,
        };
        let ttl_var = || ttl.map(|column| nodes::var(1, column));
        match wanted {
            Wanted::AllByTimestamp => first == ts.attno && predicate.is_empty(),
            Wanted::InheritingByTimestamp => {
                first == ts.attno && ttl_var().is_some_and(|ttl| covers(nodes::is_null(ttl)))
            }
            Wanted::OverridingByExpiry => {
                let (Some(ttl), Some(functions)) = (ttl_var(), extension::functions()) else {
                    return false;
                };
                let args = [nodes::var(1, ts), ttl, nodes::int4(None)];
                let expiry = nodes::call(functions.expires_at, pg_sys::TIMESTAMPTZOID, &args);
                let positive = nodes::greater_than(pg_sys::INT4OID, ttl, nodes::int4(Some(0)));
                let mut expressions =
                    lists::iter::<pg_sys::Node>(pg_sys::RelationGetIndexExpressions(index));
                first == 0
                    && expressions
                        .next()
                        .is_some_and(|expression| nodes::same(expression, expiry))
                    && covers(positive)
            }
        }
    }
}

/// # Safety
/// `index` is an open, locked index.
unsafe fn is_by_date(index: pg_sys::Relation, column: &Attribute, date: DateType) -> bool {
    // SAFETY: as required of the caller; the expression is a copy.
    unsafe {
        let form = (*index).rd_index;
        let ordered = (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID
            && *(*index).rd_opfamily == ttl_index::DATETIME_OPS;
        if !(*form).indisvalid || !ordered {
            return false;
        }
        let first = *(*form).indkey.values.as_ptr();
        if date.is_array {
            let Some(functions) = extension::functions() else {
                return false;
            };
            let earliest = functions.earliest[date.kind.number()];
            let column = [nodes::var(1, column)];
            let earliest = nodes::call(earliest, pg_sys::TIMESTAMPTZOID, &column);
            let mut expressions =
                lists::iter::<pg_sys::Node>(pg_sys::RelationGetIndexExpressions(index));
            first == 0 && expressions.next().is_some_and(|e| nodes::same(e, earliest))
        } else {
            first == column.attno
        }
    }
}

/// Whether the index is not partial, or has this predicate.
///
/// # Safety
/// `index` is an open, locked index.
unsafe fn has_predicate(index: pg_sys::Relation, wanted: Option<&Predicate>) -> bool {
    // SAFETY: as required of the caller; the predicate is a copy.
    unsafe {
        let predicate = pg_sys::RelationGetIndexPredicate(index);
        predicate.is_null()
            || wanted.is_some_and(|wanted| {
                let wanted = pg_sys::make_ands_implicit(wanted.simplified(1));
                nodes::same(predicate, wanted)
            })
    }
}

/// The columns on which the key and the predicate depend; what is not above 0 is a
/// system column or the whole row.
///
/// # Safety
/// An index's information.
pub(crate) unsafe fn columns_of(info: *mut pg_sys::IndexInfo) -> Vec<i16> {
    // SAFETY: as required of the caller; the trees are only read.
    unsafe {
        let count = usize::try_from((*info).ii_NumIndexKeyAttrs).unwrap_or(0);
        let info = &*info;
        let mut columns: Vec<i16> = info.ii_IndexAttrNumbers[..count]
            .iter()
            .copied()
            .filter(|&attno| attno != 0)
            .collect();
        let mut used = core::ptr::null_mut();
        for tree in [info.ii_Expressions, info.ii_Predicate] {
            pg_sys::pull_varattnos(tree.cast(), 1, &mut used);
        }
        let mut member = -1;
        loop {
            member = pg_sys::bms_next_member(used, member);
            if member < 0 {
                break;
            }
            let attno = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
            columns.extend(i16::try_from(attno));
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}
