//! From a relation to the policy that is in force for it.

use crate::pg::catalog::{self, Attribute};
use crate::pg::{index, seclabel};
use crate::policy::Policy;
use pgrx::pg_sys;

/// A policy as it applies to one relation: names resolved to its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TablePolicy {
    /// C2: `None` = TTL is off; rows are still stamped, so that turning it on
    /// again counts from the last modification (C4).
    pub(crate) default_ttl: Option<i32>,
    pub(crate) ts: Attribute,
    pub(crate) ttl: Option<Attribute>,
    /// The relation that carries the label: this one or an ancestor.
    pub(crate) holder: pg_sys::Oid,
}

impl TablePolicy {
    /// Whether any row of the table can be expired: TTL is on, and there is a
    /// default or an override column.
    pub(crate) fn hides(&self) -> bool {
        match self.default_ttl {
            None => false,
            Some(default) => default > 0 || self.ttl.is_some(),
        }
    }
}

/// A label and the relation that carries it.
pub(crate) struct Inherited {
    pub(crate) holder: pg_sys::Oid,
    pub(crate) policy: Policy,
}

/// The relation's own label. One that cannot be read (written by a newer
/// version) counts as none: its rows live.
pub(crate) fn label_of(relid: pg_sys::Oid) -> Option<Policy> {
    seclabel::get(relid).and_then(|label| Policy::parse(&label).ok())
}

/// The label in force: that of the topmost ancestor that has one, since the
/// planner gives a parent's restriction to all its children.
pub(crate) fn governing_label(relid: pg_sys::Oid) -> Option<Inherited> {
    let class = catalog::class(relid)?;
    for parent in catalog::parents(relid, class.is_partition) {
        if let Some(found) = governing_label(parent) {
            return Some(found);
        }
    }
    label_of(relid).map(|policy| Inherited {
        holder: relid,
        policy,
    })
}

/// The policy in force for a relation, from the catalogs.
pub(super) fn look_up(relid: pg_sys::Oid) -> Option<TablePolicy> {
    let Inherited { holder, policy } = governing_label(relid)?;
    // A policy whose columns do not fit is not in force: its rows live.
    let ts = typed(relid, &policy.ts_column, pg_sys::TIMESTAMPTZOID)?;
    let ttl = match &policy.ttl_column {
        Some(name) => Some(typed(relid, name, pg_sys::INT4OID)?),
        None => None,
    };
    Some(TablePolicy {
        default_ttl: policy.default_ttl,
        ts,
        ttl,
        holder,
    })
}

fn typed(relid: pg_sys::Oid, name: &str, type_oid: pg_sys::Oid) -> Option<Attribute> {
    catalog::attribute(relid, name).filter(|column| column.type_oid == type_oid)
}

/// What the indexes must offer that deletion works from (C11).
pub(crate) fn expected_indexes(policy: &TablePolicy) -> Vec<index::Wanted> {
    match policy.ttl {
        None => vec![index::Wanted::AllByTimestamp],
        Some(_) => vec![
            index::Wanted::InheritingByTimestamp,
            index::Wanted::OverridingByExpiry,
        ],
    }
}
