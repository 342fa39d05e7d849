//! The extension's queries on a user's table.
//!
//! Not by SPI, which looks the table up by its name: that needs USAGE on its schema, which an owner
//! may lack, and finds another table after a rename. [`Sql::over`] and [`Sql::delete_from`] take the
//! table by its OID instead, as PostgreSQL's rules take theirs. What cannot be said so names its tables, and
//! is run only if the names lead to the right ones ([`Sql::naming`]).

pub(crate) use super::analysis::Sql;
use super::analysis::{analyze_over, check_conditions, check_names, parse};
use super::{guarded_planning, table};
use crate::pg::abi::{encoding, lists};
use crate::pg::session;
use crate::pg::session::gate::GateVisit;
use crate::pg::session::scoped::Scoped;
use core::ffi::{c_char, c_int};
use core::marker::PhantomData;
use pgrx::pg_sys::{self, CmdType, Datum, DestReceiver, ItemPointerData, PlannedStmt};
use std::ffi::CString;

/// The type and value of a parameter; `None` is NULL.
pub(crate) type Parameter = (pg_sys::Oid, Option<Datum>);

/// The block, and the offset in it.
pub(crate) fn tid_parts(tid: ItemPointerData) -> (u32, u16) {
    let block = u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo);
    (block, tid.ip_posid)
}

/// A parameter of type `tid[]`, of blocks and offsets; in the transaction's memory.
pub(crate) fn tids(rows: impl Iterator<Item = (u32, u16)>) -> Parameter {
    let mut tids: Vec<ItemPointerData> = rows
        .map(|(block, offset)| ItemPointerData {
            ip_blkid: pg_sys::BlockIdData {
                bi_hi: (block >> 16) as u16,
                bi_lo: block as u16,
            },
            ip_posid: offset,
        })
        .collect();
    let mut elements: Vec<Datum> = tids
        .iter_mut()
        .map(|tid| Datum::from(core::ptr::from_mut(tid)))
        .collect();
    let length = size_of::<ItemPointerData>() as c_int;
    let count = c_int::try_from(elements.len()).unwrap_or(0);
    let alignment = pg_sys::TYPALIGN_SHORT.cast_signed();
    let type_oid = pg_sys::TIDOID;
    // SAFETY: the elements, by reference, are copied into the array.
    unsafe {
        let elements = elements.as_mut_ptr();
        let array =
            pg_sys::construct_array(elements, count, type_oid, length, false, alignment as _);
        (pg_sys::get_array_type(type_oid), Some(Datum::from(array)))
    }
}

/// Runs a statement that returns no rows; returns how many rows it processed.
pub(crate) fn execute(visit: &GateVisit, query: Sql<'_>, parameters: &[Parameter]) -> u64 {
    run_seeing(QueryVisibility::Present, visit, query, parameters, None)
}

/// The first row of the query, whose columns are of pass-by-value types.
pub(crate) fn first_row<const N: usize>(
    visit: &GateVisit,
    query: Sql<'_>,
    parameters: &[Parameter],
) -> Option<[Option<Datum>; N]> {
    let mut first = None;
    let receive = |row: SentRow<'_>| {
        let mut values = [None; N];
        for (value, column) in values.iter_mut().zip(1..) {
            *value = row.value(column);
        }
        first = Some(values);
        // One row is enough.
        false
    };
    // SAFETY: nothing to drop; the query has N columns.
    unsafe { send(visit, query, parameters, receive) };
    first
}

/// Runs the query to its end, as of before the current transaction's first write.
pub(crate) fn read_as_before(visit: &GateVisit, query: Sql<'_>, parameters: &[Parameter]) {
    run_seeing(QueryVisibility::Before, visit, query, parameters, None);
}

/// Which changes of the own transaction a query sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueryVisibility {
    /// All of them so far.
    Present,
    /// None of them.
    Before,
}

/// The first column of the first row, of a pass-by-value type.
pub(crate) fn first_value(
    visit: &GateVisit,
    query: Sql<'_>,
    parameters: &[Parameter],
) -> Option<Datum> {
    first_row::<1>(visit, query, parameters)?[0]
}

/// Runs the query and passes each row to `receive` until that returns false.
///
/// # Safety
/// `receive` is unguarded (`docs/decisions/0004-unguarded-trampolines.md`): it does not panic, and
/// nothing needs dropping where an error may pass. It reads only columns of the query, with their
/// types.
pub(crate) unsafe fn send<F: FnMut(SentRow<'_>) -> bool>(
    visit: &GateVisit,
    query: Sql<'_>,
    parameters: &[Parameter],
    receive: F,
) {
    let mut receiver = Receiver {
        head: DestReceiver {
            receiveSlot: Some(receive_slot::<F>),
            rStartup: Some(nothing_at_start),
            rShutdown: Some(nothing_at_end),
            rDestroy: Some(nothing_at_end),
            mydest: pg_sys::CommandDest::DestTuplestore,
        },
        receive,
    };
    let receiver = Some((&raw mut receiver).cast());
    run_seeing(QueryVisibility::Present, visit, query, parameters, receiver);
}

