//! What an index's entry in the catalogs says of a rule by it (M1, M4, M7).
//!
//! Read from the syscache: the index is neither locked nor opened.

use super::dates::{DateKind, DateType};
use super::predicate::Predicate;
use super::{extension, functions_used};
use crate::pg::catalog::{self, Attribute};
use crate::pg::{encoding, index_entry, nodes};
use pgrx::pg_sys;
use std::ffi::CStr;

/// An index by which rows can expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TtlIndex {
    pub(crate) table: pg_sys::Oid,
    /// The column's number in that table.
    pub(crate) attno: i16,
    /// Of descending order.
    pub(crate) descending: bool,
    /// Not one whose concurrent building failed, or is going on.
    pub(crate) is_valid: bool,
    pub(crate) predicate: Option<Predicate>,
}

/// Why an index cannot be a TTL index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// M7.
    SeveralColumns,
    /// M7.
    Expression,
    /// M7.
    PrimaryKey,
    /// It cannot be read in the order of dates.
    AccessMethod,
    /// An operator class of somebody's own may order dates otherwise.
    OperatorClass,
    /// M2: neither a date type nor an array of one.
    NotADate(String),
    /// M3: in an array's order the earliest date does not come first.
    PlainArray(String),
    /// The predicate would run this function with the rights of whoever reads.
    Function(String),
    /// The predicate depends on the row as a whole.
    WholeRow,
}

impl TtlIndex {
    /// Whether rows would expire by the other one just as by this one (M7).
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.attno == other.attno
            && match (&self.predicate, &other.predicate) {
                (None, None) => true,
                (Some(a), Some(b)) => a.is_like(b),
                _ => false,
            }
    }
}

impl Unfit {
    /// What the index does that it must not, as a clause to "It".
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::SeveralColumns => "has several columns".into(),
            Self::Expression => "is on an expression".into(),
            Self::PrimaryKey => "is a primary key".into(),
            Self::AccessMethod => "is not a btree, and so not in the order of dates".into(),
            Self::OperatorClass => {
                "has an operator class or type of its own, and may not be in the order of dates"
                    .into()
            }
            Self::NotADate(type_name) => format!("is on a column of type {type_name}"),
            Self::PlainArray(column) => {
                format!(
                    "is on the array column \"{column}\" itself, and so not in the order of its earliest dates"
                )
            }
            Self::Function(name) => {
                format!("has a predicate that uses {name}, which not only superusers can have made")
            }
            Self::WholeRow => "has a predicate on the row as a whole".into(),
        }
    }

    /// What to do instead.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::SeveralColumns
            | Self::Expression
            | Self::PrimaryKey
            | Self::AccessMethod
            | Self::OperatorClass => {
                "A TTL index is a btree on one column with a date; create another one on it."
            }
            Self::NotADate(_) => {
                "A TTL index is on a column of type timestamptz, timestamp or date, or of an array of one."
            }
            Self::PlainArray(_) => "ttl.create_index() makes one on ttl.earliest() of the column.",
            Self::Function(_) | Self::WholeRow => {
                "Every reader of the table runs the predicate with rights of their own: use built-in functions, and columns."
            }
        }
    }
}

/// `DATETIME_BTREE_FAM_OID`, "datetime_ops" of pg_opfamily.dat.
pub(crate) const DATETIME_OPS: pg_sys::Oid = pg_sys::Oid::from_u32(434);

/// The index's entry; `None` if there is no such index.
pub(crate) fn read(index: pg_sys::Oid) -> Option<Result<TtlIndex, Unfit>> {
    // SAFETY: called with a tuple of pg_index.
    index_entry::with(index, &|tuple, _form| unsafe { of_tuple(index, tuple) })
}

/// The column of an index on one, of its values or its earliest dates, and whether it is
/// in descending order; whether or not rows can expire by it.
pub(crate) fn single_key(index: pg_sys::Oid) -> Option<(i16, bool)> {
    // SAFETY: called with a tuple of pg_index; the key has at least one column.
    index_entry::with(index, &|tuple, form| unsafe {
        let attno = match *form.indkey.values.as_ptr() {
            _ if form.indnkeyatts != 1 => None,
            0 => index_entry::tree(tuple, pg_sys::Anum_pg_index_indexprs)
                .and_then(|text| array_of_earliest(&text)),
            attno => Some(attno),
        };
        attno.map(|attno| (attno, is_descending(tuple)))
    })
    .flatten()
}

/// Whether the index has a predicate.
pub(crate) fn is_partial(index: pg_sys::Oid) -> bool {
    // SAFETY: called with a tuple of pg_index.
    index_entry::with(index, &|tuple, _form| unsafe {
        index_entry::attribute(tuple, pg_sys::Anum_pg_index_indpred).is_some()
    })
    .unwrap_or(false)
}

/// Whether NULLs come last when the index is read in ascending order.
pub(crate) fn has_nulls_last(index: pg_sys::Oid) -> bool {
    // SAFETY: called with a tuple of pg_index.
    index_entry::with(index, &|tuple, _form| unsafe {
        let option = first_option(tuple);
        (option & pg_sys::INDOPTION_DESC != 0) == (option & pg_sys::INDOPTION_NULLS_FIRST != 0)
    })
    .unwrap_or(false)
}

