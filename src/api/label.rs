//! Writing a table's policy.

use super::mass_expiry::{self, Consent};
use crate::error::{Error, Result};
use crate::policy::{LabelError, Policy};
use crate::store::seclabel;
use pgrx::pg_sys;

/// Stores the label, or removes it if the policy is empty. A restored policy stays guarded until
/// `ttl.resume`: a migration script that changes it must not start deletion.
pub(super) fn write(relid: pg_sys::Oid, policy: &Policy) {
    let label = (!policy.is_empty()).then(|| policy.to_label());
    seclabel::set(relid, label.as_deref());
    if policy.is_on() && policy.is_restored(relid.to_u32()) {
        Error::restored(relid).warn();
    }
}

/// As [`write`], but refuses to expire most of a table without consent (C19).
pub(super) fn change(relid: pg_sys::Oid, policy: &Policy, consent: &Consent) -> Result<()> {
    mass_expiry::watch(relid, consent, || write(relid, policy))
}

/// Names the TTL indexes that become ordinary ones: the command that turns TTL off did not name
/// them.
pub(super) fn tell_of_rules(relid: pg_sys::Oid, former: &Policy) {
    let names: Vec<String> = former.rules.iter().map(|rule| rule.index.clone()).collect();
    if !names.is_empty() {
        Error::no_longer_ttl_indexes(relid, &names).notice();
    }
}

/// The policy, if its granularity fits its default and clock (C16).
pub(super) fn fitting(relid: pg_sys::Oid, policy: Policy) -> Result<Policy> {
    match policy.check_granularity() {
        Ok(()) => Ok(policy),
        Err(LabelError::NoClock) => Err(Error::no_clock(relid)),
        Err(error) => Err(invalid(error)),
    }
}

/// What is wrong with a policy.
pub(super) fn invalid(error: LabelError) -> Error {
    match error {
        LabelError::Granularity(seconds, default_ttl) => {
            Error::invalid_granularity(seconds, default_ttl)
        }
        other => Error::invalid_label(&other),
    }
}
