//! Thin, mostly unsafe wrappers over PostgreSQL's C functions.
//!
//! Nothing here decides, or knows what the extension is for. All differences between server
//! versions are here.

/// Calls functions of PostgreSQL that can raise errors, as pgrx's bindings do: at this
/// boundary an error becomes a panic. Nothing inside is to be dropped when one passes.
macro_rules! at_boundary {
    ($($work:tt)+) => {{
        #[allow(ffi_unwind_calls, reason = "inside pgrx's boundary")]
        let result = pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| { $($work)+ });
        result
    }};
}

pub(crate) mod abi;
pub(crate) mod catalog;
pub(crate) mod exec;
pub(crate) mod plan;
pub(crate) mod server;
pub(crate) mod session;
