//! The expiry keys of a table: what its rows expire by, each with the index that leads to them.

use super::job::Access;
use crate::pg::catalog::{self, quote_identifier};
use crate::policy::{Policy, day_of_instant};
use crate::store::dates::DateKind;
use crate::store::expiry_index::{self, ExpectedIndex};
use crate::store::{Clock, Rule, TablePolicy, rule_applies};
use pgrx::pg_sys;

/// For so many expiry keys a table's progress is kept; further ones are searched from the
/// beginning.
pub(crate) const EXPIRY_KEYS: usize = 16;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Rows that expire in one way: those that inherit the default, those that override it, or those
/// of one TTL index.
#[derive(Debug, Clone)]
pub(crate) struct ExpiryKey {
    /// Its number in the table's progress (`worker/progress.rs`).
    pub(crate) number: usize,
    /// The expression that the index is ordered by,
    pub(crate) expression: String,
    /// and its type.
    kind: DateKind,
    /// The condition that the rows have in common.
    pub(crate) predicate: String,
    /// A row expires this many microseconds after the expression's value.
    pub(crate) offset: i64,
    pub(crate) access: Access,
    /// ORDER BY, such that an ordered index needs no sorting.
    pub(crate) order: String,
}

/// The expiry keys of a relation that the caller has locked.
pub(crate) fn of(relid: pg_sys::Oid, label: &Policy, policy: &TablePolicy) -> Vec<ExpiryKey> {
    let mut expiry_keys = policy
        .expiring_clock()
        .map_or(vec![], |clock| of_clock(relid, label, policy, &clock));
    for (at, rule) in policy.rules.iter().enumerate() {
        expiry_keys.push(of_rule(relid, rule, at + 2));
    }
    expiry_keys
}

fn of_clock(
    relid: pg_sys::Oid,
    label: &Policy,
    policy: &TablePolicy,
    clock: &Clock,
) -> Vec<ExpiryKey> {
    let Some(ts) = label.ts_column.as_deref().map(quote_identifier) else {
        return vec![];
    };
    let find = |expected| expiry_index::find(relid, expected, &clock.ts, clock.ttl.as_ref());
    let ttl = label.ttl_column.as_deref().map(quote_identifier);
    let mut expiry_keys = Vec::new();
    if let Some(default) = policy.expiring_default() {
        let (predicate, expected) = match &ttl {
            Some(ttl) => (
                format!("{ttl} IS NULL"),
                ExpectedIndex::InheritingByTimestamp,
            ),
            None => ("true".to_owned(), ExpectedIndex::AllByTimestamp),
        };
        let serving = find(expected);
        expiry_keys.push(ExpiryKey {
            number: 0,
            order: order(&ts, &serving),
            expression: ts.clone(),
            kind: DateKind::Timestamptz,
            predicate,
            offset: i64::from(default) * MICROS_PER_SECOND,
            access: access(&serving),
        });
    }
    if let Some(ttl) = ttl {
        let serving = find(ExpectedIndex::OverridingByExpiry);
        let key = format!("ttl.expires_at({ts}, {ttl}, NULL)");
        expiry_keys.push(ExpiryKey {
            number: 1,
            order: order(&key, &serving),
            expression: key,
            kind: DateKind::Timestamptz,
            predicate: format!("{ttl} OPERATOR(pg_catalog.>) 0"),
            offset: 0,
            access: access(&serving),
        });
    }
    expiry_keys
}

fn of_rule(relid: pg_sys::Oid, rule: &Rule, number: usize) -> ExpiryKey {
    let column = quote_identifier(&rule.column_name);
    let (key, kind) = if rule.date.is_array {
        (format!("ttl.earliest({column})"), DateKind::Timestamptz)
    } else {
        (column, rule.date.kind)
    };
    let predicate = rule.predicate.as_ref();
    let serving = expiry_index::find_by_date(relid, &rule.column, rule.date, predicate);
    let access = match access(&serving) {
        // For so many expiry keys no progress is kept.
        Access::Ordered if number >= EXPIRY_KEYS => Access::Unordered,
        access => access,
    };
    let finite = format!(
        "{key} OPERATOR(pg_catalog.>) '-infinity'::pg_catalog.{}",
        type_name(kind)
    );
    let predicate = match rule.predicate {
        Some(_) => format!("{} AND {finite}", rule_applies(&rule.index)),
        None => finite,
    };
    ExpiryKey {
        number,
        order: order(&key, &serving),
        expression: key,
        kind,
        predicate,
        offset: i64::from(rule.seconds) * MICROS_PER_SECOND,
        access,
    }
}

