//! Where expired rows go.

use super::label::Policy;
use serde::{Deserialize, Serialize};

/// The table into which rows are inserted as they are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    /// Its name, qualified and quoted, as of the call: for messages.
    pub(crate) name: String,
    /// Which table it is; `None` in a label that came from elsewhere: then any table may have that name.
    pub(crate) chosen: Option<ArchiveChoice>,
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

impl Policy {
    /// Where expired rows go, if not nowhere (C26). Of a label that [`Policy::read_in`] has read.
    pub(crate) fn archive(&self) -> Option<Archive> {
        self.archive_to.as_ref().map(|name| Archive {
            name: name.clone(),
            chosen: self.local.archive,
        })
    }

    /// Makes a table of this database the archive, of that name.
    pub(crate) fn choose_archive(&mut self, name: String, chosen: ArchiveChoice) {
        self.archive_to = Some(name);
        self.local.archive = Some(chosen);
        self.local.upgraded = None;
    }

    pub(crate) fn end_archive(&mut self) {
        self.archive_to = None;
        self.local.archive = None;
        self.local.upgraded = None;
    }
}

/// Why rows that are archived may be expired in the archive, which has a time to live of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpiredThere {
    /// All that follow the table's default: the archive's is not longer.
    ByDefault(i32),
    /// Those with an override, which counts there, too.
    ByOverride,
}

impl ExpiredThere {
    /// Of rows that go from a table with one policy to a table with the other.
    pub(crate) fn of(from: &Policy, to: &Policy) -> Option<Self> {
        let there = to.default_ttl?;
        // A time that the archive takes from elsewhere is its own affair.
        if to.ts_column.is_none() || to.ts_column != from.ts_column {
            return None;
        }
        let has_default = from
            .default_ttl
            .is_some_and(|here| here > 0 && there <= here);
        if has_default && there > 0 {
            return Some(Self::ByDefault(there));
        }
        (to.ttl_column.is_some() && to.ttl_column == from.ttl_column).then_some(Self::ByOverride)
    }
}

/// What a NOTIFY of a batch says (C28).
pub(crate) fn batch_payload(table: &str, rows: u64) -> String {
    serde_json::json!({ "table": table, "rows": rows }).to_string()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn an_archive_holds_while_all_owners_are_the_same() {
        let chosen = ArchiveChoice {
            table: 7,
            owner: 10,
        };
        let holds = |owners: &[Option<u32>]| chosen.holds(owners.iter().copied());
        assert!(holds(&[Some(10), Some(10)]));
        for owners in [[Some(10), Some(11)], [Some(11), Some(11)], [None, Some(10)]] {
            assert!(!holds(&owners), "{owners:?}");
        }
    }

    #[test]
    fn rows_can_be_expired_in_the_archive() {
        let of = |from: &str, to: &str| {
            let policy = |text| Policy::parse(text).unwrap();
            ExpiredThere::of(&policy(from), &policy(to))
        };
        let hour = r#"{"default_ttl": 3600}"#;
        assert_eq!(of(hour, hour), Some(ExpiredThere::ByDefault(3600)));
        assert_eq!(
            of(hour, r#"{"default_ttl": 60}"#),
            Some(ExpiredThere::ByDefault(60))
        );
        assert_eq!(
            of(hour, r#"{"default_ttl": 3601}"#),
            Some(ExpiredThere::ByOverride)
        );
        assert_eq!(
            of(hour, r#"{"default_ttl": -1}"#),
            Some(ExpiredThere::ByOverride)
        );
        assert_eq!(
            of(hour, r#"{"default_ttl": 3601, "ttl_column": null}"#),
            None
        );
        assert_eq!(of(hour, r#"{"default_ttl": null}"#), None);
        assert_eq!(
            of(hour, r#"{"default_ttl": 60, "ts_column": "archived_at"}"#),
            None
        );
        assert_eq!(
            of(r#"{"default_ttl": -1}"#, hour),
            Some(ExpiredThere::ByOverride)
        );
    }
}
