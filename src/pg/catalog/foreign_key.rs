//! Foreign keys, and what they compare, in SQL.
//!
//! Names are bytes: their encoding is the database's.

use super::rows::{self, Cache};
use super::triggers::{self, Trigger};
use crate::pg::abi::encoding;
use crate::pg::abi::lists;
use crate::pg::catalog;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// A pair of columns, and the operator "referenced `=` referencing".
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnPair {
    pub(crate) referencing: i16,
    pub(crate) referenced: i16,
    pub(crate) equal: pg_sys::Oid,
}

/// A foreign key: its row in `pg_constraint`.
#[derive(Debug)]
pub(crate) struct ForeignKey {
    pub(crate) referencing: pg_sys::Oid,
    pub(crate) referenced: pg_sys::Oid,
    pub(crate) pairs: Vec<ColumnPair>,
    /// `confdeltype`, `confupdtype`.
    pub(crate) on_delete: u8,
    pub(crate) on_update: u8,
    /// MATCH FULL.
    pub(crate) full: bool,
    pub(crate) has_period: bool,
}

/// A column's type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnType {
    pub(crate) oid: pg_sys::Oid,
    pub(crate) typmod: i32,
    pub(crate) collation: pg_sys::Oid,
}

/// The foreign keys of which the table is the referencing one. The caller has a lock on it.
pub(crate) fn of_referencing(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let no_lock = pg_sys::NoLock.cast_signed();
    // SAFETY: the list is the relation's description's, and copied before anything can
    // change it.
    unsafe {
        let table = pg_sys::table_open(relid, no_lock);
        let list = pg_sys::RelationGetFKeyList(table);
        let keys = lists::iter::<pg_sys::ForeignKeyCacheInfo>(list)
            .map(|key| (*key).conoid)
            .collect();
        pg_sys::table_close(table, no_lock);
        keys
    }
}

/// The foreign keys that reference the table and that its own triggers enforce.
pub(crate) fn of_referenced(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut all = triggers::of(relid);
    all.retain(Trigger::is_referenced_at_deletion);
    all.iter().map(|trigger| trigger.constraint).collect()
}

// SAFETY: CONSTROID is the syscache of pg_constraint by OID, whose rows begin with this struct.
const CONSTRAINT: Cache<pg_sys::FormData_pg_constraint> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::CONSTROID) };
// SAFETY: COLLOID is the syscache of pg_collation by OID, whose rows begin with this struct.
const COLLATION: Cache<pg_sys::FormData_pg_collation> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::COLLOID) };

/// The foreign key; `None` if it is gone.
pub(crate) fn get(constraint: pg_sys::Oid) -> Option<ForeignKey> {
    const MOST: usize = pg_sys::INDEX_MAX_KEYS as usize;
    let (mut count, mut set_count) = (0, 0);
    let (mut referencing, mut referenced, mut set) = ([0; MOST], [0; MOST], [0; MOST]);
    let mut operators = [[pg_sys::InvalidOid; MOST]; 3];
    let [equal, both_referenced, both_referencing] = &mut operators;
    CONSTRAINT
        .get(constraint, |form| {
            if form.contype.cast_unsigned() != b'f' {
                return None;
            }
            // SAFETY: INDEX_MAX_KEYS is the greatest number of columns of a foreign key.
            unsafe {
                pg_sys::DeconstructFkConstraintRow(
                    form.tuple(),
                    &mut count,
                    referencing.as_mut_ptr(),
                    referenced.as_mut_ptr(),
                    equal.as_mut_ptr(),
                    both_referenced.as_mut_ptr(),
                    both_referencing.as_mut_ptr(),
                    &mut set_count,
                    set.as_mut_ptr(),
                );
            }
            let pair = |at| ColumnPair {
                referencing: referencing[at],
                referenced: referenced[at],
                equal: equal[at],
            };
            let count = usize::try_from(count).unwrap_or(0).min(MOST);
            Some(ForeignKey {
                referencing: form.conrelid,
                referenced: form.confrelid,
                pairs: (0..count).map(pair).collect(),
                on_delete: form.confdeltype.cast_unsigned(),
                on_update: form.confupdtype.cast_unsigned(),
                full: form.confmatchtype.cast_unsigned() == b'f',
                has_period: has_period(form),
            })
        })
        .flatten()
}

/// The foreign key's name; empty if it is gone.
pub(crate) fn name(constraint: pg_sys::Oid) -> String {
    CONSTRAINT
        // SAFETY: a name is a C string.
        .get(constraint, |form| unsafe {
            encoding::from_pointer(form.conname.data.as_ptr())
        })
        .unwrap_or_default()
}

impl ForeignKey {
    pub(crate) fn referencing_columns(&self) -> impl Iterator<Item = i16> {
        self.pairs.iter().map(|pair| pair.referencing)
    }

    /// The types of a pair: the referencing column's, and the referenced one's.
    pub(crate) fn types(&self, pair: ColumnPair) -> [ColumnType; 2] {
        [
            column_type(self.referencing, pair.referencing),
            column_type(self.referenced, pair.referenced),
        ]
    }