fn access(serving: &[pg_sys::Oid]) -> Access {
    if serving.iter().any(|&index| catalog::is_btree(index)) {
        Access::Ordered
    } else if serving.is_empty() {
        Access::Scan
    } else {
        Access::Unordered
    }
}

/// Orders by the key, NULLs where one of the indexes has them: no row that is looked for has
/// one, but PostgreSQL would sort for it.
fn order(key: &str, serving: &[pg_sys::Oid]) -> String {
    let btrees = || serving.iter().filter(|&&index| catalog::is_btree(index));
    let nulls_first =
        btrees().count() > 0 && !btrees().any(|&index| expiry_index::has_nulls_last(index));
    format!("{key}{}", if nulls_first { " NULLS FIRST" } else { "" })
}

impl ExpiryKey {
    /// The key as a timestamptz.
    pub(crate) fn instant(&self) -> String {
        let key = &self.expression;
        match self.kind {
            DateKind::Timestamptz => key.clone(),
            DateKind::Timestamp => format!("pg_catalog.timezone('UTC', {key})"),
            DateKind::Date => format!("pg_catalog.timezone('UTC', {key}::pg_catalog.timestamp)"),
        }
    }

    /// "The key is at or before this instant."
    pub(crate) fn at_or_before(&self, instant: i64) -> String {
        self.compare("<=", &literal(self.kind, instant))
    }

    /// "The key is after this instant."
    pub(crate) fn after(&self, instant: i64) -> String {
        self.compare(">", &literal(self.kind, instant))
    }

    /// "The key is at or after this instant."
    pub(crate) fn at_or_after(&self, instant: i64) -> String {
        let operator = match self.kind {
            // A day that began before the instant is before it, so that only later days are at
            // or after it.
            DateKind::Date if crate::policy::instant_of_day(day_of_instant(instant)) < instant => {
                ">"
            }
            _ => ">=",
        };
        self.compare(operator, &literal(self.kind, instant))
    }

    /// "The key is finite", and not so late that nothing can be added to it.
    pub(crate) fn before_the_end(&self) -> String {
        let end = format!("'290000-01-01'::pg_catalog.{}", type_name(self.kind));
        self.compare("<", &end)
    }

    /// "The key is past", by `ttl.now()`, for a session's own statement.
    pub(crate) fn past(&self) -> String {
        let cutoff = format!(
            "ttl.now() OPERATOR(pg_catalog.-) '{} microseconds'::pg_catalog.interval",
            self.offset
        );
        let cutoff = match self.kind {
            DateKind::Timestamptz => format!("({cutoff})"),
            DateKind::Timestamp => format!("pg_catalog.timezone('UTC', {cutoff})"),
            DateKind::Date => format!("pg_catalog.timezone('UTC', {cutoff})::pg_catalog.date"),
        };
        format!("({} AND {})", self.predicate, self.compare("<=", &cutoff))
    }

    fn compare(&self, operator: &str, value: &str) -> String {
        format!(
            "{} OPERATOR(pg_catalog.{operator}) {value}",
            self.expression
        )
    }
}

const fn type_name(kind: DateKind) -> &'static str {
    match kind {
        DateKind::Timestamptz => "timestamptz",
        DateKind::Timestamp => "timestamp",
        DateKind::Date => "date",
    }
}

/// An instant as a literal, exact under any DateStyle and time zone; for type date, its day.
fn literal(kind: DateKind, micros: i64) -> String {
    let type_name = type_name(kind);
    // Beyond the type's range nothing is expired.
    const FIRST: i64 = -211_813_488_000_000_000;
    if micros <= FIRST {
        return format!("'-infinity'::pg_catalog.{type_name}");
    }
    let epoch = match kind {
        DateKind::Timestamptz => "'2000-01-01 00:00:00+00'",
        DateKind::Timestamp | DateKind::Date => "'2000-01-01'",
    };
    // An interval's microseconds have 64 bits, too.
    let since = match kind {
        DateKind::Date => day_of_instant(micros).to_string(),
        _ => format!("'{micros} microseconds'::pg_catalog.interval"),
    };
    format!("({epoch}::pg_catalog.{type_name} OPERATOR(pg_catalog.+) {since})")
}
