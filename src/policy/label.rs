//! The policy as it is stored: JSON in the table's security label.

use super::added::Added;
use super::local_state::{Home, LocalState};
use super::rest::{PauseEnd, Rest, Window};
use super::rule::IndexRule;
use crate::error::{Error, Result};
use pgrx::PgSqlErrorCode;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The label format that this library writes, and the newest that it reads.
pub(crate) const LABEL_VERSION: u32 = 1;

/// The largest label, in bytes: sessions and workers of other owners read all labels of a
/// database again and again. A policy within [`MAX_RULES`] fits, whatever its names.
pub(crate) const MAX_LABEL_BYTES: usize = 64 * 1024;

/// The most TTL indexes of a table.
pub(crate) const MAX_RULES: usize = 100;

/// A table's time to live, as written in `SECURITY LABEL FOR ttl ON TABLE …`.
///
/// Columns are stored by name, so that a label means the same after dump and restore; the
/// extension follows renames. Unknown fields are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Policy {
    /// The format's version; [`LABEL_VERSION`] when absent.
    pub(crate) version: u32,
    /// C2: `None` = TTL is off, -1 = on without a default, n = seconds.
    pub(crate) default_ttl: Option<i32>,
    /// C1: the column that holds the time of the last modification; `null` for none:
    /// rows expire by TTL indexes only.
    pub(crate) ts_column: Option<String>,
    /// C3: the column that holds the row's override; `null` for none.
    pub(crate) ttl_column: Option<String>,
    /// D1: the jsonb column from which `ttl_column` is generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) document_column: Option<String>,
    /// C11: the kind of index that deletion uses.
    pub(crate) index: IndexMethod,
    /// C21: its indexes are built in the background; deletion waits for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) build_pending: bool,
    /// M11: whether a partition whose every row is expired is dropped as a whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) drop_partitions: bool,
    /// C16: an UPDATE does not change a `_ts` that is no older than this number of seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) ts_granularity: i32,
    /// C23: number of seconds for which expired rows stay on disk.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) keep_expired: i32,
    /// M5: the TTL indexes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<IndexRule>,
    /// C6: whether expired rows are hidden at once. MongoDB shows them until they are
    /// deleted.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub(crate) hidden: bool,
    /// C26: the table into which expired rows are inserted as they are deleted, qualified and
    /// quoted. For people only: nothing is looked up by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) archive_to: Option<String>,
    /// C28: the channel that is notified of each batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notify: Option<String>,
    /// C29: background deletion waits until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused_until: Option<PauseEnd>,
    /// C30: the hours of background deletion; `None` is always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delete_between: Option<Window>,
    /// Deletion waits for `ttl.resume` (docs/decisions/0070-what-waits.md): the label was given by a
    /// statement, such as one of a dump, or rows were restored into the table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) restored: bool,
    /// It waits since a table came from another owner, whose code the deletion would run: `ttl.resume` of that table only
    /// ends it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) handed_over: bool,
    /// A table of a third owner that its deletion reaches was handed over: it waits when this table changes hands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reaches_handed_over: bool,
    /// What `ttl.enable` added to the table; `drop_columns` removes nothing else.
    #[serde(skip_serializing_if = "Added::is_nothing")]
    pub(crate) added: Added,
    /// What stands beside the label.
    #[serde(skip)]
    pub(crate) local: LocalState,
}

/// How the indexes that deletion works from are built (C11).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IndexMethod {
    /// A B-tree, for a table that is too large to be read: `ttl.auto_index_min_size`.
    #[default]
    Auto,
    /// B-tree: deletion reads only expired rows; prevents HOT updates.
    Btree,
    /// None is built: deletion reads the table, unless its owner builds one.
    None,
}

impl IndexMethod {
    /// The choice of that name, as `ttl.enable(…, index => …)` takes it.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "btree" => Some(Self::Btree),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Btree => "btree",
            Self::None => "none",
        }
    }
}

fn is_zero(seconds: &i32) -> bool {
    *seconds == 0
}

/// 54000: there is more in a policy than one may have.
fn limit(message: String, hint: &str) -> Error {
    Error::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message).hint(hint)
}

/// The error for a label of more bytes than [`MAX_LABEL_BYTES`].
pub(crate) fn too_large(bytes: usize) -> Error {
    let message = format!("it has {bytes} bytes; a label has {MAX_LABEL_BYTES} at most");
    limit(message, FEWER_INDEXES)
}

const FEWER_INDEXES: &str =
    "Use ttl.expire_index() with NULL to make TTL indexes that are not needed ordinary ones.";