    /// In SQL, "the row refers to this key", by the foreign key's operators: `key` has an operand for each
    /// column, by number and name of the referenced one; `prefix` stands before the names of the referencing
    /// columns.
    pub(crate) fn refers(&self, prefix: &[u8], key: impl Fn(usize, &[u8]) -> Vec<u8>) -> Vec<u8> {
        let each = self.pairs.iter().enumerate().map(|(at, &pair)| {
            let [from, to] = self.types(pair);
            let left = key(at, &column(self.referenced, pair.referenced));
            let right = [prefix, &column(self.referencing, pair.referencing)].concat();
            let mut text = comparison((left, to.oid), pair.equal, (right, from.oid));
            if from.collation != to.collation {
                // SAFETY: a syscache look-up; the collation is that of a column, or none.
                let is_deterministic = to.collation == pg_sys::InvalidOid
                    || unsafe { pg_sys::get_collation_isdeterministic(to.collation) };
                // Deterministic ones agree on what is equal; an index has the referencing one's.
                text.extend(collate(if is_deterministic {
                    from.collation
                } else {
                    to.collation
                }));
            }
            text
        });
        each.collect::<Vec<_>>().join(&b" AND "[..])
    }
}

fn has_period(form: &pg_sys::FormData_pg_constraint) -> bool {
    #[cfg(since18)]
    return form.conperiod;
    #[cfg(not(since18))]
    {
        let _ = form;
        false
    }
}

/// The type of a table made by `CREATE TABLE … OF`, as a relation: ALTER TYPE changes such
/// tables.
pub(crate) fn type_of_table(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let of_type = rows::CLASS.get(relid, |row| row.reloftype)?;
    // SAFETY: a syscache look-up within a transaction.
    (of_type != pg_sys::InvalidOid).then(|| unsafe { pg_sys::get_typ_typrelid(of_type) })
}

/// The table for FROM, with its schema: not its children, but its partitions.
pub(crate) fn from(relid: pg_sys::Oid) -> Vec<u8> {
    let class = catalog::class(relid);
    let partitioned = class.is_some_and(|class| class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE);
    let only: &[u8] = if partitioned { b"" } else { b"ONLY " };
    [only, &table(relid)].concat()
}

/// The table's name, with its schema, as an identifier.
pub(crate) fn table(relid: pg_sys::Oid) -> Vec<u8> {
    // SAFETY: the caller has locked the table, so that it has a name in a schema; both are palloc'd copies.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relid));
        match pg_sys::get_rel_name(relid) {
            name if name.is_null() || schema.is_null() => vec![],
            name => bytes(pg_sys::quote_qualified_identifier(schema, name)),
        }
    }
}

/// The column's name, as an identifier.
fn column(relid: pg_sys::Oid, attno: i16) -> Vec<u8> {
    // SAFETY: raises an error for a column that does not exist; else a palloc'd name.
    unsafe {
        bytes(pg_sys::quote_identifier(pg_sys::get_attname(
            relid, attno, false,
        )))
    }
}

fn column_type(relid: pg_sys::Oid, attno: i16) -> ColumnType {
    let mut found = ColumnType {
        oid: pg_sys::InvalidOid,
        typmod: -1,
        collation: pg_sys::InvalidOid,
    };
    let ColumnType {
        oid,
        typmod,
        collation,
    } = &mut found;
    // SAFETY: a syscache look-up; columns of a constraint exist.
    unsafe { pg_sys::get_atttypetypmodcoll(relid, attno, oid, typmod, collation) };
    found
}

/// The operator between operands of these types, with the casts that they need.
fn comparison(
    left: (Vec<u8>, pg_sys::Oid),
    operator: pg_sys::Oid,
    right: (Vec<u8>, pg_sys::Oid),
) -> Vec<u8> {
    let [left_text, right_text] =
        [left.0, right.0].map(|text| CString::new(text).unwrap_or_default());
    // SAFETY: the operator is that of a constraint; the buffer holds a C string.
    unsafe {
        let buffer = pg_sys::makeStringInfo();
        pg_sys::generate_operator_clause(
            buffer,
            left_text.as_ptr(),
            left.1,
            operator,
            right_text.as_ptr(),
            right.1,
        );
        bytes((*buffer).data)
    }
}

/// ` COLLATE …`; empty for none.
fn collate(collation: pg_sys::Oid) -> Vec<u8> {
    let name = COLLATION.get(collation, |row| {
        // SAFETY: the row's name ends with a zero byte, and its schema exists; palloc'd copies.
        unsafe {
            let schema = pg_sys::get_namespace_name(row.collnamespace);
            bytes(pg_sys::quote_qualified_identifier(
                schema,
                row.collname.data.as_ptr(),
            ))
        }
    });
    name.map_or(vec![], |name| [b" COLLATE ", &name[..]].concat())
}

/// A copy of the text; of null an empty one.
///
/// # Safety
/// `text` is a C string or null.
pub(in crate::pg) unsafe fn bytes(text: *const core::ffi::c_char) -> Vec<u8> {
    if text.is_null() {
        return vec![];
    }
    // SAFETY: as required of the caller.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}
