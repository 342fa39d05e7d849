//! `ttl.create_index` and `ttl.coll_mod`: MongoDB's commands (D4, M6, M7).

mod coll_mod;
mod create_index;

use crate::api::policy::guard;
use crate::error::{Error, Result};
use crate::mongo::CommandError;
use crate::pg::abi::encoding;
use pgrx::{AnyElement, PgSqlErrorCode, direct_function_call, pg_sys};
use std::ffi::CStr;

/// The usual name of the time column; as a key it stands for the table's default (D4).
const CLOCK: &str = "_ts";

/// The text of a jsonb argument: text keeps numbers exact, whatever their size.
fn json(argument: Option<AnyElement>, name: &str) -> Result<String> {
    let argument = guard::required(argument, name)?;
    // SAFETY: the argument is declared as jsonb in SQL.
    let text = unsafe {
        encoding::check_given(argument.datum());
        direct_function_call::<&CStr>(pg_sys::jsonb_out, &[Some(argument.datum())])
    };
    Ok(text.map_or(String::new(), encoding::given))
}

/// The error for a malformed command; the HINT shows the command's form.
fn refused(error: CommandError, form: &str) -> Error {
    let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
    Error::new(code, error.to_string()).hint(form)
}

/// An error about one field of the command.
fn field(code: PgSqlErrorCode, field: &str, reason: &str) -> Error {
    Error::new(code, format!("\"{field}\" {reason}"))
}

/// Whether the key means the table's default: it is the time column, or has its usual name in a
/// table without one.
fn means_default(relid: pg_sys::Oid, column: &str) -> Result<bool> {
    let clock = guard::own_policy(relid)?.and_then(|policy| policy.ts_column);
    Ok(clock.as_deref().unwrap_or(CLOCK) == column)
}
