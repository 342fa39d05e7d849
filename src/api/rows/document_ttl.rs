//! `ttl.document_ttl`: the override inside a JSON document (D1-D3).

use crate::pg::abi::fmgr;
use crate::policy;
use pgrx::prelude::*;
use pgrx::{IntoDatum, direct_function_call, direct_function_call_as_datum, pg_sys};
use std::ffi::CStr;

fmgr::finfo_v1!(pg_finfo_ttl_document_ttl);

/// `ttl.document_ttl(document jsonb) RETURNS integer`. STRICT.
///
/// Reads the property with PostgreSQL's jsonb functions: they need not parse the whole document,
/// and they accept numbers of any size.
///
/// # Safety
/// Called by PostgreSQL's function manager with one jsonb argument.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_document_ttl(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL; the functions called take and return what is given here.
    unsafe {
        let document = fmgr::arg(fcinfo, 0);
        let key = "ttl".into_datum();
        let Some(value) =
            direct_function_call_as_datum(pg_sys::jsonb_object_field, &[document, key])
        else {
            return fmgr::null(fcinfo);
        };
        let kind = direct_function_call::<String>(pg_sys::jsonb_typeof, &[Some(value)]);
        if kind.as_deref() != Some("number") {
            return fmgr::null(fcinfo);
        }
        // Convert the number alone: looking the property up again would decompress the document
        // again.
        let number = direct_function_call::<&CStr>(pg_sys::jsonb_out, &[Some(value)])
            .and_then(|text| text.to_str().ok());
        match number.and_then(policy::ttl_of_number_text) {
            Some(seconds) => pg_sys::Datum::from(seconds),
            None => fmgr::null(fcinfo),
        }
    }
}
