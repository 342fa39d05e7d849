//! Looks up objects by name.

use super::rows::{self, CatalogRow, KeyDatum};
use super::syntax::Node;
use crate::pg::abi::{encoding, lists};
use crate::pg::catalog;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{CStr, CString};

// SAFETY: rows of pg_extension begin with this struct; the scan uses no index.
const EXTENSIONS: rows::Catalog<pg_sys::FormData_pg_extension> =
    unsafe { rows::Catalog::new(pg_sys::ExtensionRelationId, None) };

pub(in crate::pg) fn valid(oid: Oid) -> Option<Oid> {
    (oid != pg_sys::InvalidOid).then_some(oid)
}

pub(crate) fn relation(schema: Oid, name: &str) -> Option<Oid> {
    let name = encoding::to_server(name)?;
    // SAFETY: a syscache look-up within a transaction.
    valid(unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) })
}

/// The parts of a name that may be qualified and quoted, as PostgreSQL reads it; raises its error
/// for what is no name.
pub(crate) fn parts(name: &str) -> Vec<String> {
    let name = encoding::query(name);
    // SAFETY: the text and the list are in the current memory context.
    unsafe {
        let text = pg_sys::cstring_to_text(name.as_ptr());
        let names = pg_sys::textToQualifiedNameList(text);
        lists::names(names).map(encoding::from_server).collect()
    }
}

/// Whether the text is the relation's name, with its schema, quoted in any way: how PostgreSQL writes a name
/// depends on settings, so that texts cannot be compared.
pub(crate) fn is_of(relid: Oid, text: &str) -> bool {
    let schema = rows::CLASS.get(relid, |row| row.relnamespace);
    schema.is_some_and(|schema| {
        split(text).is_some_and(|parts| parts == [of_schema(schema), catalog::relation_name(relid)])
    })
}

/// The relation of a name with its schema, quoted in any way; `None` for anything else.
pub(crate) fn qualified(text: &str) -> Option<Oid> {
    let parts = split(text)?;
    let [of, name] = parts.as_slice() else {
        return None;
    };
    relation(schema(&encoding::to_server(of)?)?, name)
}

/// The parts of a name; `None` if it is none.
fn split(text: &str) -> Option<Vec<String>> {
    let text = encoding::to_server(text)?;
    let mut names = core::ptr::null_mut();
    // SAFETY: the function changes a copy of the text, to which the names point.
    unsafe {
        let copy = pg_sys::pstrdup(text.as_ptr());
        pg_sys::SplitIdentifierString(copy, b'.'.cast_signed(), &mut names).then(|| {
            lists::iter::<core::ffi::c_char>(names)
                .map(|name| encoding::from_pointer(name))
                .collect()
        })
    }
}

pub(crate) fn schema(name: &CStr) -> Option<Oid> {
    // SAFETY: a syscache look-up within a transaction.
    valid(unsafe { pg_sys::get_namespace_oid(name.as_ptr(), true) })
}

/// The schema's name, not quoted; empty if there is none.
pub(crate) fn of_schema(schema: Oid) -> String {
    // SAFETY: the function returns a palloc'd C string, or null.
    unsafe { encoding::from_nullable(pg_sys::get_namespace_name(schema)) }.unwrap_or_default()
}

/// The operator's name, without its schema.
pub(crate) fn of_operator(operator: Oid) -> String {
    // SAFETY: the function returns a palloc'd C string, or null.
    unsafe { encoding::from_nullable(pg_sys::get_opname(operator)) }.unwrap_or_default()
}

pub(crate) fn extension(name: &CStr) -> Option<Oid> {
    // SAFETY: a catalog look-up within a transaction.
    valid(unsafe { pg_sys::get_extension_oid(name.as_ptr(), true) })
}

/// The version of the extension's objects in this database, if it is here.
pub(crate) fn extension_version(name: &CStr) -> Option<String> {
    let key = (
        pg_sys::Anum_pg_extension_extname as i16,
        KeyDatum::Name(name),
    );
    let version = |row: &CatalogRow<'_, pg_sys::FormData_pg_extension>| {
        row.value(pg_sys::Anum_pg_extension_extversion)
    };
    EXTENSIONS.find(&[key], |row| {
        // SAFETY: extversion is of type text, and is not NULL here.
        version(row).map(|it| unsafe { encoding::from_datum(it) })
    })
}

/// The function with this name and these argument types, if it is in this language.
pub(crate) fn function(schema: Oid, name: &CStr, args: &[Oid], language: Oid) -> Option<Oid> {
    let count = i32::try_from(args.len()).ok()?;
    // SAFETY: the key's parts live during the search; the tuple is read before its release.
    unsafe {
        let tuple = pg_sys::SearchSysCache3(
            rows::cache_number(pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP),
            name.as_ptr().into(),
            pg_sys::buildoidvector(args.as_ptr(), count).into(),
            schema.into(),
        );
        let row = tuple
            .as_ref()
            .map(|_| pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>())?;
        let found = ((*row).prolang == language).then_some((*row).oid);
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}

/// The function's name, if it is in `pg_catalog`, where only superusers create any.
pub(crate) fn built_in(function: Oid) -> Option<CString> {
    let built_in = |row: &rows::CatalogRow<'_, pg_sys::FormData_pg_proc>| {
        let schema = Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);
        // SAFETY: PostgreSQL ends every value of type name with a zero byte.
        let name = || unsafe { CStr::from_ptr(row.proname.data.as_ptr()) };
        (row.pronamespace == schema).then(|| name().to_owned())
    };
    rows::FUNCTION.get(function, built_in).flatten()
}

