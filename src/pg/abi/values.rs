//! Text and JSON as arguments and results of functions and queries, in the database's encoding;
//! pgrx's own types take them for UTF-8.

use super::encoding;
use crate::error::Error;
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::{Datum, FromDatum, IntoDatum};
use pgrx::nullable::Nullable;
use pgrx::pgrx_sql_entity_graph::impl_sql_translatable;
use pgrx::prelude::*;
use pgrx::{pg_sys, spi};

#[derive(Debug, Clone)]
pub(crate) struct Text(pub(crate) String);

#[derive(Debug, Clone)]
pub(crate) struct Json(pub(crate) serde_json::Value);

impl FromDatum for Text {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _type_oid: pg_sys::Oid,
    ) -> Option<Self> {
        // SAFETY: the caller has checked that it is a text.
        (!is_null).then(|| Self(unsafe { encoding::from_datum(datum) }))
    }
}

impl IntoDatum for Text {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let text = encoding::shown(&self.0);
        // SAFETY: allocates in the current memory context.
        Some(unsafe { pg_sys::cstring_to_text(text.as_ptr()) }.into())
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

impl IntoDatum for Json {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let text = encoding::shown(&self.0.to_string());
        let text = pg_sys::Datum::from(text.as_ptr());
        // SAFETY: jsonb_in() takes a C string, which outlives the call.
        unsafe { pgrx::direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(text)]) }
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

/// An argument, which a user gives.
struct GivenText(Text);

impl FromDatum for GivenText {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        type_oid: pg_sys::Oid,
    ) -> Option<Self> {
        // SAFETY: the caller has checked that it is a text.
        unsafe {
            if !is_null {
                encoding::check_given(datum);
            }
            Text::from_polymorphic_datum(datum, is_null, type_oid).map(Self)
        }
    }
}

// SAFETY: an argument of type text is read as PostgreSQL passes it: a varlena, or NULL.
unsafe impl<'fcx> ArgAbi<'fcx> for Text {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: as required of the caller.
        let value = unsafe { arg.unbox_arg_using_from_datum::<GivenText>() };
        value.map_or_else(|| Self(String::new()), |given| given.0)
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: as required of the caller.
        let value = unsafe { arg.unbox_arg_using_from_datum::<GivenText>() };
        value.map(|given| given.0).into()
    }
}

/// Values of both types are in the current memory context.
macro_rules! returned {
    ($($type:ty),+) => {$(
        // SAFETY: as said above.
        unsafe impl BoxRet for $type {
            unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
                match self.into_datum() {
                    // SAFETY: `into_datum` makes a value of the type that SQL declares for the function.
                    Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
                    None => fcinfo.return_null(),
                }
            }
        }
    )+};
}

returned!(Text, Json);

// The functions are declared in sql/functions.sql.
impl_sql_translatable!(Text, "text");
impl_sql_translatable!(Json, "jsonb");

/// A boolean as SQL writes it: `true`, `off`, `1`, and their beginnings.
pub(crate) fn boolean(text: &std::ffi::CStr) -> Option<bool> {
    let mut value = false;
    // SAFETY: the text is a C string, and the value's address is that of a bool.
    unsafe { pg_sys::parse_bool(text.as_ptr(), &mut value) }.then_some(value)
}

/// The rows of a query on catalogs, whose columns are texts.
pub(crate) fn texts<const N: usize>(sql: &str) -> Result<Vec<[String; N]>, Error> {
    let rows = Spi::connect(|client| {
        client
            .select(&encoding::query(sql), None, &[])?
            .map(|row| {
                let mut values: [String; N] = std::array::from_fn(|_| String::new());
                for (n, value) in values.iter_mut().enumerate() {
                    *value = row.get::<Text>(n + 1)?.map_or_else(String::new, |it| it.0);
                }
                Ok(values)
            })
            .collect::<Result<Vec<_>, spi::Error>>()
    })?;
    Ok(rows)
}

/// The OIDs that a query on catalogs finds, as `oid::pg_catalog.int8::pg_catalog.text`; not NULLs.
pub(crate) fn oids(sql: &str) -> Result<Vec<pg_sys::Oid>, Error> {
    let oid = |[text]: [String; 1]| text.parse::<u32>().ok().map(pg_sys::Oid::from);
    Ok(texts::<1>(sql)?.into_iter().filter_map(oid).collect())
}
