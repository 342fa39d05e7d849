//! Queries of the extension on a user's table: names are resolved before the identity changes,
//! everything else happens as the table's owner.
//!
//! Not by SPI, which looks names up again as whoever runs the query: an owner without USAGE on
//! the schema could not run it (as with PostgreSQL's own commands on a table, that need not be).

use super::gate::Visit;
use super::{encoding, lists, unguarded};
use core::ffi::c_int;
use pgrx::pg_sys::{self, CmdType, Datum, DestReceiver, PlannedStmt};
use std::ffi::CString;

/// A parameter: its type and its value; `None` is NULL.
pub(crate) type Parameter = (pg_sys::Oid, Option<Datum>);

/// Runs a statement that selects nothing, and tells how many rows it has worked on.
pub(crate) fn execute(visit: &Visit, query: &str) -> u64 {
    run(visit, query, &[], None)
}

/// The first row of what the query selects, whose columns are of types passed by value.
pub(crate) fn first_row<const N: usize>(
    visit: &Visit,
    query: &str,
    parameters: &[Parameter],
) -> Option<[Option<Datum>; N]> {
    let mut receiver = FirstRow::<N> {
        receiver: DestReceiver {
            receiveSlot: Some(keep_first::<N>),
            rStartup: Some(nothing_at_start),
            rShutdown: Some(nothing_at_end),
            rDestroy: Some(nothing_at_end),
            mydest: pg_sys::CommandDest::DestTuplestore,
        },
        row: None,
    };
    let receiver_of_first = Some((&raw mut receiver).cast());
    run_seeing(Sight::Present, visit, query, parameters, receiver_of_first);
    receiver.row
}

/// Reads all that the query selects, by what was there before the present transaction wrote
/// anything.
pub(crate) fn read_as_before(visit: &Visit, query: &str, parameters: &[Parameter]) {
    run_seeing(Sight::Before, visit, query, parameters, None);
}

/// What a query sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// What the transaction has done so far, too.
    Present,
    /// Nothing of what the transaction has done.
    Before,
}

/// The only value of the first row, of a type passed by value.
pub(crate) fn first_value(visit: &Visit, query: &str, parameters: &[Parameter]) -> Option<Datum> {
    first_row::<1>(visit, query, parameters)?[0]
}

/// Runs the query, whose rows the receiver gets; how many rows it has worked on.
pub(crate) fn run(
    visit: &Visit,
    query: &str,
    parameters: &[Parameter],
    receiver: Option<*mut DestReceiver>,
) -> u64 {
    run_seeing(Sight::Present, visit, query, parameters, receiver)
}