/// The query that is analyzed, by the address of its text.
static OWN: Scoped<*const c_char> = Scoped::new();

/// Whether a query with this text, which has just been analyzed, is one of those that are run here: what its names lead to is checked here, too.
#[inline]
pub(crate) fn is_own(text: *const c_char) -> bool {
    !OWN.is_empty() && OWN.current() == Some(text)
}

fn run_seeing(
    sight: QueryVisibility,
    visit: &GateVisit,
    query: Sql<'_>,
    parameters: &[Parameter],
    receiver: Option<*mut DestReceiver>,
) -> u64 {
    let text = encoding::query(query.text);
    // SAFETY: within a transaction. Text, parameters and receiver outlive the execution. Its memory
    // is freed with the context, or after an error with the transaction.
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
        let guarded = visit.uses_others_names().then(|| {
            let named = query.named.and_then(|tables| tables.first().copied());
            let table = query.table.or(named);
            guarded_planning::enter(table.unwrap_or(pg_sys::InvalidOid))
        });
        let analyzed = visit.resolve(|| {
            session::without_query_id(|| match query.table {
                Some(table) => analyze_over(table, &query, &text, &types),
                None => {
                    let analyzed = OWN.during(text.as_ptr(), || {
                        pg_sys::parse_analyze_fixedparams(
                            parse(&text),
                            text.as_ptr(),
                            types.as_ptr(),
                            c_int::try_from(types.len()).unwrap_or(0),
                            core::ptr::null_mut(),
                        )
                    });
                    if let Some(tables) = query.named {
                        check_names(analyzed, tables);
                    }
                    if !query.has_callers {
                        check_conditions(analyzed);
                    }
                    pg_sys::pg_rewrite_query(analyzed)
                }
            })
        });
        if let Some(guarded) = guarded {
            guarded_planning::leave(guarded);
        }
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

/// Executes the statement, or one that a rule has added to it.
///
/// # Safety
/// The statement was just planned; text, parameters and receiver are valid.
unsafe fn execute_one(
    sight: QueryVisibility,
    statement: *mut PlannedStmt,
    text: &CString,
    values: pg_sys::ParamListInfo,
    receiver: Option<*mut DestReceiver>,
) -> u64 {
    // SAFETY: as required of the caller; the snapshot that is pushed is popped.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        pg_sys::UpdateActiveSnapshotCommandId();
        if sight == QueryVisibility::Before {
            // This is a copy, so the transaction's own snapshot does not change.
            (*pg_sys::GetActiveSnapshot()).curcid = pg_sys::FirstCommandId;
        }
        let own = (*statement).canSetTag;
        let dest = match receiver.filter(|_| own) {
            Some(receiver) => receiver,
            None => pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
        };
        let rows = if (*statement).commandType == CmdType::CMD_UTILITY {
            // A utility statement here is a NOTIFY that a rule has added.
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
            #[cfg(not(since18))]
            pg_sys::ExecutorRun(description, forward, 0, true);
            #[cfg(since18)]
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
/// The values have the given types.
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

/// A row passed to the callback of [`send`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct SentRow<'a>(*mut pg_sys::TupleTableSlot, PhantomData<&'a ()>);

impl SentRow<'_> {
    #[inline]
    pub(crate) fn value(self, column: i16) -> Option<Datum> {
        // SAFETY: the slot is there, and has this column.
        unsafe { table::value_in(self.0, column) }
    }

    /// The value of a column of type tid.
    #[inline]
    pub(crate) fn tid(self, column: i16) -> ItemPointerData {
        let tid = self.value(column).map(Datum::cast_mut_ptr);
        // SAFETY: the query's only column is of type tid, which is passed by reference.
        tid.map_or_else(ItemPointerData::default, |tid| unsafe { *tid })
    }
}

#[repr(C)]
struct Receiver<F> {
    head: DestReceiver,
    receive: F,
}

unsafe extern "C-unwind" fn receive_slot<F: FnMut(SentRow<'_>) -> bool>(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut DestReceiver,
) -> bool {
    // SAFETY: the executor passes the slot and our receiver.
    let receiver = unsafe { &mut *receiver.cast::<Receiver<F>>() };
    (receiver.receive)(SentRow(slot, PhantomData))
}

unsafe extern "C-unwind" fn nothing_at_start(_: *mut DestReceiver, _: c_int, _: pg_sys::TupleDesc) {
}

unsafe extern "C-unwind" fn nothing_at_end(_: *mut DestReceiver) {}