impl Default for Policy {
    /// What the label `{}` says.
    fn default() -> Self {
        Self {
            version: LABEL_VERSION,
            default_ttl: None,
            ts_column: Some("_ts".into()),
            ttl_column: Some("ttl".into()),
            document_column: None,
            index: IndexMethod::default(),
            build_pending: false,
            drop_partitions: false,
            ts_granularity: 0,
            keep_expired: 0,
            rules: vec![],
            hidden: true,
            archive_to: None,
            notify: None,
            paused_until: None,
            delete_between: None,
            restored: false,
            handed_over: false,
            reaches_handed_over: false,
            added: Added::default(),
            local: LocalState::default(),
        }
    }
}

impl Policy {
    /// Checks a table default (C2).
    pub(crate) fn check_default_ttl(value: i32) -> Result<i32> {
        if value == -1 || value > 0 {
            return Ok(value);
        }
        Err(Error::invalid(format!("invalid default time to live: {value}"))
            .detail("Valid values: 1 to 2147483647 seconds, -1 (no default), NULL (TTL off).")
            .hint("To turn TTL off, use ttl.disable(); to keep single rows for ever, set their override to -1."))
    }

    pub(crate) fn parse(label: &str) -> Result<Self> {
        if label.len() > MAX_LABEL_BYTES {
            return Err(too_large(label.len()));
        }
        // serde would also read a struct from an array.
        if !label.trim_start().starts_with('{') {
            return Err(Error::invalid("it must be a JSON object"));
        }
        let malformed = |e: serde_json::Error| Error::invalid(e.to_string());
        let policy: Self = serde_json::from_str(label).map_err(malformed)?;
        // The same for rules.
        let value: serde_json::Value = serde_json::from_str(label).map_err(malformed)?;
        let rules = value.get("rules").and_then(serde_json::Value::as_array);
        if rules.is_some_and(|rules| !rules.iter().all(serde_json::Value::is_object)) {
            return Err(Error::invalid("rules must be JSON objects"));
        }
        if value.get("added").is_some_and(|it| !it.is_object()) {
            return Err(Error::invalid("added must be a JSON object"));
        }
        policy.check()?;
        Ok(policy)
    }

    /// Whether the policy is one that a label may have: what is stored must be readable again.
    pub(crate) fn check(&self) -> Result<()> {
        if self.version == 0 || self.version > LABEL_VERSION {
            return Err(Error::invalid(format!(
                "version {} is newer than {LABEL_VERSION}, the newest that this library reads",
                self.version
            )));
        }
        if !self.added.is_plausible() {
            let message = "added must have no more than 100 names in each list, of 1 to 300 bytes";
            let hint = "Create views without drop_with_policy.";
            return Err(limit(message.to_owned(), hint));
        }
        self.default_ttl.map(Self::check_default_ttl).transpose()?;
        self.check_columns()?;
        self.check_granularity()?;
        self.check_keep_expired()?;
        self.check_rules()?;
        match &self.archive_to {
            Some(name) if name.is_empty() || name.contains('\0') => {
                Err(Error::invalid("archive_to must be the name of a table"))
            }
            _ => self.check_notify(),
        }
    }

    /// The text to store: the same for equal policies, whatever calls led to them.
    pub(crate) fn to_label(&self) -> String {
        // A struct of strings and integers always serializes.
        serde_json::to_string(&self.clone().in_order()).unwrap_or_default()
    }

    /// The policy with its lists in the order of names.
    pub(super) fn in_order(mut self) -> Self {
        self.rules.sort_by(|one, other| one.index.cmp(&other.index));
        self.added.sort();
        self
    }

    /// Whether TTL is on in any way (C9).
    pub(crate) fn is_on(&self) -> bool {
        self.default_ttl.is_some() || !self.rules.is_empty()
    }

    /// The policy as it applies in this database. A label without a state that was stored by this very
    /// extension came from a dump, by hand, with a copy of its database, or from before the extension was dropped: it waits for `ttl.resume`. So does one that
    /// was stored for an owner who is not `trusted` to run code as the present one: the table's triggers are of their making.
    pub(crate) fn read_in(
        mut self,
        home: Home,
        local: Option<LocalState>,
        trusted: impl Fn(u32) -> bool,
    ) -> Self {
        let local = local.filter(|local| local.home == home);
        self.handed_over |= local.is_some_and(|local| !trusted(local.owner));
        self.restored |= local.is_none() || self.handed_over;
        self.local = local.unwrap_or_default();
        self
    }

    /// Whether the label was stored here while the table belonged to this role.
    pub(crate) fn was_stored_for(&self, owner: u32) -> bool {
        self.local.owner == owner
    }

    /// The policy, which waits for `ttl.resume` for what the other one waits, too.
    pub(crate) fn waiting_like(&self, other: &Self) -> Self {
        Self {
            restored: self.restored || other.restored,
            handed_over: self.handed_over || other.handed_over,
            reaches_handed_over: self.reaches_handed_over || other.reaches_handed_over,
            ..self.clone()
        }
    }

