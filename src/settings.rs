//! The settings `ttl.*`.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::pg_sys;

/// Off by default. Superusers, and those who are granted SET on it, may see
/// expired rows that are not deleted yet, and work on them.
static SHOW_EXPIRED: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Off by default. On: statements keep the `_ts` that they give instead of
/// having it replaced by the current time, for back-fills. Any user may set it:
/// who can write a row can write it at any time anyway.
static PRESERVE_TS: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Whether this session sees expired rows.
pub(crate) fn show_expired() -> bool {
    SHOW_EXPIRED.get()
}

/// Whether this session's statements keep the `_ts` that they give.
pub(crate) fn preserve_ts() -> bool {
    PRESERVE_TS.get()
}

/// Both settings decide how a statement is planned, so plans that are cached
/// are made anew. Runs also when the value returns at the end of a transaction.
unsafe extern "C-unwind" fn replan(_new_value: bool, _extra: *mut core::ffi::c_void) {
    // SAFETY: marks the cached plans of this session as invalid; needs no transaction.
    unsafe { pg_sys::ResetPlanCache() }
}

/// Defines the settings; once, at load.
pub(crate) fn init() {
    // SAFETY: the hook is a plain function that neither panics nor keeps its arguments.
    unsafe {
        GucRegistry::define_bool_guc_with_hooks(
            c"ttl.show_expired",
            c"Shows expired rows that are not deleted yet.",
            c"Statements of this session see and modify expired rows like any others. For inspection and repair.",
            &SHOW_EXPIRED,
            GucContext::Suset,
            GucFlags::default(),
            None,
            Some(replan),
            None,
        );
        GucRegistry::define_bool_guc_with_hooks(
            c"ttl.preserve_ts",
            c"Keeps the time of last modification that a statement gives.",
            c"INSERT and UPDATE do not set the time-to-live clock of the rows they write; for back-fills and imports.",
            &PRESERVE_TS,
            GucContext::Userset,
            GucFlags::default(),
            None,
            Some(replan),
            None,
        );
        pg_sys::MarkGUCPrefixReserved(c"ttl".as_ptr());
    }
}