fn run_seeing(
    sight: Sight,
    visit: &Visit,
    query: &str,
    parameters: &[Parameter],
    receiver: Option<*mut DestReceiver>,
) -> u64 {
    let text = encoding::query(query);
    // SAFETY: within a transaction. Text, parameters and receiver outlive the execution; what it
    // allocates goes with the memory context, after an error with the transaction's.
    unsafe {
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"query of an extension".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        let former = pg_sys::MemoryContextSwitchTo(context);
        let types: Vec<pg_sys::Oid> = parameters.iter().map(|&(oid, _)| oid).collect();
        let analyzed = visit.resolve(|| {
            let trees = pg_sys::raw_parser(text.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
            pg_sys::pg_analyze_and_rewrite_fixedparams(
                lists::nth::<pg_sys::RawStmt>(trees, 0).unwrap_or(core::ptr::null_mut()),
                text.as_ptr(),
                types.as_ptr(),
                c_int::try_from(types.len()).unwrap_or(0),
                core::ptr::null_mut(),
            )
        });
        let values = parameter_list(parameters);
        let planned = pg_sys::pg_plan_queries(analyzed, text.as_ptr(), 0, values);
        let mut rows = 0;
        for statement in lists::iter::<PlannedStmt>(planned) {
            pg_sys::CommandCounterIncrement();
            rows += execute_one(sight, statement, &text, values, receiver);
        }
        pg_sys::MemoryContextSwitchTo(former);
        pg_sys::MemoryContextDelete(context);
        rows
    }
}

/// Executes the statement, or an action that a rule has added to it.
///
/// # Safety
/// A statement that was planned just now; text, parameters and receiver are valid.
unsafe fn execute_one(
    sight: Sight,
    statement: *mut PlannedStmt,
    text: &CString,
    values: pg_sys::ParamListInfo,
    receiver: Option<*mut DestReceiver>,
) -> u64 {
    // SAFETY: as required of the caller; the snapshot that is pushed is popped.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        pg_sys::UpdateActiveSnapshotCommandId();
        if sight == Sight::Before {
            // A copy: the transaction's own snapshot is never pushed itself.
            (*pg_sys::GetActiveSnapshot()).curcid = pg_sys::FirstCommandId;
        }
        let own = (*statement).canSetTag;
        let dest = match receiver.filter(|_| own) {
            Some(receiver) => receiver,
            None => pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
        };
        let rows = if (*statement).commandType == CmdType::CMD_UTILITY {
            // NOTIFY, by a rule.
            pg_sys::ProcessUtility(
                statement,
                text.as_ptr(),
                true,
                pg_sys::ProcessUtilityContext::PROCESS_UTILITY_QUERY,
                values,
                core::ptr::null_mut(),
                dest,
                core::ptr::null_mut(),
            );
            0
        } else {
            let description = pg_sys::CreateQueryDesc(
                statement,
                text.as_ptr(),
                pg_sys::GetActiveSnapshot(),
                core::ptr::null_mut(),
                dest,
                values,
                core::ptr::null_mut(),
                0,
            );
            pg_sys::ExecutorStart(description, 0);
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            #[cfg(not(feature = "pg18"))]
            pg_sys::ExecutorRun(description, forward, 0, true);
            #[cfg(feature = "pg18")]
            pg_sys::ExecutorRun(description, forward, 0);
            let rows = (*(*description).estate).es_processed;
            pg_sys::ExecutorFinish(description);
            pg_sys::ExecutorEnd(description);
            pg_sys::FreeQueryDesc(description);
            rows
        };
        pg_sys::PopActiveSnapshot();
        if own { rows } else { 0 }
    }
}

/// # Safety
/// The values are of the types given with them.
unsafe fn parameter_list(parameters: &[Parameter]) -> pg_sys::ParamListInfo {
    if parameters.is_empty() {
        return core::ptr::null_mut();
    }
    // SAFETY: as required of the caller; the list has room for that many.
    unsafe {
        let list = pg_sys::makeParamList(c_int::try_from(parameters.len()).unwrap_or(0));
        let places = (&raw mut (*list).params).cast::<pg_sys::ParamExternData>();
        for (at, &(oid, value)) in parameters.iter().enumerate() {
            *places.add(at) = pg_sys::ParamExternData {
                value: value.unwrap_or(Datum::null()),
                isnull: value.is_none(),
                pflags: pg_sys::PARAM_FLAG_CONST as u16,
                ptype: oid,
            };
        }
        list
    }
}

#[repr(C)]
struct FirstRow<const N: usize> {
    receiver: DestReceiver,
    row: Option<[Option<Datum>; N]>,
}

/// Plain, with nothing to drop (`docs/decisions/0004-unguarded-trampolines.md`).
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn keep_first<const N: usize>(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut DestReceiver,
) -> bool {
    // SAFETY: the executor passes the slot, which has N values by value, and our receiver.
    unsafe {
        let wanted = i32::try_from(N).unwrap_or(0);
        if i32::from((*slot).tts_nvalid) < wanted {
            unguarded::slot_getsomeattrs_int(slot, wanted);
        }
        let state = &mut *receiver.cast::<FirstRow<N>>();
        let mut row = [None; N];
        for (at, value) in row.iter_mut().enumerate() {
            if !*(*slot).tts_isnull.add(at) {
                *value = Some(*(*slot).tts_values.add(at));
            }
        }
        state.row = Some(row);
        // No more are needed.
        false
    }
}

pub(crate) unsafe extern "C-unwind" fn nothing_at_start(
    _: *mut DestReceiver,
    _: c_int,
    _: pg_sys::TupleDesc,
) {
}

pub(crate) unsafe extern "C-unwind" fn nothing_at_end(_: *mut DestReceiver) {}
