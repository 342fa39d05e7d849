//! Foreign keys, as PostgreSQL's own queries name them.
//!
//! Names are bytes: their encoding is the database's.

use super::rows::{self, Cache};
use super::triggers::{self, Trigger};
use crate::pg::abi::encoding;
use crate::pg::abi::lists;
use crate::pg::catalog;
use pgrx::pg_sys;
use std::ffi::CStr;

/// A table of a foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignKeyTable {
    /// Its schema and name, both quoted.
    pub(crate) name: Vec<u8>,
    pub(crate) partitioned: bool,
}

/// An operator between two operands, as written with the casts that they need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operator {
    /// The text between the operands.
    pub(crate) between: Vec<u8>,
    /// The text after the second operand.
    pub(crate) after: Vec<u8>,
}

/// A pair of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnPair {
    /// The referenced column's name, quoted.
    pub(crate) referenced: Vec<u8>,
    /// The referencing column's name, quoted.
    pub(crate) referencing: Vec<u8>,
    /// Referenced `=` referencing.
    pub(crate) equal: Operator,
    /// Referenced `=` referenced.
    pub(crate) both_referenced: Operator,
    /// ` COLLATE …` of the referenced column, if the other one's collation differs.
    pub(crate) collation: Vec<u8>,
    /// Whether the referenced column's collation is deterministic.
    pub(crate) is_deterministic: bool,
}

/// What a foreign key with PERIOD has in addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeriodColumns {
    /// Referencing `<@` the ranges of the referenced rows together.
    pub(crate) contained: Operator,
    /// Referencing `*` referenced.
    pub(crate) intersection: Operator,
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub(crate) referencing: ForeignKeyTable,
    pub(crate) referenced: ForeignKeyTable,
    pub(crate) pairs: Vec<ColumnPair>,
    /// `pg_constraint.confdeltype`, `confupdtype`.
    pub(crate) on_delete: u8,
    pub(crate) on_update: u8,
    /// MATCH FULL.
    pub(crate) full: bool,
    /// The columns of ON DELETE SET NULL (…), quoted; empty: all.
    pub(crate) set_on_delete: Vec<Vec<u8>>,
    pub(crate) period: Option<PeriodColumns>,
}

/// A foreign key's row in `pg_constraint`.
pub(crate) struct ForeignKeyRow {
    pub(crate) referencing: pg_sys::Oid,
    pub(crate) referenced: pg_sys::Oid,
    index: pg_sys::Oid,
    pub(crate) on_delete: u8,
    on_update: u8,
    full: bool,
    has_period: bool,
    /// Referencing and referenced column, the operator between them, and the one between two
    /// referenced ones.
    columns: Vec<(i16, i16, pg_sys::Oid, pg_sys::Oid)>,
    set_on_delete: Vec<i16>,
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

/// The row of a foreign key; `None` if it is gone.
pub(crate) fn row(constraint: pg_sys::Oid) -> Option<ForeignKeyRow> {
    const MOST: usize = pg_sys::INDEX_MAX_KEYS as usize;
    let none = pg_sys::InvalidOid;
    let (mut count, mut set_count) = (0, 0);
    let (mut referencing, mut referenced, mut set) = ([0; MOST], [0; MOST], [0; MOST]);
    let (mut equal, mut both_referenced, mut other) = ([none; MOST], [none; MOST], [none; MOST]);
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
                    other.as_mut_ptr(),
                    &mut set_count,
                    set.as_mut_ptr(),
                );
            }
            let number = |count| usize::try_from(count).unwrap_or(0).min(MOST);
            let found = ForeignKeyRow {
                referencing: form.conrelid,
                referenced: form.confrelid,
                index: form.conindid,
                on_delete: form.confdeltype.cast_unsigned(),
                on_update: form.confupdtype.cast_unsigned(),
                full: form.confmatchtype.cast_unsigned() == b'f',
                has_period: has_period(form),
                columns: (0..number(count))
                    .map(|at| {
                        (
                            referencing[at],
                            referenced[at],
                            equal[at],
                            both_referenced[at],
                        )
                    })
                    .collect(),
                set_on_delete: set[..number(set_count)].to_vec(),
            };
            Some(found)
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

