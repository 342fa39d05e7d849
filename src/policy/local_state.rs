//! What the extension remembers of a table with a label, in this database only.
//!
//! It is not part of the label: a dump contains the label, and equal policies have equal labels
//! (`docs/decisions/0090-labels-without-oids.md`).

use serde::{Deserialize, Serialize};

/// The largest one, in bytes.
pub(crate) const MAX_LOCAL_STATE_BYTES: usize = 1024;

/// Where a state was stored. A policy that comes to stand elsewhere, or again after a time without the extension, proves
/// nothing of the rows that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Home {
    /// In a copy of the database (`CREATE DATABASE ... TEMPLATE`) all OIDs are the same but this one.
    pub(crate) database: u32,
    /// An extension that is dropped and created again has another one.
    pub(crate) extension: u32,
}

/// What is remembered of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalState {
    pub(super) home: Home,
    /// The table's owner when it was stored.
    #[serde(default)]
    pub(super) owner: u32,
    /// The table that `archive_to` names, as its owner has chosen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) archive: Option<ArchiveChoice>,
    /// C24: when rows last came to expire sooner by a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shortened: Option<Shortened>,
    /// The table came by pg_upgrade, when it belonged to this role: its archive is the table of
    /// that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) upgraded: Option<u32>,
}

impl LocalState {
    /// Of a table whose owner is this role when pg_upgrade creates it.
    pub(crate) fn upgraded(owner: u32) -> Self {
        Self {
            upgraded: Some(owner),
            ..Self::default()
        }
    }

    /// Reads what [`Self::stored_in`] has written; `None` if it was written by a newer version.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The text to store here, for a table of this owner.
    pub(crate) fn stored_in(self, home: Home, owner: u32) -> String {
        let state = Self {
            home,
            owner,
            ..self
        };
        // A struct of integers always serializes.
        serde_json::to_string(&state).unwrap_or_default()
    }

    /// The owner at the time of pg_upgrade, if the archive is still to be found by its name.
    pub(crate) fn archive_by_name_of(&self) -> Option<u32> {
        self.upgraded
    }
}

/// The archive as it was chosen (docs/decisions/0075-archives-by-identity.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchiveChoice {
    pub(crate) table: u32,
    /// The role to which both tables belonged, and have to belong whenever a row goes there.
    pub(crate) owner: u32,
}

impl ArchiveChoice {
    /// Of tables and their owners: whether all are as they were when it was chosen. A table that does not exist
    /// has no owner.
    pub(crate) fn holds(self, mut owners: impl Iterator<Item = Option<u32>>) -> bool {
        owners.all(|owner| owner == Some(self.owner))
    }
}

/// When the policy was last changed so that rows expire sooner (C24): instants as in timestamptz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shortened {
    /// The last such change,
    at: i64,
    /// and the first of those that followed each other within the delay.
    since: i64,
}

/// Changes that follow each other hold deletion back for at most this multiple of the delay: a job
/// that changes a policy every minute must not stop deletion for ever.
const LONGEST: i64 = 12;

impl Shortened {
    /// A change now, after the former one.
    pub(crate) fn again(former: Option<Self>, now: i64, delay: i64) -> Self {
        let goes_on = former.filter(|former| former.waits_until(now, delay).is_some());
        Self {
            at: now,
            since: goes_on.map_or(now, |former| former.since.min(now)),
        }
    }

    /// Until when nothing is deleted in the background; `None`: deletion may go on.
    ///
    /// A change that lies in the future, because the clock was set back, holds deletion no longer
    /// than one that is made now.
    pub(crate) fn waits_until(self, now: i64, delay: i64) -> Option<i64> {
        let until = self.at.saturating_add(delay);
        let until = until.min(self.since.saturating_add(delay.saturating_mul(LONGEST)));
        (until > now && self.at <= now.saturating_add(delay)).then_some(until)
    }
}