    /// When background deletion rests.
    pub(crate) fn rest(&self) -> Rest {
        Rest {
            paused_until: self.paused_until,
            delete_between: self.delete_between,
        }
    }

    /// Whether the policy has neither a clock nor a TTL index.
    pub(crate) fn is_empty(&self) -> bool {
        self.ts_column.is_none() && self.rules.is_empty()
    }

    pub(crate) fn rule(&self, index: &str) -> Option<&IndexRule> {
        self.rules.iter().find(|rule| rule.index == index)
    }

    /// The columns that must exist while the policy is in force.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        [&self.ts_column, &self.ttl_column, &self.document_column]
            .into_iter()
            .filter_map(Option::as_deref)
    }

    /// Checks the granularity (C16): a row that is written lives for half of the default at least.
    fn check_granularity(&self) -> Result<()> {
        let seconds = self.ts_granularity;
        let default = self.default_ttl.filter(|&ttl| ttl > 0);
        let refused = || Error::invalid(format!("invalid ts_granularity: {seconds} s"));
        match default {
            Some(default) if seconds > default / 2 => Err(refused()
                .detail(format!(
                    "The maximum is half of the default, {} s for a default of {default} s.",
                    default / 2
                ))
                .hint("To change both, use ttl.enable() with default_ttl and ts_granularity.")),
            _ if seconds < 0 => Err(refused()
                .detail("It is a number of seconds from 0 to 2147483647.")
                .hint("With 0, every UPDATE sets the time of the last modification.")),
            _ if seconds > 0 && self.ts_column.is_none() => {
                Err(Error::invalid("ts_granularity needs a ts_column"))
            }
            _ => Ok(()),
        }
    }

    /// Checks how long expired rows are kept (C23).
    fn check_keep_expired(&self) -> Result<()> {
        let seconds = self.keep_expired;
        if seconds >= 0 {
            return Ok(());
        }
        Err(
            Error::invalid(format!("invalid time to keep expired rows: {seconds} s"))
                .detail("It is a number of seconds from 0 to 2147483647.")
                .hint("0, or NULL, keeps none: they are deleted as soon as possible."),
        )
    }

    /// Checks that NOTIFY can have the channel (C28), in any encoding.
    fn check_notify(&self) -> Result<()> {
        match &self.notify {
            Some(channel) if !is_name(channel) || channel.len() > 63 => {
                let message = format!("invalid value for option \"notify\": \"{channel}\"");
                Err(Error::invalid(message)
                    .detail("The name of a channel has 1 to 63 bytes.")
                    .hint("Give the name of a channel, as LISTEN takes it."))
            }
            _ => Ok(()),
        }
    }

    fn check_rules(&self) -> Result<()> {
        let count = self.rules.len();
        if count > MAX_RULES {
            let message = format!("it names {count} TTL indexes; a table has {MAX_RULES} at most");
            return Err(limit(message, FEWER_INDEXES));
        }
        let mut seen = HashSet::with_capacity(count);
        for rule in &self.rules {
            let index = &rule.index;
            if !is_name(index) {
                return Err(Error::invalid(format!("\"{index}\" is not an index name")));
            }
            if !seen.insert(index) {
                return Err(Error::invalid(format!("index \"{index}\" is named twice")));
            }
            if rule.expire_after_seconds < 0 {
                return Err(Error::invalid(format!(
                    "expire_after_seconds is {}; it must be 0 to 2147483647",
                    rule.expire_after_seconds
                )));
            }
            rule.check_time_zone()?;
        }
        Ok(())
    }

    fn check_columns(&self) -> Result<()> {
        let mut seen: Vec<&str> = Vec::with_capacity(3);
        for column in self.columns() {
            if !is_name(column) {
                return Err(Error::invalid(format!("\"{column}\" is not a column name")));
            }
            if seen.contains(&column) {
                let message = format!("column \"{column}\" is named twice");
                return Err(Error::invalid(message)
                    .detail(
                        "Time of the last modification, override and document need a column each.",
                    )
                    .hint("Name another column, or leave one out."));
            }
            seen.push(column);
        }
        let lacking = if self.document_column.is_some() && self.ttl_column.is_none() {
            "document_column needs a ttl_column that is generated from it"
        } else if self.ts_column.is_none() && self.ttl_column.is_some() {
            "ttl_column needs a ts_column"
        } else if self.ts_column.is_none() && self.default_ttl.is_some() {
            "default_ttl needs a ts_column"
        } else {
            return Ok(());
        };
        Err(Error::invalid(lacking))
    }
}

/// Whether PostgreSQL can have an object of that name: in any encoding a character takes at
/// least one byte.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= 63 && !name.contains('\0')
}
