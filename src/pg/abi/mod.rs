//! Calls of C functions, memory contexts, encodings, values, lists, and reporting of errors.

/// Declares functions of PostgreSQL without pgrx's guard. A prototype that differs from the one in PostgreSQL's
/// headers, as pgrx has bound it for the version that is built, does not compile.
macro_rules! bound {
    ($abi:literal $(
        $(#[$meta:meta])*
        $vis:vis $([$safe:ident])? fn $name:ident(
            $($(#[$condition:meta])* $argument:ident: $type:ty),* $(,)?
        ) $(-> $result:ty)?;
    )+) => {
        unsafe extern $abi {$(
            $(#[$meta])*
            $vis $($safe)? fn $name($($(#[$condition])* $argument: $type),*) $(-> $result)?;
        )+}
        $(
            $(#[$meta])*
            const _: unsafe fn($($(#[$condition])* $type),*) $(-> $result)? = pgrx::pg_sys::$name;
        )+
    };
}

pub(crate) mod context;
pub(crate) mod encoding;
pub(crate) mod error_context;
pub(crate) mod externs;
pub(crate) mod fmgr;
pub(crate) mod lists;
pub(crate) mod report;
pub(crate) mod unguarded;
pub(crate) mod values;
pub(crate) mod variable;
