//! Turns that delete nothing: deletion is held or rests, a change of the policy waits, or nothing was written.

use crate::deletion::probe;
use crate::pg::server::{activity, background};
use crate::worker::queue::schedule::{self, Outcome};
use crate::worker::shared::state::{self, TableKey};
use crate::worker::shared::{self, blocked};

/// Estimates the backlog of a table that is not worked on. Errors here are ignored: what is
/// unknown is shown as such.
pub(super) fn measure_backlog(key: TableKey) {
    // The former figures are outdated.
    state::with_table(key, |state| state.is_seen = false);
    let Ok(Some(job)) = probe::job(key.relid.into()) else {
        return;
    };
    let Ok(estimate) = probe::estimate(&job) else {
        return;
    };
    let aside = blocked::of(key, background::monotonic());
    let oldest = probe::left_behind(&job, &job.cutoffs(background::now()), &aside)
        .ok()
        .flatten();
    state::with_table(key, |state| {
        state.is_seen = true;
        state.counters.backlog = i64::try_from(estimate.expired).unwrap_or(i64::MAX);
        if estimate.expired > 0 {
            state.emptiness.found_expired(job.file);
        }
        let oldest = [oldest, aside.oldest].into_iter().flatten().min();
        state.counters.oldest_expiry = oldest.unwrap_or(0);
    });
}

/// Until when nothing is deleted because the wall clock was set.
pub(super) fn held_until() -> i64 {
    const AGAIN: i64 = 1_000_000;
    let until = shared::control()
        .deletion_held_until
        .load(std::sync::atomic::Ordering::Relaxed);
    until.max(background::monotonic().saturating_add(AGAIN))
}

/// Deletion in the table rests until then: it is held, paused, or a change of the policy waits (C24). What stays
/// meanwhile is estimated.
pub(super) fn rest(key: TableKey, until: i64) -> Outcome {
    let began = background::monotonic();
    measure_backlog(key);
    let cost = background::monotonic().saturating_sub(began);
    Outcome::Resting {
        until,
        interval: schedule::interval(cost),
    }
}

/// Fast path of a routine scan: if pgstat shows no writes since the last scan, reuse the next expiry
/// that it computed.
pub(super) fn unchanged(key: TableKey) -> Option<Outcome> {
    let (seen, next) = state::with_table(key, |state| {
        let quiet = state.schedule.is_routine() && state.counters.blocked_rows == 0;
        let progress = state.progress;
        quiet.then_some((progress.writes_seen, progress.next_expiry))
    })??;
    let written = activity::rows_written(key.relid.into())?;
    (seen == written).then_some(Outcome::Done {
        next_expiry: (next != 0).then(|| scheduled(next)),
        leftover: false,
        interval: 0,
    })
}

/// An instant of the wall clock as the schedule has it.
pub(super) fn scheduled(instant: i64) -> i64 {
    instant.saturating_sub(background::wall_offset())
}
