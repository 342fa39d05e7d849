//! Transactions of a background process, each with a time limit, since planning a query may call
//! user functions.

use crate::error::Error;
use crate::pg::server::timeout::{TimeLimit, TimedTurn};
use crate::pg::session::txn;
use crate::settings;
use std::time::Duration;

/// Runs `work` in a transaction of its own, as [`txn::run_within`], within the time limit of the
/// current turn, or `ttl.statement_timeout`.
pub(crate) fn run<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    run_within(TimedTurn::limit(settings::statement_timeout()), work)
}

/// As [`run`], within another time limit.
pub(crate) fn run_within<T>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    txn::run_within(limit, work).map_err(|error| {
        if TimeLimit::gave_way() {
            error.because("statement timeout, since others waited")
        } else if TimeLimit::exceeded() && limit < settings::statement_timeout() {
            let limit = limit.as_secs_f64();
            error.because(&format!(
                "statement timeout of {limit:.1} s, see ttl.statement_timeout"
            ))
        } else if TimeLimit::exceeded() {
            error.because("statement timeout, see ttl.statement_timeout")
        } else {
            error
        }
    })
}