impl ForeignKeyRow {
    /// Adds all names. The tables exist, as the caller has locked them, or the one that the
    /// constraint belongs to.
    pub(crate) fn named(&self) -> Option<ForeignKey> {
        Some(ForeignKey {
            referencing: table(self.referencing)?,
            referenced: table(self.referenced)?,
            pairs: self.columns.iter().map(|pair| self.pair(*pair)).collect(),
            on_delete: self.on_delete,
            on_update: self.on_update,
            full: self.full,
            set_on_delete: self
                .set_on_delete
                .iter()
                .map(|&attno| column(self.referencing, attno))
                .collect(),
            period: self.period(),
        })
    }

    /// The referencing columns.
    pub(crate) fn referencing_columns(&self) -> Vec<i16> {
        self.columns
            .iter()
            .map(|&(referencing, ..)| referencing)
            .collect()
    }

    /// The referenced columns.
    pub(crate) fn referenced_columns(&self) -> impl Iterator<Item = i16> {
        self.columns.iter().map(|&(_, referenced, ..)| referenced)
    }

    fn pair(&self, pair: (i16, i16, pg_sys::Oid, pg_sys::Oid)) -> ColumnPair {
        let (referencing, referenced, equal, both_referenced) = pair;
        let (fk_type, fk_collation) = type_of(self.referencing, referencing);
        let (pk_type, pk_collation) = type_of(self.referenced, referenced);
        let differs = pk_collation != fk_collation && pk_collation != pg_sys::InvalidOid;
        // SAFETY: a syscache look-up; the collation is that of a column.
        let decides = || unsafe { pg_sys::get_collation_isdeterministic(pk_collation) };
        ColumnPair {
            referenced: column(self.referenced, referenced),
            referencing: column(self.referencing, referencing),
            equal: operator(pk_type, equal, fk_type),
            both_referenced: operator(pk_type, both_referenced, pk_type),
            collation: if differs {
                collation(pk_collation)
            } else {
                vec![]
            },
            is_deterministic: !differs || decides(),
        }
    }

    fn period(&self) -> Option<PeriodColumns> {
        let &(referencing, referenced, ..) = self.columns.last().filter(|_| self.has_period)?;
        let (fk_type, _) = type_of(self.referencing, referencing);
        let (pk_type, _) = type_of(self.referenced, referenced);
        let position = i32::try_from(self.columns.len()).ok()?;
        // SAFETY: syscache look-ups; the index is the one that the constraint depends on.
        let (contained, intersection) = unsafe {
            let opclass = pg_sys::get_index_column_opclass(self.index, position);
            operators_of_period(opclass)
        };
        Some(PeriodColumns {
            contained: operator(fk_type, contained, pg_sys::ANYMULTIRANGEOID),
            intersection: operator(fk_type, intersection, pk_type),
        })
    }
}

/// Whether it has PERIOD.
fn has_period(form: &pg_sys::FormData_pg_constraint) -> bool {
    #[cfg(since18)]
    return form.conperiod;
    #[cfg(not(since18))]
    {
        let _ = form;
        false
    }
}

/// For PERIOD, the operators "contained in several ranges" and "intersection".
///
/// # Safety
/// The operator class of the index's last column, of a foreign key with PERIOD.
unsafe fn operators_of_period(opclass: pg_sys::Oid) -> (pg_sys::Oid, pg_sys::Oid) {
    #[cfg(since18)]
    {
        let mut found = [pg_sys::InvalidOid; 3];
        let [contained, several, intersection] = &mut found;
        // SAFETY: as required of the caller; the results are variables of this function.
        unsafe { pg_sys::FindFKPeriodOpers(opclass, contained, several, intersection) };
        (found[1], found[2])
    }
    #[cfg(not(since18))]
    (opclass, opclass)
}

/// The partition's constraint on the alias `pk`; empty for none.
pub(crate) fn partition_constraint(relid: pg_sys::Oid) -> Vec<u8> {
    // SAFETY: the result is a palloc'd C string or null; the alias is only read.
    unsafe {
        bytes(pg_sys::pg_get_partconstrdef_string(
            relid,
            c"pk".as_ptr().cast_mut(),
        ))
    }
}

