//! Writing a table's policy.

use crate::error::TtlError;
use crate::pg::seclabel;
use crate::policy::Policy;
use crate::store::label_of;
use pgrx::pg_sys;

/// Writes the label; none, if nothing is left of the policy. A guarded one stays so,
/// whatever else is changed in it: an application's migration script must not start the
/// deletion of what was restored. Tells which TTL indexes become ordinary ones.
pub(super) fn write(relid: pg_sys::Oid, policy: &Policy) {
    let former = label_of(relid).map_or(vec![], |former| former.rules);
    let ended: Vec<String> = former
        .into_iter()
        .filter(|rule| policy.rule(&rule.index).is_none())
        .map(|rule| rule.index)
        .collect();
    let label = (!policy.is_empty()).then(|| policy.to_label());
    seclabel::set(relid, label.as_deref());
    if !ended.is_empty() && !policy.is_on() {
        TtlError::no_longer_ttl_indexes(relid, &ended).notice();
    }
    if policy.is_on() && policy.is_restored(relid.to_u32()) {
        TtlError::restored(relid).warn();
    }
}
