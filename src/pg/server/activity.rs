//! How busy the server is, and what it shows of this process.

use super::background;
use pgrx::pg_sys;

/// Shows in pg_stat_activity what this process does.
pub(crate) fn working(on: &str) {
    report(pg_sys::BackendState::STATE_RUNNING, on);
}

/// Shows in pg_stat_activity that this process waits.
pub(crate) fn idle() {
    report(pg_sys::BackendState::STATE_IDLE, "");
}

fn report(state: pg_sys::BackendState::Type, text: &str) {
    let text = crate::pg::abi::encoding::shown(text);
    // SAFETY: copies the string into shared memory.
    unsafe { pg_sys::pgstat_report_activity(state, text.as_ptr()) };
}

/// Sends this process's counters to the statistics.
pub(crate) fn report_statistics() {
    // SAFETY: the caller is a background process between two transactions, as the function requires.
    unsafe { pg_sys::pgstat_report_stat(true) };
}

/// Rows inserted and updated in a table since its statistics were reset; `None` if there are
/// none, or statistics are off. Without what sessions have not reported yet.
pub(crate) fn rows_written(relid: pg_sys::Oid) -> Option<i64> {
    let entry = statistics(relid)?;
    Some(entry.tuples_inserted + entry.tuples_updated)
}

fn statistics(relid: pg_sys::Oid) -> Option<pg_sys::PgStat_StatTabEntry> {
    // SAFETY: reads a setting, and a copy of the table's statistics, made anew.
    unsafe {
        if !pg_sys::pgstat_track_counts {
            return None;
        }
        pg_sys::pgstat_clear_snapshot();
        pg_sys::pgstat_fetch_stat_tabentry(relid).as_ref().copied()
    }
}

/// Rows of these relations inserted, updated and deleted since their statistics were reset; `None` if there are none, or
/// statistics are off. Without what sessions have not reported yet.
pub(crate) fn rows_changed(relids: &[pg_sys::Oid]) -> Option<i64> {
    let entries = relids.iter().filter_map(|&relid| statistics(relid));
    let changed = entries.map(|it| it.tuples_inserted + it.tuples_updated + it.tuples_deleted);
    Some(changed.sum()).filter(|&sum| sum > 0)
}

/// How many rows of the table this transaction has deleted or updated; 0 if statistics are off.
pub(crate) fn rows_changed_in_transaction(relid: pg_sys::Oid) -> u64 {
    let changed = counted(pg_sys::F_PG_STAT_GET_XACT_TUPLES_DELETED, relid)
        .saturating_add(counted(pg_sys::F_PG_STAT_GET_XACT_TUPLES_UPDATED, relid));
    u64::try_from(changed).unwrap_or(0)
}

/// Whether this transaction may have inserted or updated rows of the table: it has, or an
/// earlier one whose counters are not reported yet has, or statistics are off.
pub(crate) fn may_have_written(relid: pg_sys::Oid) -> bool {
    // SAFETY: reads a setting's variable, which only this process writes.
    let counts = unsafe { pg_sys::pgstat_track_counts };
    !counts
        || counted(pg_sys::F_PG_STAT_GET_XACT_TUPLES_INSERTED, relid) != 0
        || counted(pg_sys::F_PG_STAT_GET_XACT_TUPLES_UPDATED, relid) != 0
}

/// The number that one of the server's functions, by its OID, has for the table.
fn counted(function: u32, relid: pg_sys::Oid) -> i64 {
    let function = pg_sys::Oid::from(function);
    // SAFETY: functions of the server's, of an OID that need not be a table's, to bigint.
    unsafe { pg_sys::OidFunctionCall1Coll(function, pg_sys::InvalidOid, relid.into()) }.value()
        as i64
}

/// Classes of wait events (wait_event.h) in which a backend is idle.
const PG_WAIT_LOCK: u32 = 0x03;
const PG_WAIT_CLIENT: u32 = 0x06;
const PG_WAIT_TIMEOUT: u32 = 0x09;

/// A client that got its answer within this number of microseconds will send the next statement at
/// once.
const BETWEEN_STATEMENTS: i64 = 1000;

/// How many clients use the server now: with a running statement that waits neither for a lock,
/// nor for its client, nor for a timeout; or between two statements. `None` without
/// `track_activities`.
pub(crate) fn active_backends() -> Option<u32> {
    // SAFETY: reads a setting's variable, which only this process writes.
    if !unsafe { pg_sys::pgstat_track_activities } {
        return None;
    }
    let mut active = 0;
    let now = background::now();
    // SAFETY: reads the local copy of the backends' status, made anew; processes
    // may be gone, which BackendPidGetProc tells.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        for index in 1..=pg_sys::pgstat_fetch_stat_numbackends() {
            #[cfg(not(since16))]
            let entry = pg_sys::pgstat_fetch_stat_local_beentry(index);
            #[cfg(since16)]
            let entry = pg_sys::pgstat_get_local_beentry_by_index(index);
            let Some(entry) = entry.as_ref() else {
                continue;
            };
            let status = &entry.backendStatus;
            if status.st_backendType != pg_sys::BackendType::B_BACKEND {
                continue;
            }
            let running = [
                pg_sys::BackendState::STATE_RUNNING,
                pg_sys::BackendState::STATE_FASTPATH,
            ]
            .contains(&status.st_state);
            if !running {
                let since = now.saturating_sub(status.st_state_start_timestamp);
                active += u32::from(since < BETWEEN_STATEMENTS);
                continue;
            }
            let waits_for = pg_sys::BackendPidGetProc(status.st_procpid)
                .as_ref()
                .map_or(0, |process| process.wait_event_info >> 24);
            if ![PG_WAIT_LOCK, PG_WAIT_CLIENT, PG_WAIT_TIMEOUT].contains(&waits_for) {
                active += 1;
            }
        }
    }
    Some(active)
}
