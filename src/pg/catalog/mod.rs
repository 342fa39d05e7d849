//! Look-ups in the system catalogs.

pub(crate) mod cascade;
pub(crate) mod code;
pub(crate) mod constraints;
pub(crate) mod databases;
pub(crate) mod defaults;
pub(crate) mod expressions;
pub(crate) mod foreign_key;
pub(crate) mod functions_used;
pub(crate) mod index;
pub(crate) mod index_entry;
pub(crate) mod inheritance;
pub(crate) mod invalidation;
pub(crate) mod local_time;
pub(crate) mod names;
pub(crate) mod namespaced_options;
pub(crate) mod object_access;
pub(crate) mod partition;
pub(crate) mod replication;
pub(crate) mod roles;
pub(crate) mod rows;
pub(crate) mod stored_tree;
pub(crate) mod syntax;
pub(in crate::pg) mod temporary;
pub(crate) mod timescale;
pub(crate) mod triggers;

use crate::pg::abi::encoding;
use pgrx::pg_sys;

pub(crate) use self::inheritance::{
    all_below, all_inheritors, all_inheritors_of, ancestors, being_detached, parents,
    partitioned_ancestors, partitioned_parent,
};

/// What a policy needs to know of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Attribute {
    pub(crate) attno: i16,
    pub(crate) type_oid: pg_sys::Oid,
    pub(crate) typmod: i32,
    pub(crate) not_null: bool,
    pub(crate) has_default: bool,
    pub(crate) generated: bool,
}

/// Forgets all catalog caches of this session, as if every invalidation message had come: from
/// now on it sees what others have committed.
pub(crate) fn forget_caches() {
    // SAFETY: what PostgreSQL does when it has lost messages; within a transaction.
    unsafe { pg_sys::InvalidateSystemCaches() };
}

/// Makes every session forget the relation and plan again: at commit, this session at the next
/// command.
pub(crate) fn invalidate(relid: pg_sys::Oid) {
    // SAFETY: within a transaction; only queues a message.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(relid) };
}

/// The column of that name, unless it is dropped or absent.
pub(crate) fn attribute(relid: pg_sys::Oid, name: &str) -> Option<Attribute> {
    let name = encoding::to_server(name)?;
    // SAFETY: SearchSysCacheAttName skips dropped columns; the tuple is read before its release.
    unsafe {
        let tuple = pg_sys::SearchSysCacheAttName(relid, name.as_ptr());
        let form = tuple
            .as_ref()
            .map(|_| pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_attribute>())?;
        let found = Attribute {
            attno: (*form).attnum,
            type_oid: (*form).atttypid,
            typmod: (*form).atttypmod,
            not_null: (*form).attnotnull,
            has_default: (*form).atthasdef,
            generated: (*form).attgenerated != 0,
        };
        pg_sys::ReleaseSysCache(tuple);
        (found.attno > 0).then_some(found)
    }
}

/// What a policy needs to know of a relation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Class {
    pub(crate) relkind: u8,
    pub(crate) is_partition: bool,
    pub(crate) owner: pg_sys::Oid,
    pub(crate) namespace: pg_sys::Oid,
    pub(crate) persistence: u8,
    pub(crate) has_rules: bool,
    /// False: it has no partitions, and nothing inherits from it.
    pub(crate) may_have_children: bool,
    /// The type of its rows; invalid if it has none.
    pub(crate) row_type: pg_sys::Oid,
}

impl Class {
    /// Whether it has rows itself, and may have a time to live.
    pub(crate) fn has_rows(&self) -> bool {
        self.relkind == pg_sys::RELKIND_RELATION
    }

    /// Whether rows have it as their type, and may have a time to live.
    pub(crate) fn is_table(&self) -> bool {
        self.has_rows() || self.relkind == pg_sys::RELKIND_PARTITIONED_TABLE
    }

    /// Whether it is a temporary relation of another session.
    pub(crate) fn is_other_temporary(&self) -> bool {
        self.persistence == pg_sys::RELPERSISTENCE_TEMP
            // SAFETY: looks the schema up in the syscache and in a variable of this process.
            && unsafe { pg_sys::isOtherTempNamespace(self.namespace) }
    }
}

pub(crate) fn has_rows(relid: pg_sys::Oid) -> bool {
    class(relid).is_some_and(|class| class.has_rows())
}

pub(crate) fn is_table(relid: pg_sys::Oid) -> bool {
    class(relid).is_some_and(|class| class.is_table())
}

pub(crate) fn is_partitioned(relid: pg_sys::Oid) -> bool {
    class(relid).is_some_and(|class| class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE)
}

pub(crate) fn is_partition(relid: pg_sys::Oid) -> bool {
    class(relid).is_some_and(|class| class.is_partition)
}

pub(crate) fn owner(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    class(relid).map(|class| class.owner)
}

/// The number of the relation's columns, dropped ones included.
pub(crate) fn column_count(relid: pg_sys::Oid) -> i16 {
    rows::CLASS.get(relid, |row| row.relnatts).unwrap_or(0)
}

/// Whether the relation has rules. `relhasrules` stays true after the last one is dropped, until VACUUM.
pub(crate) fn has_rules(relid: pg_sys::Oid) -> bool {
    let column = pg_sys::Anum_pg_rewrite_ev_class as i16;
    class(relid).is_some_and(|class| class.has_rules)
        && RULES
            .find(&[(column, rows::KeyDatum::Oid(relid))], |_| Some(()))
            .is_some()
}

// SAFETY: rows of pg_rewrite begin with this struct; the index begins with the relation's OID.
const RULES: rows::Catalog<pg_sys::FormData_pg_rewrite> = unsafe {
    rows::Catalog::new(
        pg_sys::RewriteRelationId,
        Some(pg_sys::Oid::from_u32(pg_sys::RewriteRelRulenameIndexId)),
    )
};

