//! From a relation to the policy that is in force for it.

use super::cache::governing_label;
use super::dates::DateType;
use super::predicate::Predicate;
use super::seclabel::{self, Label};
use super::{expiry_index, ttl_index};
use crate::pg::catalog::{self, Attribute};
use crate::pg::encoding;
use crate::policy::{IndexRule, LabelError, MAX_LABEL_BYTES, Policy};
use pgrx::pg_sys;
use std::rc::Rc;

/// A policy as it applies to one relation: names resolved to its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TablePolicy {
    /// C2: `None` = TTL is off; rows are still stamped, so that turning it on
    /// again counts from the last modification (C4).
    pub(crate) default_ttl: Option<i32>,
    /// `None`: rows expire by TTL indexes only.
    pub(crate) clock: Option<Clock>,
    /// The TTL indexes that count.
    pub(crate) rules: Vec<Rule>,
    /// Whether expired rows are hidden at once.
    pub(crate) hidden: bool,
    /// Whether TTL is on, also by TTL indexes that do not count yet.
    pub(crate) is_on: bool,
    /// Whether the policy waits for `ttl.resume`.
    pub(crate) is_restored: bool,
    /// The relation that carries the label: this one or an ancestor.
    pub(crate) holder: pg_sys::Oid,
}

/// The columns by which rows count from their last modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) ts: Attribute,
    pub(crate) ttl: Option<Attribute>,
}

/// A TTL index, as it applies to one relation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    /// The name of the holder's index.
    pub(crate) index: String,
    /// Its column, in this relation.
    pub(crate) column: Attribute,
    pub(crate) column_name: String,
    pub(crate) date: DateType,
    pub(crate) seconds: i32,
    /// M4: what is true of rows that expire by it.
    pub(crate) predicate: Option<Predicate>,
}

impl Rule {
    /// Whether every row of the table expires by it, by the value of its column.
    pub(crate) fn covers_all_rows(&self) -> bool {
        self.predicate.is_none() && !self.date.is_array
    }
}

impl TablePolicy {
    /// Whether any row of the table can be expired.
    pub(crate) fn expires(&self) -> bool {
        self.expiring_clock().is_some() || !self.rules.is_empty()
    }

    /// Whether rows of the table are to be hidden (C6).
    pub(crate) fn hides(&self) -> bool {
        self.hidden && self.expires()
    }

    /// The clock, if rows can expire by it: TTL is on, and there is a default or an
    /// override column.
    pub(crate) fn expiring_clock(&self) -> Option<Clock> {
        self.clock.filter(|clock| match self.default_ttl {
            None => false,
            Some(default) => default > 0 || clock.ttl.is_some(),
        })
    }

    /// Whether TTL is on by a default, -1 included: the table needs its columns.
    pub(crate) fn needs_clock(&self) -> bool {
        self.default_ttl.is_some() && self.clock.is_some()
    }

    /// The default that counts for rows: `None` if those that inherit do not expire.
    pub(crate) fn expiring_default(&self) -> Option<i32> {
        self.default_ttl.filter(|&default| default > 0)
    }
}

/// A label and the relation that carries it.
pub(crate) struct Inherited {
    pub(crate) holder: pg_sys::Oid,
    pub(crate) policy: Rc<Policy>,
}

/// The relation's own label, or why it cannot be read.
pub(crate) fn read_label(relid: pg_sys::Oid) -> Option<std::result::Result<Policy, LabelError>> {
    match seclabel::get(relid, MAX_LABEL_BYTES)? {
        Label::Text(label) => Some(Policy::parse(&label)),
        Label::TooLarge(size) => Some(Err(LabelError::TooLarge(size))),
    }
}

/// The relation's own label. One that cannot be read (written by a newer
/// version, too large) counts as none: its rows live.
pub(crate) fn label_of(relid: pg_sys::Oid) -> Option<Policy> {
    read_label(relid)?.ok()
}

