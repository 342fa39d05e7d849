//! Whether the extension exists in this database, and its functions' OIDs.

use super::dates::DateKind;
use crate::error::Error;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{names, rows};
use crate::pg::session;
use crate::policy::EpochUnit;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::CStr;

/// The functions that restrictions and target lists are made of, with the arguments that [`look_up`] has. Three are for
/// the kinds of date, or for the units of a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) live_override: pg_sys::Oid,
    pub(crate) live_default: pg_sys::Oid,
    pub(crate) expires_at: pg_sys::Oid,
    pub(crate) expiry_key: pg_sys::Oid,
    pub(crate) cutoff: pg_sys::Oid,
    pub(crate) is_override: pg_sys::Oid,
    pub(crate) document_ttl: pg_sys::Oid,
    pub(crate) current_ts: pg_sys::Oid,
    pub(crate) refreshed_ts: pg_sys::Oid,
    pub(crate) reads_physically: pg_sys::Oid,
    pub(crate) free_expired_keys: pg_sys::Oid,
    pub(crate) live_or_unneeded: pg_sys::Oid,
    pub(crate) live_at: [pg_sys::Oid; 3],
    pub(crate) index_expires_at: [pg_sys::Oid; 3],
    pub(crate) earliest: [pg_sys::Oid; 3],
    pub(crate) from_epoch: [[pg_sys::Oid; 2]; 3],
    pub(crate) in_time_zone: [pg_sys::Oid; 3],
    pub(crate) evaluate_first: pg_sys::Oid,
    pub(crate) locked_here: pg_sys::Oid,
}

pub(crate) const NAME: &CStr = c"ttl_ext";

/// The extension's entry in pg_extension, if it is in this database.
pub(crate) fn oid() -> Option<pg_sys::Oid> {
    names::extension(NAME)
}

/// `ClanguageId` of pg_language.dat.
const C_LANGUAGE: pg_sys::Oid = pg_sys::Oid::from_u32(13);

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExtensionState {
    Unknown,
    Absent,
    Present,
    /// It is there, but not all of its functions: who may do that has renamed or replaced one, or the library is of a
    /// later version.
    Incomplete,
}

static STATE: Variable<Cell<ExtensionState>> = Variable::new(Cell::new(ExtensionState::Unknown));
/// Set where the state is [`State::Present`].
static FUNCTIONS: Variable<Cell<Option<Functions>>> = Variable::new(Cell::new(None));

/// The extension's functions; `None` in a database without the extension, or where it is incomplete
/// ([`check_complete`]).
///
/// After the first call it costs one comparison, until a function or schema of the database
/// changes.
#[inline]
pub(crate) fn functions() -> Option<Functions> {
    match STATE.get() {
        ExtensionState::Present => FUNCTIONS.get(),
        ExtensionState::Absent | ExtensionState::Incomplete => None,
        ExtensionState::Unknown => {
            // Set first: a change that arrives during the look-up resets it.
            STATE.set(ExtensionState::Absent);
            let found = look_up();
            let state = match found {
                Some(_) => ExtensionState::Present,
                None if is_created() => ExtensionState::Incomplete,
                None => ExtensionState::Absent,
            };
            if STATE.get() == ExtensionState::Absent {
                FUNCTIONS.set(found);
                STATE.set(state);
            }
            found
        }
    }
}

/// Whether CREATE EXTENSION has come to its end.
fn is_created() -> bool {
    !session::is_creating_extension() && !session::is_binary_upgrade() && oid().is_some()
}

/// Error 55000 where the extension is incomplete: without its functions the expired rows of a table that has a policy
/// would be seen.
pub(crate) fn check_complete(has_policy: impl FnOnce() -> bool) {
    if functions().is_some() || STATE.get() != ExtensionState::Incomplete {
        return;
    }
    // DROP EXTENSION takes the functions first, and no invalidation tells of its own entry.
    if !is_created() {
        STATE.set(ExtensionState::Absent);
    } else if has_policy() {
        Error::incomplete_extension().raise();
    }
}

