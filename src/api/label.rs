//! Writing a table's policy.

use crate::error::Error;
use crate::policy::Policy;
use crate::store::seclabel;
use pgrx::pg_sys;

/// Writes the label; none, if nothing is left of the policy. A guarded one stays so,
/// whatever else is changed in it: an application's migration script must not start the
/// deletion of what was restored.
pub(super) fn write(relid: pg_sys::Oid, policy: &Policy) {
    let label = (!policy.is_empty()).then(|| policy.to_label());
    seclabel::set(relid, label.as_deref());
    if policy.is_on() && policy.is_restored(relid.to_u32()) {
        Error::restored(relid).warn();
    }
}

/// Tells which TTL indexes become ordinary ones when all TTL is turned off: nobody has
/// named them.
pub(super) fn tell_of_rules(relid: pg_sys::Oid, former: &Policy) {
    let names: Vec<String> = former.rules.iter().map(|rule| rule.index.clone()).collect();
    if !names.is_empty() {
        Error::no_longer_ttl_indexes(relid, &names).notice();
    }
}