/// All labels of this database that can be read, and the relations that carry them.
pub(crate) fn labels() -> Vec<(pg_sys::Oid, Policy)> {
    let mut found = Vec::new();
    seclabel::each(MAX_LABEL_BYTES, &mut |relid, label| {
        found.extend(Policy::parse(label).ok().map(|policy| (relid, policy)));
    });
    found
}

/// The policy in force for a relation, from the catalogs.
pub(super) fn look_up(relid: pg_sys::Oid) -> Option<TablePolicy> {
    let Inherited { holder, policy } = governing_label(relid)?;
    let rules = policy
        .rules
        .iter()
        .filter_map(|rule| look_up_rule(relid, holder, rule))
        .collect();
    // A policy whose columns do not fit is not in force: its rows live.
    let clock = match &policy.ts_column {
        Some(ts) => Some(look_up_clock(relid, ts, policy.ttl_column.as_deref())?),
        None => None,
    };
    Some(TablePolicy {
        default_ttl: policy.default_ttl,
        clock,
        rules,
        hidden: policy.hidden,
        is_on: policy.is_on(),
        is_restored: policy.is_restored(holder.to_u32()),
        holder,
    })
}

fn look_up_clock(relid: pg_sys::Oid, ts: &str, ttl: Option<&str>) -> Option<Clock> {
    Some(Clock {
        ts: typed(relid, ts, pg_sys::TIMESTAMPTZOID)?,
        ttl: match ttl {
            Some(name) => Some(typed(relid, name, pg_sys::INT4OID)?),
            None => None,
        },
    })
}

/// The index of that name, if it is one of the table that carries the policy.
pub(crate) fn index_of(holder: pg_sys::Oid, name: &str) -> Option<pg_sys::Oid> {
    let schema = catalog::class(holder)?.namespace;
    let name = encoding::to_server(name)?;
    // SAFETY: syscache look-ups within a transaction.
    let (index, table) = unsafe {
        let index = pg_sys::get_relname_relid(name.as_ptr(), schema);
        if index == pg_sys::InvalidOid {
            return None;
        }
        (index, pg_sys::IndexGetRelation(index, true))
    };
    (table == holder).then_some(index)
}

/// The rule as it applies to the relation. `None` if it does not count, so that rows
/// live: its index is not there (yet, in a dump that is being restored), is not valid,
/// or is none by which rows can expire. `ttl.problems` says so.
fn look_up_rule(relid: pg_sys::Oid, holder: pg_sys::Oid, rule: &IndexRule) -> Option<Rule> {
    let index = ttl_index::read(index_of(holder, &rule.index)?)?.ok()?;
    if !index.is_valid {
        return None;
    }
    let column_name = catalog::column_name(holder, index.attno);
    let (column, date) = ttl_index::date_column(relid, &column_name)?;
    let predicate = match index.predicate {
        Some(predicate) if relid != holder => Some(predicate.translate(holder, relid)?),
        predicate => predicate,
    };
    Some(Rule {
        index: rule.index.clone(),
        column,
        column_name,
        date,
        seconds: rule.expire_after_seconds,
        predicate,
    })
}

fn typed(relid: pg_sys::Oid, name: &str, type_oid: pg_sys::Oid) -> Option<Attribute> {
    catalog::attribute(relid, name).filter(|column| column.type_oid == type_oid)
}

/// What the indexes must offer that deletion of rows that count from their last
/// modification works from (C11).
pub(crate) fn expected_indexes(policy: &TablePolicy) -> Vec<expiry_index::Wanted> {
    match policy.clock {
        None => vec![],
        Some(Clock { ttl: None, .. }) => vec![expiry_index::Wanted::AllByTimestamp],
        Some(Clock { ttl: Some(_), .. }) => vec![
            expiry_index::Wanted::InheritingByTimestamp,
            expiry_index::Wanted::OverridingByExpiry,
        ],
    }
}
