//! What the extension remembers of a table with a label, in this database only.
//!
//! It is not part of the label: a dump contains the label, and equal policies have equal labels
//! (`docs/decisions/0090-labels-without-oids.md`).

use super::archive::ArchiveChoice;
use super::label::Policy;
use super::undo::Shortened;
use serde::{Deserialize, Serialize};

/// The largest one, in bytes.
pub(crate) const MAX_LOCAL_STATE_BYTES: usize = 1024;

/// What is remembered of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalState {
    /// The database that it was stored in. In a copy of that database
    /// (`CREATE DATABASE ... TEMPLATE`) all OIDs are the same but this one.
    database: u32,
    /// The table's owner when it was stored.
    #[serde(default)]
    owner: u32,
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

    /// The text to store in this database, for a table of this owner.
    pub(crate) fn stored_in(self, database: u32, owner: u32) -> String {
        let state = Self {
            database,
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

impl Policy {
    /// The policy as it applies in this database. A label without a state that was stored in this very
    /// database came from a dump, by hand, or with a copy of its database: it waits for `ttl.resume`. So does one that
    /// was stored for an owner who is not `trusted` to run code as the present one: the table's triggers are of their making.
    pub(crate) fn read_in(
        mut self,
        database: u32,
        local: Option<LocalState>,
        trusted: impl Fn(u32) -> bool,
    ) -> Self {
        let local = local.filter(|local| local.database == database);
        self.restored |= local.is_none_or(|local| !trusted(local.owner));
        self.local = local.unwrap_or_default();
        self
    }
}