/// The relation's row in pg_class, or `None` if it is gone.
pub(crate) fn class(relid: pg_sys::Oid) -> Option<Class> {
    rows::CLASS.get(relid, |row| Class {
        relkind: row.relkind.cast_unsigned(),
        is_partition: row.relispartition,
        owner: row.relowner,
        namespace: row.relnamespace,
        persistence: row.relpersistence.cast_unsigned(),
        has_rules: row.relhasrules,
        may_have_children: row.relhassubclass,
        row_type: row.reltype,
    })
}

/// The number of the relation's file, which TRUNCATE and rewrites replace; 0 if it has none.
pub(crate) fn file(relid: pg_sys::Oid) -> u32 {
    rows::CLASS
        .get(relid, |row| row.relfilenode.to_u32())
        .unwrap_or(0)
}

pub(crate) fn is_btree(index: pg_sys::Oid) -> bool {
    access_method(index) == Some(pg_sys::BTREE_AM_OID)
}

pub(crate) fn is_heap(table: pg_sys::Oid) -> bool {
    access_method(table) == Some(pg_sys::HEAP_TABLE_AM_OID)
}

/// The access method of a table or index.
pub(crate) fn access_method(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    rows::CLASS.get(relid, |row| row.relam)
}

/// An access method's name; empty if there is none.
pub(crate) fn access_method_name(method: pg_sys::Oid) -> String {
    // SAFETY: the function returns a palloc'd C string, or null.
    unsafe { encoding::from_nullable(pg_sys::get_am_name(method)) }.unwrap_or_default()
}

/// The relation's name as a user would write it: qualified and quoted.
pub(crate) fn qualified_name(relid: pg_sys::Oid) -> String {
    // SAFETY: both names are palloc'd copies or null; quoting returns a valid C string.
    unsafe {
        let name = pg_sys::get_rel_name(relid);
        if name.is_null() {
            return relid.to_u32().to_string();
        }
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relid));
        encoding::from_pointer(pg_sys::quote_qualified_identifier(schema, name))
    }
}

/// The schema's name as a user would write it.
pub(crate) fn schema_name(schema: pg_sys::Oid) -> String {
    // SAFETY: the name is a palloc'd copy or null; quoting returns a valid C string.
    unsafe {
        let name = pg_sys::get_namespace_name(schema);
        if name.is_null() {
            return schema.to_u32().to_string();
        }
        encoding::from_pointer(pg_sys::quote_identifier(name))
    }
}

/// The relation's bare name; empty if there is none.
pub(crate) fn relation_name(relid: pg_sys::Oid) -> String {
    // SAFETY: the function returns a palloc'd C string, or null.
    unsafe { encoding::from_nullable(pg_sys::get_rel_name(relid)) }.unwrap_or_default()
}

/// A name that no relation of the table's schema has: the table's, `_`, the label and perhaps a number, cut
/// where it would be too long. Empty if there is no such table.
pub(crate) fn free_relation_name(relid: pg_sys::Oid, label: &str) -> String {
    let table = encoding::to_server(&relation_name(relid));
    let (Some(class), Some(table), Some(label)) = (class(relid), table, encoding::to_server(label))
    else {
        return String::new();
    };
    // SAFETY: valid C strings in, of which null stands for no second name; a palloc'd one out.
    unsafe {
        encoding::from_pointer(pg_sys::ChooseRelationName(
            table.as_ptr(),
            core::ptr::null(),
            label.as_ptr(),
            class.namespace,
            false,
        ))
    }
}

/// A name as an SQL identifier.
pub(crate) fn quote_identifier(name: &str) -> String {
    let Some(name) = encoding::to_server(name) else {
        return format!("\"{}\"", name.replace('"', "\"\""));
    };
    // SAFETY: a valid C string in, a valid C string out (possibly the same).
    unsafe { encoding::from_pointer(pg_sys::quote_identifier(name.as_ptr())) }
}

/// A text as an SQL literal.
pub(crate) fn quote_literal(text: &str) -> String {
    let Some(text) = encoding::to_server(text) else {
        return format!("'{}'", text.replace('\'', "''"));
    };
    // SAFETY: a valid C string in, a palloc'd one out.
    unsafe { encoding::from_pointer(pg_sys::quote_literal_cstr(text.as_ptr())) }
}

/// The default partition of a partitioned table.
pub(crate) fn default_partition(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: a syscache look-up within a transaction.
    let default = unsafe { pg_sys::get_default_partition_oid(relid) };
    (default != pg_sys::InvalidOid).then_some(default)
}

/// The column's name; empty if there is none.
pub(crate) fn column_name(relid: pg_sys::Oid, attno: i16) -> String {
    // SAFETY: the function returns a palloc'd C string, or null.
    unsafe { encoding::from_nullable(pg_sys::get_attname(relid, attno, true)) }.unwrap_or_default()
}

/// The columns that are not dropped, in order. Needs no lock: who looks at other owners' tables takes none.
pub(crate) fn columns(relid: pg_sys::Oid) -> impl Iterator<Item = (String, Attribute)> {
    (1..=column_count(relid)).filter_map(move |attno| {
        // The name of a dropped column finds none.
        let name = column_name(relid, attno);
        let column = attribute(relid, &name)?;
        Some((name, column))
    })
}

/// The columns that COPY writes when none are named: neither dropped nor
/// generated, in order.
pub(crate) fn copied_columns(relid: pg_sys::Oid) -> impl Iterator<Item = String> {
    columns(relid)
        .filter(|(_, column)| !column.generated)
        .map(|(name, _)| name)
}
