//! A policy as it applies to one relation.

use super::dates::DateType;
use super::extension;
use super::predicate::{Predicate, TrustedExpression};
use super::time_zone::TimeZone;
use crate::citus::{self, CitusRole};
use crate::pg::catalog::Attribute;
use crate::policy::{EpochUnit, Policy};
use crate::settings;
use pgrx::pg_sys;
use std::rc::Rc;

/// A policy as it applies to one relation, with its columns resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TablePolicy {
    /// What it says. If TTL is off (C2), rows are still stamped, so that they count from the last modification once it is
    /// on again (C4).
    pub(crate) label: Rc<Policy>,
    /// `None`: rows expire by TTL indexes only.
    pub(crate) clock: Option<Clock>,
    /// C23: number of seconds for which expired rows stay on disk, with what Citus needs.
    pub(crate) keep_expired: i32,
    /// The TTL indexes in force.
    pub(crate) rules: Vec<Rule>,
    /// The relation that carries the label: this one or an ancestor.
    pub(crate) labelled_table: pg_sys::Oid,
    /// What the relation is to Citus.
    pub(crate) part: Option<CitusRole>,
    /// Whether it is a copy of a reference table, of which each node has one.
    pub(crate) is_reference_shard: bool,
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
    /// The index's name, in the labelled table's schema.
    pub(crate) index: String,
    /// What of a row of this relation is its date.
    pub(crate) key: DateSource,
    pub(crate) date: DateType,
    /// M13: the time zone of a date without one; `None` is UTC.
    pub(crate) time_zone: Option<TimeZone>,
    pub(crate) seconds: i32,
    /// M4: the condition of rows that expire by it.
    pub(crate) predicate: Option<Predicate>,
}

/// What of a row is its date.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum DateSource {
    /// A column, and its name. Of an array the earliest element counts.
    Column(Attribute, String),
    /// An expression on the row's columns.
    Expression(TrustedExpression),
}

impl Rule {
    /// The column, if it has the date of every row of the table.
    pub(crate) fn column_of_all_rows(&self) -> Option<&str> {
        match &self.key {
            DateSource::Column(_, name) if self.predicate.is_none() && !self.date.is_array => {
                Some(name)
            }
            _ => None,
        }
    }

    /// The column of whole numbers that count from 1970 by which every row of the table expires.
    pub(crate) fn epoch_of_all_rows(&self) -> Option<(i16, EpochUnit)> {
        match &self.key {
            DateSource::Expression(expression) if self.predicate.is_none() => {
                let (function, attno) = expression.call_on_integer()?;
                Some((attno, extension::epoch_unit(function)?))
            }
            _ => None,
        }
    }

    /// The numbers of the columns in this relation that the date is made of.
    pub(crate) fn columns(&self) -> Vec<i16> {
        match &self.key {
            DateSource::Column(column, _) => vec![column.attno],
            DateSource::Expression(expression) => expression.columns(),
        }
    }

    /// Whether the rule has functions that are not the extension's.
    pub(crate) fn runs_others_functions(&self) -> bool {
        self.predicate.is_some() || matches!(self.key, DateSource::Expression(_))
    }

    /// Whether the date must not be computed for rows that the predicate leaves out: the index
    /// has none of them, so the expression may raise an error.
    pub(crate) fn guards_expression(&self) -> bool {
        self.predicate.is_some() && matches!(self.key, DateSource::Expression(_))
    }
}

impl TablePolicy {
    /// Whether any row of the table can be expired.
    pub(crate) fn expires(&self) -> bool {
        self.expiring_clock().is_some() || !self.rules.is_empty()
    }

    /// Whether rows of the table must be hidden (C6). A table of Citus has none itself.
    pub(crate) fn hides(&self) -> bool {
        self.hides_anywhere() && !self.is_shell()
    }

    /// The same of the rows that a table of Citus has in its shards.
    pub(crate) fn hides_anywhere(&self) -> bool {
        self.label.hidden && self.expires()
    }

    /// Whether the rows are in shards of Citus, which follow this policy.
    pub(crate) fn is_shell(&self) -> bool {
        self.part == Some(CitusRole::Shell)
    }

    /// Whether the relation is a shard of Citus.
    pub(crate) fn is_shard(&self) -> bool {
        matches!(self.part, Some(CitusRole::Shard(_)))
    }

    /// Whether the relation, which has this policy, is a copy of a shard that Citus is still making. A row that has
    /// expired in it may have been refreshed where it is copied from, and the UPDATE, which comes later, would miss it.
    pub(crate) fn is_unfinished_copy(&self, relid: pg_sys::Oid) -> bool {
        self.is_shard() && citus::is_unfinished_copy(relid)
    }

    /// For how many seconds more rows stay on disk in a copy of a reference table, where a statement
    /// of an older distributed transaction may still find them ([`citus::REFERENCE_MARGIN`]).
    pub(crate) fn reference_margin(&self) -> i32 {
        if self.is_reference_shard {
            citus::REFERENCE_MARGIN
        } else {
            0
        }
    }

    /// The clock, if rows can expire by it: TTL is on, with a default or an override column.
    pub(crate) fn expiring_clock(&self) -> Option<Clock> {
        self.clock.filter(|clock| match self.label.default_ttl {
            None => false,
            Some(default) => default > 0 || clock.ttl.is_some(),
        })
    }

    /// Whether TTL is on by a default, -1 included, and so needs the clock's columns.
    pub(crate) fn needs_clock(&self) -> bool {
        self.label.default_ttl.is_some() && self.clock.is_some()
    }

    /// Until when a change of the policy keeps expired rows on disk (C24).
    pub(crate) fn waits_until(&self, now: i64) -> Option<i64> {
        let shortened = self.label.local.shortened?;
        shortened.waits_until(now, settings::change_delay())
    }

    /// The default, if rows that inherit it expire.
    pub(crate) fn expiring_default(&self) -> Option<i32> {
        self.label.default_ttl.filter(|&default| default > 0)
    }
}

/// A label and the relation that carries it.
pub(crate) struct Inherited {
    pub(crate) labelled_table: pg_sys::Oid,
    pub(crate) policy: Rc<Policy>,
}
