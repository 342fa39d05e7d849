//! Whether the extension exists in this database, and its functions' OIDs.

use super::dates::DateKind;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::CStr;

/// The functions that restrictions and target lists are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    /// `ttl.live(timestamptz, integer, integer)`
    pub(crate) live_override: pg_sys::Oid,
    /// `ttl.live(timestamptz, integer)`
    pub(crate) live_default: pg_sys::Oid,
    /// `ttl.expires_at(timestamptz, integer, integer)`
    pub(crate) expires_at: pg_sys::Oid,
    /// `ttl.cutoff(integer)`
    pub(crate) cutoff: pg_sys::Oid,
    /// `ttl.document_ttl(jsonb)`
    pub(crate) document_ttl: pg_sys::Oid,
    /// `ttl.current_ts()`
    pub(crate) current_ts: pg_sys::Oid,
    /// `ttl.refreshed_ts(timestamptz, integer, integer)`
    pub(crate) refreshed_ts: pg_sys::Oid,
    /// `ttl.reads_physically(oid)`
    pub(crate) reads_physically: pg_sys::Oid,
    /// `ttl.free_expired_keys()`
    pub(crate) free_expired_keys: pg_sys::Oid,
    /// `ttl.live_or_removed(oid, tid, boolean)`
    pub(crate) live_or_removed: pg_sys::Oid,
    /// `ttl.live_or_unneeded(oid, tid, boolean)`
    pub(crate) live_or_unneeded: pg_sys::Oid,
    /// `ttl.live_at(date, integer)` for each kind of date
    pub(crate) live_at: [pg_sys::Oid; 3],
    /// `ttl.earliest(date[])` for each kind of date
    pub(crate) earliest: [pg_sys::Oid; 3],
    /// `ttl.evaluate_first(boolean)`
    pub(crate) evaluate_first: pg_sys::Oid,
    /// `ttl.locked_here(oid, tid)`
    pub(crate) locked_here: pg_sys::Oid,
}

/// The extension's name.
pub(crate) const NAME: &CStr = c"ttl_ext";

/// The extension's entry in pg_extension, if it is in this database.
pub(crate) fn oid() -> Option<pg_sys::Oid> {
    // SAFETY: a catalog look-up within a transaction.
    let extension = unsafe { pg_sys::get_extension_oid(NAME.as_ptr(), true) };
    (extension != pg_sys::InvalidOid).then_some(extension)
}

/// `ClanguageId` of pg_language.dat.
const C_LANGUAGE: pg_sys::Oid = pg_sys::Oid::from_u32(13);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Absent,
    Present,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Unknown) };
    /// Set where the state is [`State::Present`].
    static FUNCTIONS: Cell<Option<Functions>> = const { Cell::new(None) };
}

/// The extension's functions; `None` in a database without the extension.
///
/// After the first call it costs one comparison, until a function or schema of the database
/// changes.
#[inline]
pub(crate) fn functions() -> Option<Functions> {
    match STATE.get() {
        State::Present => FUNCTIONS.get(),
        State::Absent => None,
        State::Unknown => {
            // Set first: a change that arrives during the look-up resets it.
            STATE.set(State::Absent);
            let found = look_up();
            if found.is_some() && STATE.get() == State::Absent {
                FUNCTIONS.set(found);
                STATE.set(State::Present);
            }
            found
        }
    }
}

/// Whether the extension is in this database; costs as little as [`functions`].
#[inline]
pub(crate) fn is_present() -> bool {
    match STATE.get() {
        State::Present => true,
        State::Absent => false,
        State::Unknown => functions().is_some(),
    }
}

/// Whether it is known to be absent from this database. Calls no function of PostgreSQL.
#[inline]
pub(crate) fn is_known_to_be_absent() -> bool {
    STATE.get() == State::Absent
}

fn look_up() -> Option<Functions> {
    // SAFETY: a syscache look-up within a transaction.
    let schema = unsafe { pg_sys::get_namespace_oid(c"ttl".as_ptr(), true) };
    if schema == pg_sys::InvalidOid {
        return None;
    }
    let (ts, int) = (pg_sys::TIMESTAMPTZOID, pg_sys::INT4OID);
    Some(Functions {
        live_override: function(schema, c"live", &[ts, int, int])?,
        live_default: function(schema, c"live", &[ts, int])?,
        expires_at: function(schema, c"expires_at", &[ts, int, int])?,
        cutoff: function(schema, c"cutoff", &[int])?,
        document_ttl: function(schema, c"document_ttl", &[pg_sys::JSONBOID])?,
        current_ts: function(schema, c"current_ts", &[])?,
        refreshed_ts: function(schema, c"refreshed_ts", &[ts, int, int])?,
        reads_physically: function(schema, c"reads_physically", &[pg_sys::OIDOID])?,
        free_expired_keys: function(schema, c"free_expired_keys", &[])?,
        live_or_removed: function(
            schema,
            c"live_or_removed",
            &[pg_sys::OIDOID, pg_sys::TIDOID, pg_sys::BOOLOID],
        )?,
        live_or_unneeded: function(
            schema,
            c"live_or_unneeded",
            &[pg_sys::OIDOID, pg_sys::TIDOID, pg_sys::BOOLOID],
        )?,
        live_at: of_dates(|kind| function(schema, c"live_at", &[kind.type_oid(), int]))?,
        earliest: of_dates(|kind| function(schema, c"earliest", &[kind.array_oid()]))?,
        evaluate_first: function(schema, c"evaluate_first", &[pg_sys::BOOLOID])?,
        locked_here: function(schema, c"locked_here", &[pg_sys::OIDOID, pg_sys::TIDOID])?,
    })
}

/// One function for each kind of date.
fn of_dates(function: impl Fn(DateKind) -> Option<pg_sys::Oid>) -> Option<[pg_sys::Oid; 3]> {
    let [timestamptz, timestamp, date] = DateKind::ALL.map(function);
    Some([timestamptz?, timestamp?, date?])
}

/// The C function of that signature. Only superusers create C functions, so look-alikes in a
/// schema of that name are not taken for the extension's.
fn function(schema: pg_sys::Oid, name: &CStr, args: &[pg_sys::Oid]) -> Option<pg_sys::Oid> {
    let count = i32::try_from(args.len()).ok()?;
    // SAFETY: the key's parts live during the search; the tuple is read before its release.
    unsafe {
        let signature = pg_sys::buildoidvector(args.as_ptr(), count);
        let tuple = pg_sys::SearchSysCache3(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(signature),
            pg_sys::Datum::from(schema),
        );
        let form = tuple
            .as_ref()
            .map(|_| pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>())?;
        let found = ((*form).prolang == C_LANGUAGE).then_some((*form).oid);
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}

/// Registers for changes of functions and schemas; once, at load.
pub(crate) fn init() {
    for cache in [
        pg_sys::SysCacheIdentifier::PROCOID,
        pg_sys::SysCacheIdentifier::NAMESPACEOID,
    ] {
        // SAFETY: the callback lives as long as the library and only sets a cell.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(
                cache as i32,
                Some(on_change),
                pg_sys::Datum::from(0),
            );
        }
    }
}

unsafe extern "C-unwind" fn on_change(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    STATE.set(State::Unknown);
}