/// # Safety
/// A tuple of pg_index.
unsafe fn of_tuple(index: pg_sys::Oid, tuple: pg_sys::HeapTuple) -> Result<TtlIndex, Unfit> {
    // SAFETY: as required of the caller; the key has at least one column.
    unsafe {
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>();
        if form.indnkeyatts != 1 {
            return Err(Unfit::SeveralColumns);
        }
        if form.indisprimary {
            return Err(Unfit::PrimaryKey);
        }
        if !catalog::is_btree(index) {
            return Err(Unfit::AccessMethod);
        }
        let first = *form.indkey.values.as_ptr();
        let (attno, indexed) = if first == 0 {
            let text = index_entry::tree(tuple, pg_sys::Anum_pg_index_indexprs)
                .ok_or(Unfit::Expression)?;
            (
                array_of_earliest(&text).ok_or(Unfit::Expression)?,
                DateKind::Timestamptz.type_oid(),
            )
        } else {
            (first, pg_sys::get_atttype(form.indrelid, first))
        };
        let type_oid = pg_sys::get_atttype(form.indrelid, attno);
        match DateType::of(type_oid) {
            None => return Err(Unfit::NotADate(type_name(type_oid))),
            Some(date) if date.is_array && first != 0 => {
                return Err(Unfit::PlainArray(catalog::column_name(
                    form.indrelid,
                    attno,
                )));
            }
            Some(_) => {}
        }
        if !orders_dates(tuple, indexed) {
            return Err(Unfit::OperatorClass);
        }
        let predicate = index_entry::predicate(tuple)
            .map(|tree| trusted(tree))
            .transpose()?;
        Ok(TtlIndex {
            table: form.indrelid,
            attno,
            descending: is_descending(tuple),
            is_valid: form.indisvalid && form.indisready && form.indislive,
            predicate,
        })
    }
}

/// Whether the first column is ordered as dates are.
///
/// # Safety
/// A tuple of the syscache for pg_index.
pub(crate) unsafe fn orders_dates(tuple: pg_sys::HeapTuple, type_oid: pg_sys::Oid) -> bool {
    // SAFETY: a tuple of pg_index, whose indclass is an oidvector.
    unsafe {
        index_entry::attribute(tuple, pg_sys::Anum_pg_index_indclass).is_some_and(|datum| {
            let classes = datum.cast_mut_ptr::<pg_sys::oidvector>();
            let class = *(*classes).values.as_ptr();
            pg_sys::get_opclass_family(class) == DATETIME_OPS
                && pg_sys::get_opclass_input_type(class) == type_oid
        })
    }
}

unsafe fn is_descending(tuple: pg_sys::HeapTuple) -> bool {
    // SAFETY: as required of the caller.
    unsafe { first_option(tuple) & pg_sys::INDOPTION_DESC != 0 }
}

/// The first column's flags.
unsafe fn first_option(tuple: pg_sys::HeapTuple) -> u32 {
    // SAFETY: a tuple of pg_index, whose indoption is an int2vector.
    unsafe {
        index_entry::attribute(tuple, pg_sys::Anum_pg_index_indoption).map_or(0, |datum| {
            let options = datum.cast_mut_ptr::<pg_sys::int2vector>();
            u32::from((*(*options).values.as_ptr()).cast_unsigned())
        })
    }
}

/// The column of `ttl.earliest(column)`, if that is what the index holds.
unsafe fn array_of_earliest(text: &CStr) -> Option<i16> {
    // SAFETY: the text of a list of expressions in the catalog.
    unsafe {
        let expressions = pg_sys::stringToNode(text.as_ptr()).cast::<pg_sys::List>();
        let call = crate::pg::lists::nth::<pg_sys::FuncExpr>(expressions, 0)?;
        if nodes::tag(call) != Some(pg_sys::NodeTag::T_FuncExpr)
            || !extension::functions()?.earliest.contains(&(*call).funcid)
        {
            return None;
        }
        let column = crate::pg::lists::nth::<pg_sys::Var>((*call).args, 0)?;
        (nodes::tag(column) == Some(pg_sys::NodeTag::T_Var) && (*column).varattno > 0)
            .then(|| (*column).varattno)
    }
}

/// The predicate. Only functions that nobody but a superuser can have made are called
/// by it: the filter runs it with the rights of whoever reads the table.
///
/// # Safety
/// `tree` is an analyzed expression on the columns of one table, without sub-queries.
pub(crate) unsafe fn trusted(tree: *mut pg_sys::Node) -> Result<Predicate, Unfit> {
    // SAFETY: as required of the caller.
    unsafe {
        if let Some(name) = functions_used::untrusted(tree) {
            return Err(Unfit::Function(name));
        }
        let mut used = core::ptr::null_mut();
        pg_sys::pull_varattnos(tree, 1, &mut used);
        if pg_sys::bms_is_member(-pg_sys::FirstLowInvalidHeapAttributeNumber, used) {
            return Err(Unfit::WholeRow);
        }
        let text = CStr::from_ptr(pg_sys::nodeToString(tree.cast())).to_owned();
        Ok(Predicate::new(text))
    }
}

fn type_name(type_oid: pg_sys::Oid) -> String {
    // SAFETY: a palloc'd C string.
    unsafe { encoding::from_pointer(pg_sys::format_type_be(type_oid)) }
}

/// The column on which the index is, and its date type, in a table that has the index
/// or inherits from the one that has it.
pub(crate) fn date_column(relid: pg_sys::Oid, name: &str) -> Option<(Attribute, DateType)> {
    let column = catalog::attribute(relid, name)?;
    Some((column, DateType::of(column.type_oid)?))
}
