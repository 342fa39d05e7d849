//! What `ttl.enable` added to a table, as the label records it: only that is removed when TTL is
//! turned off for good.

use serde::{Deserialize, Serialize};

/// What `ttl.enable` added. What a label (also one written by hand) does not mention was not
/// added: it may be the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Added {
    /// The clock's columns, with what depends on them; other columns were adopted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) columns: Vec<String>,
    /// Whether an adopted `ts_column` was given its DEFAULT.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ts_default: bool,
    /// Whether an adopted `ttl_column` was given its constraint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ttl_check: bool,
    /// Indexes for deletion, by name, like TTL indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) indexes: Vec<String>,
    /// Views of live rows that go with the columns, qualified and quoted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) views: Vec<String>,
}

impl Added {
    /// Whether nothing was added, so that the label need not mention it.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Whether each list can be what `ttl.enable` and `ttl.create_live_view` have added: a label written by hand must not
    /// take more memory than its length.
    pub(super) fn is_plausible(&self) -> bool {
        const MOST: usize = 100;
        /// A qualified and quoted name, each letter of which is a quote.
        const LONGEST: usize = 300;
        [&self.columns, &self.indexes, &self.views]
            .into_iter()
            .all(|names| {
                let fits = |name: &String| !name.is_empty() && name.len() <= LONGEST;
                names.len() <= MOST && names.iter().all(fits)
            })
    }

    /// Puts the lists in the order of names.
    pub(super) fn sort(&mut self) {
        for names in [&mut self.columns, &mut self.indexes, &mut self.views] {
            names.sort();
        }
    }

    /// Whether the column is one that was added.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column == name)
    }

    /// Notes a column that was added.
    pub(crate) fn note_column(&mut self, name: &str) {
        if !self.has_column(name) {
            self.columns.push(name.to_owned());
        }
    }

    /// A column is dropped by hand: a later one of that name is the user's. False if it was not
    /// noted.
    pub(crate) fn forget_column(&mut self, name: &str) -> bool {
        let before = self.columns.len();
        self.columns.retain(|column| column != name);
        self.columns.len() != before
    }

    /// Follows the renaming of a column.
    pub(super) fn rename_column(&mut self, old: &str, new: &str) {
        rename(&mut self.columns, old, new);
    }

    /// Follows the renaming of an index; false if it was not noted.
    pub(crate) fn rename_index(&mut self, old: &str, new: &str) -> bool {
        rename(&mut self.indexes, old, new)
    }
}

fn rename(names: &mut [String], old: &str, new: &str) -> bool {
    let place = names.iter_mut().find(|name| *name == old);
    place.map(|name| new.clone_into(name)).is_some()
}
