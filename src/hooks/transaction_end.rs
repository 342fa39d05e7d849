//! Callbacks at the end of transactions and subtransactions: they clear the state of statements,
//! also after errors, and tell the workers at commit.

use crate::clock::{execution, statement_time};
use crate::ddl;
use crate::deletion::{removals, underway};
use crate::keys::no_action_checks;
#[cfg(since19)]
use crate::keys::references;
#[cfg(since19)]
use crate::pg::abi::report::or_raise;
#[cfg(since19)]
use crate::pg::exec::fast_path;
use crate::pg::session::{self, owner_session, scoped, xact};
use crate::visibility::row_locks;
use crate::worker::shared::{leave_database, places, wakeups};
use core::ffi::c_void;
use pgrx::pg_sys::{self, SubXactEvent, XactEvent};
use pgrx::prelude::*;

/// Registers the callbacks; once, at load.
pub(super) fn init() {
    // SAFETY: the callbacks live as long as the library. Those at the end raise no error; before a
    // commit an error aborts the transaction.
    unsafe {
        pg_sys::RegisterXactCallback(Some(before_commit), core::ptr::null_mut());
        pg_sys::RegisterXactCallback(Some(at_xact_end), core::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subxact_end), core::ptr::null_mut());
    }
}

/// Most transactions need no guard.
extern "C-unwind" fn before_commit(event: XactEvent::Type, _arg: *mut c_void) {
    #[cfg(since19)]
    let is_unfinished = fast_path::unfinished().is_some();
    #[cfg(not(since19))]
    let is_unfinished = false;
    let ends = [
        XactEvent::XACT_EVENT_PRE_COMMIT,
        XactEvent::XACT_EVENT_PRE_PREPARE,
    ];
    if ends.contains(&event) && (is_unfinished || session::applies_others_changes()) {
        check_before_commit(event);
    }
    if event == XactEvent::XACT_EVENT_PRE_COMMIT && owner_session::is_to_be_cleaned() {
        owner_session::before_commit();
    }
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn check_before_commit(event: XactEvent::Type) {
    #[cfg(since19)]
    or_raise(references::before_commit());
    if event == XactEvent::XACT_EVENT_PRE_COMMIT {
        ddl::incoming_rows::before_commit();
    }
}

extern "C-unwind" fn at_xact_end(event: XactEvent::Type, _arg: *mut c_void) {
    execution::forget_given();
    if event != XactEvent::XACT_EVENT_PRE_COMMIT {
        statement_time::forget();
    }
    match event {
        XactEvent::XACT_EVENT_COMMIT | XactEvent::XACT_EVENT_PREPARE => {
            removals::at_xact_end();
            underway::at_xact_end();
            match event {
                XactEvent::XACT_EVENT_COMMIT => wakeups::at_commit(),
                _ => wakeups::at_other_end(true),
            }
            places::at_end(true);
            row_locks::at_xact_end();
        }
        XactEvent::XACT_EVENT_ABORT => {
            scoped::at_abort(0);
            execution::at_abort();
            no_action_checks::forget();
            ddl::at_abort();
            removals::at_xact_end();
            underway::at_xact_end();
            #[cfg(since19)]
            fast_path::at_abort(0);
            wakeups::at_other_end(false);
            places::at_end(false);
            leave_database::readmit_all();
            row_locks::at_xact_end();
        }
        _ => {}
    }
}

extern "C-unwind" fn at_subxact_end(
    event: SubXactEvent::Type,
    _my_subid: pg_sys::SubTransactionId,
    _parent_subid: pg_sys::SubTransactionId,
    _arg: *mut c_void,
) {
    if event == SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        let level = xact::nest_level();
        scoped::at_abort(level);
        execution::at_abort();
        no_action_checks::forget();
        ddl::at_abort();
        #[cfg(since19)]
        fast_path::at_abort(level);
    }
}
