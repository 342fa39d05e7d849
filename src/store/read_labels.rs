//! Labels as they stand in the catalog, with what is remembered beside them.

use super::seclabel::{self, PROVIDER};
use crate::citus;
use crate::error::Result;
use crate::pg::catalog::{self, names, roles};
use crate::pg::session::labels::{self, LabelledObject};
use crate::policy::{ArchiveChoice, MAX_LABEL_BYTES, Policy, too_large};
use pgrx::pg_sys;

/// The relation's own label, or why it cannot be read.
pub(crate) fn read_label(relid: pg_sys::Oid) -> Option<Result<Policy>> {
    read_labels(Some(relid)).pop().map(|(_, label)| label)
}

fn read_labels(relid: Option<pg_sys::Oid>) -> Vec<(pg_sys::Oid, Result<Policy>)> {
    let mut found = Vec::new();
    labels::each(
        PROVIDER,
        LabelledObject::Table,
        relid,
        MAX_LABEL_BYTES,
        &mut |relid, label| {
            // Citus copies labels to shards, which follow their table's present one.
            if citus::shell_of(relid).is_some() {
                return;
            }
            let label = label.map_err(too_large);
            found.push((relid, label.and_then(|text| Policy::parse(&text))));
        },
    );
    if found.is_empty() {
        return found;
    }
    let row_type = |relid| catalog::class(relid).map(|class| class.row_type);
    let locals = seclabel::locals(relid.and_then(row_type));
    let home = seclabel::home();
    let complete = |(relid, policy): (pg_sys::Oid, Result<Policy>)| {
        let local = row_type(relid).and_then(|of| locals.get(&of).copied());
        let owner = catalog::class(relid).map_or(pg_sys::InvalidOid, |class| class.owner);
        let trusted = |former: u32| roles::could_act_as(former.into(), owner);
        let policy = policy.map(|policy| with_archive(policy.read_in(home, local, trusted)));
        (relid, policy)
    };
    found.into_iter().map(complete).collect()
}

/// After pg_upgrade an archive is found by its name, which is that of the same table.
fn with_archive(mut policy: Policy) -> Policy {
    if let Some(owner) = policy.local.archive_by_name_of()
        && let Some(name) = policy.archive_to.clone()
        && let Some(table) = names::qualified(&name)
    {
        let table = table.to_u32();
        policy.choose_archive(name, ArchiveChoice { table, owner });
    }
    policy
}

/// The relation's own label. One that cannot be read (written by a newer version, too large)
/// counts as none, so that rows live.
pub(crate) fn label_of(relid: pg_sys::Oid) -> Option<Policy> {
    read_label(relid)?.ok()
}

/// The relations of this database that carry a label, and the labels, as far as they can be read.
pub(super) fn all_labels() -> Vec<(pg_sys::Oid, Option<Policy>)> {
    let labels = read_labels(None).into_iter();
    labels.map(|(relid, label)| (relid, label.ok())).collect()
}

/// All labels of this database that can be read, and the relations that carry them.
pub(crate) fn labels() -> Vec<(pg_sys::Oid, Policy)> {
    let labels = all_labels().into_iter();
    labels
        .filter_map(|(relid, label)| Some((relid, label?)))
        .collect()
}