/// The type of a table made by `CREATE TABLE … OF`, as a relation: ALTER TYPE changes such
/// tables.
pub(crate) fn type_of_table(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let of_type = rows::CLASS.get(relid, |row| row.reloftype)?;
    // SAFETY: a syscache look-up within a transaction.
    (of_type != pg_sys::InvalidOid).then(|| unsafe { pg_sys::get_typ_typrelid(of_type) })
}

/// The table's name.
pub(crate) fn table(relid: pg_sys::Oid) -> Option<ForeignKeyTable> {
    let class = catalog::class(relid)?;
    // SAFETY: both names are palloc'd copies or null.
    let (schema, name) = unsafe {
        (
            bytes(pg_sys::get_namespace_name(class.namespace)),
            bytes(pg_sys::get_rel_name(relid)),
        )
    };
    Some(ForeignKeyTable {
        name: [quoted(&schema), quoted(&name)].join(&b'.'),
        partitioned: class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE,
    })
}

/// The column's name, quoted.
fn column(relid: pg_sys::Oid, attno: i16) -> Vec<u8> {
    // SAFETY: the function returns a palloc'd copy of the name, or null.
    quoted(&unsafe { bytes(pg_sys::get_attname(relid, attno, true)) })
}

/// The column's type and collation.
fn type_of(relid: pg_sys::Oid, attno: i16) -> (pg_sys::Oid, pg_sys::Oid) {
    let (mut type_oid, mut typmod) = (pg_sys::InvalidOid, -1);
    let mut collation = pg_sys::InvalidOid;
    // SAFETY: a syscache look-up; columns of a constraint exist.
    unsafe {
        pg_sys::get_atttypetypmodcoll(relid, attno, &mut type_oid, &mut typmod, &mut collation);
    }
    (type_oid, collation)
}

/// The operator between operands of these types, as PostgreSQL writes it.
fn operator(left: pg_sys::Oid, operator: pg_sys::Oid, right: pg_sys::Oid) -> Operator {
    let (mut takes_left, mut takes_right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: a syscache look-up; the operator is that of a constraint.
    unsafe { pg_sys::op_input_types(operator, &mut takes_left, &mut takes_right) };
    // An operand of the operator's own type needs no cast.
    let between = without_operands(left, operator, takes_right);
    let all = without_operands(left, operator, right);
    Operator {
        after: all.get(between.len()..).unwrap_or_default().to_vec(),
        between,
    }
}

fn without_operands(left: pg_sys::Oid, operator: pg_sys::Oid, right: pg_sys::Oid) -> Vec<u8> {
    let none = c"".as_ptr();
    // SAFETY: the operator is that of a constraint; the buffer holds a C string.
    unsafe {
        let buffer = pg_sys::makeStringInfo();
        pg_sys::generate_operator_clause(buffer, none, left, operator, none, right);
        bytes((*buffer).data)
    }
}

/// ` COLLATE …`.
fn collation(oid: pg_sys::Oid) -> Vec<u8> {
    let names = COLLATION.get(oid, |row| {
        // SAFETY: a palloc'd C string or null, and the name in the row, which are copied.
        unsafe {
            let schema = bytes(pg_sys::get_namespace_name(row.collnamespace));
            [quoted(&schema), quoted(&bytes(row.collname.data.as_ptr()))]
        }
    });
    names.map_or(vec![], |names| {
        [b" COLLATE ".to_vec(), names.join(&b'.')].concat()
    })
}

/// The name in quotes, whether needed or not, as PostgreSQL's foreign-key queries have it.
fn quoted(name: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in name {
        if byte == b'"' {
            quoted.push(b'"');
        }
        quoted.push(byte);
    }
    quoted.push(b'"');
    quoted
}

/// # Safety
/// `text` is a C string or null.
unsafe fn bytes(text: *const core::ffi::c_char) -> Vec<u8> {
    if text.is_null() {
        return vec![];
    }
    // SAFETY: as required of the caller.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotes_double_quotes() {
        assert_eq!(super::quoted(b"a\"b"), b"\"a\"\"b\"");
    }
}