/// The unit of a function `ttl.from_epoch…()`.
pub(crate) fn epoch_unit(function: pg_sys::Oid) -> Option<EpochUnit> {
    let functions = functions()?.from_epoch.into_iter().zip(EpochUnit::ALL);
    let mut units = functions.filter(|(both, _)| both.contains(&function));
    units.next().map(|(_, unit)| unit)
}

/// Whether the extension is in this database; costs as little as [`functions`].
#[inline]
pub(crate) fn is_present() -> bool {
    match STATE.get() {
        ExtensionState::Present => true,
        ExtensionState::Absent | ExtensionState::Incomplete => false,
        ExtensionState::Unknown => functions().is_some(),
    }
}

/// Whether it is known to be absent from this database. Calls no function of PostgreSQL.
#[inline]
pub(crate) fn is_known_to_be_absent() -> bool {
    STATE.get() == ExtensionState::Absent
}

fn look_up() -> Option<Functions> {
    let schema = names::schema(c"ttl")?;
    let inner = names::schema(c"ttl_internal")?;
    // Only superusers create C functions, so look-alikes in a schema of that name are not taken
    // for the extension's.
    let function = |name: &CStr, args: &[_]| names::function(schema, name, args, C_LANGUAGE);
    let internal = |name: &CStr, args: &[_]| names::function(inner, name, args, C_LANGUAGE);
    let (ts, int) = (pg_sys::TIMESTAMPTZOID, pg_sys::INT4OID);
    let (oid, tid, bool) = (pg_sys::OIDOID, pg_sys::TIDOID, pg_sys::BOOLOID);
    Some(Functions {
        live_override: function(c"live", &[ts, int, int])?,
        live_default: function(c"live", &[ts, int])?,
        expires_at: function(c"expires_at", &[ts, int, int])?,
        expiry_key: function(c"expiry_key", &[ts, int])?,
        cutoff: function(c"cutoff", &[int])?,
        is_override: function(c"is_override", &[int])?,
        document_ttl: function(c"document_ttl", &[pg_sys::JSONBOID])?,
        current_ts: function(c"current_ts", &[])?,
        refreshed_ts: function(c"refreshed_ts", &[ts, int, int])?,
        reads_physically: function(c"reads_physically", &[oid])?,
        free_expired_keys: function(c"free_expired_keys", &[])?,
        live_or_unneeded: internal(c"live_or_unneeded", &[oid, tid, bool])?,
        live_at: of_dates(|kind| function(c"live_at", &[kind.type_oid(), int]))?,
        index_expires_at: of_dates(|kind| function(c"index_expires_at", &[kind.type_oid(), int]))?,
        earliest: of_dates(|kind| function(c"earliest", &[kind.array_oid()]))?,
        from_epoch: {
            let both = |name| {
                let of = |type_oid| function(name, &[type_oid]);
                Some([of(pg_sys::INT8OID)?, of(pg_sys::FLOAT8OID)?])
            };
            let [seconds, ms, us] = [c"from_epoch", c"from_epoch_ms", c"from_epoch_us"].map(both);
            [seconds?, ms?, us?]
        },
        in_time_zone: of_dates(|kind| {
            function(c"in_time_zone", &[kind.type_oid(), pg_sys::TEXTOID])
        })?,
        evaluate_first: internal(c"evaluate_first", &[bool])?,
        locked_here: internal(c"locked_here", &[oid, tid])?,
    })
}

/// One function for each kind of date.
fn of_dates(function: impl Fn(DateKind) -> Option<pg_sys::Oid>) -> Option<[pg_sys::Oid; 3]> {
    let [timestamptz, timestamp, date] = DateKind::ALL.map(function);
    Some([timestamptz?, timestamp?, date?])
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
                rows::cache_number(cache),
                Some(on_change),
                pg_sys::Datum::from(0),
            );
        }
    }
}

unsafe extern "C-unwind" fn on_change(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    STATE.set(ExtensionState::Unknown);
}