/// The type of that name and its modifier; `None` if there is none. `%TYPE` is not looked up.
pub(crate) fn named_type(name: Node<'_, pg_sys::TypeName>) -> Option<(Oid, i32)> {
    if name.pct_type {
        return None;
    }
    let mut typmod = -1;
    // SAFETY: a name of the parser; the tuple is read before its release.
    unsafe {
        let none = core::ptr::null_mut();
        let tuple = pg_sys::LookupTypeName(none, name.as_ptr(), &mut typmod, true);
        let row = tuple
            .as_ref()
            .map(|_| pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_type>())?;
        let type_oid = (*row).oid;
        pg_sys::ReleaseSysCache(tuple);
        Some((type_oid, typmod))
    }
}

/// The type itself, or that below a domain.
pub(crate) fn base_type(type_oid: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::getBaseType(type_oid) }
}

/// A type, as a user would write it.
pub(crate) fn of_type(type_oid: Oid) -> String {
    // SAFETY: the function returns a palloc'd C string.
    unsafe { encoding::from_pointer(pg_sys::format_type_be(type_oid)) }
}

/// A function with its arguments, as a user would write it.
pub(crate) fn of_function(function: Oid) -> String {
    // SAFETY: the function returns a palloc'd C string.
    unsafe { encoding::from_pointer(pg_sys::format_procedure(function)) }
}

/// The name of a relation in a statement.
#[derive(Clone, Copy)]
pub(crate) enum RelationName<'a> {
    Range(Node<'a, pg_sys::RangeVar>),
    /// The first parts of a list of names, this many.
    Parts(Node<'a, pg_sys::List>, i32),
}

impl RelationName<'_> {
    /// The relation, without locking it; `None` if it does not exist.
    pub(crate) fn resolve(self) -> Option<Oid> {
        let (missing_ok, none) = (pg_sys::RVROption::RVR_MISSING_OK, core::ptr::null_mut());
        // SAFETY: names of the parser, of which a copy is shortened.
        valid(unsafe {
            let name = match self {
                Self::Range(name) => name.as_ptr(),
                Self::Parts(names, count) => {
                    let names = pg_sys::list_truncate(pg_sys::list_copy(names.as_ptr()), count);
                    pg_sys::makeRangeVarFromNameList(names)
                }
            };
            let lock = pg_sys::NoLock.cast_signed();
            pg_sys::RangeVarGetRelidExtended(name, lock, missing_ok, None, none)
        })
    }
}

/// The relation that CREATE TABLE has created. A name without a schema is looked up in the schema
/// of creation, not along the `search_path`.
pub(crate) fn created(statement: Node<'_, pg_sys::CreateStmt>) -> Option<Oid> {
    created_as(statement.node(|statement| &statement.relation)?)
}

/// As [`created`], of another statement that creates a relation of that name; before the
/// statement: the relation that has the name already.
pub(crate) fn created_as(name: Node<'_, pg_sys::RangeVar>) -> Option<Oid> {
    // SAFETY: `name` is a RangeVar that the parser made.
    valid(unsafe {
        let schema = pg_sys::RangeVarGetCreationNamespace(name.as_ptr());
        pg_sys::get_relname_relid(name.relname, schema)
    })
}

pub(crate) fn option_value(option: Node<'_, pg_sys::DefElem>) -> Option<CString> {
    option.node(|option| &option.arg)?;
    // SAFETY: an option of the parser, with a value; returns a C string.
    Some(unsafe { CStr::from_ptr(pg_sys::defGetString(option.as_ptr())) }.to_owned())
}

/// The lock that ALTER TABLE takes.
pub(crate) fn lock_level(statement: Node<'_, pg_sys::AlterTableStmt>) -> u32 {
    // SAFETY: `cmds` is the list of AlterTableCmd that the parser made.
    unsafe { pg_sys::AlterTableGetLockLevel(statement.cmds) }.cast_unsigned()
}

/// Looks up and locks the relation of an ALTER TABLE, and checks its owner and kind, as the
/// statement does. Raises its errors.
pub(crate) fn altered(statement: Node<'_, pg_sys::AlterTableStmt>, lock: u32) -> Option<Oid> {
    // SAFETY: `statement` is an AlterTableStmt that the parser made.
    valid(unsafe { pg_sys::AlterTableLookupRelation(statement.as_ptr(), lock.cast_signed()) })
}
