//! The expiry keys of a table: what its rows expire by, each with the index that leads to them.

use crate::pg::catalog::{quote_identifier, quote_literal};
use crate::policy::{self, day_of_instant};
use crate::store::dates::DateKind;
use crate::store::expiry_index;
use crate::store::time_zone::TimeZone;
use crate::store::{Clock, Rule, TablePolicy, rule_applies, rule_key};
use pgrx::pg_sys;

/// Number of expiry keys for which a table's progress is kept; the rows of further ones are found by reading the table.
pub(crate) const EXPIRY_KEYS: usize = 16;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Rows that expire in one way: those that inherit the default, those that override it, or those
/// of one TTL index.
#[derive(Debug, Clone)]
pub(crate) struct ExpiryKey {
    /// Its number in the table's progress (`worker/shared/progress.rs`).
    pub(crate) number: usize,
    /// The expression that the index is ordered by,
    expression: String,
    /// and what its values mean.
    scale: Scale,
    /// The time zone in which its values are local time (M13); `None` is UTC.
    time_zone: Option<TimeZone>,
    /// The instant that the row expires by, a timestamptz.
    pub(crate) instant: String,
    /// The condition that the rows have in common.
    pub(crate) predicate: String,
    /// A row expires this many microseconds after that instant.
    pub(crate) offset: i64,
    /// A B-tree leads to the rows, in order; else the table is read.
    pub(crate) is_ordered: bool,
    /// ORDER BY, such that an ordered index needs no sorting.
    pub(crate) order: String,
}

/// How far a search by an expiry key has come.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexPosition {
    /// Rows of earlier instants are passed,
    pub(crate) key: i64,
    /// and of those of this instant, all up to this TID; (0, 0): none.
    pub(crate) block: u32,
    pub(crate) offset: u16,
}

impl IndexPosition {
    pub(crate) const BEGINNING: Self = Self::at(i64::MIN);

    /// Before all rows of this instant.
    pub(crate) const fn at(key: i64) -> Self {
        Self {
            key,
            block: 0,
            offset: 0,
        }
    }

    /// After this row.
    pub(crate) const fn after(key: i64, (block, offset): (u32, u16)) -> Self {
        Self { key, block, offset }
    }
}

/// Which rows expire by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpiryKind {
    Inheriting,
    Overriding,
    /// Those of a TTL index.
    OfRule,
}

/// How an index orders instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// By dates, in local time if the key has a time zone.
    Date(DateKind),
    /// By `ttl.expiry_key`, where rows inherit the default.
    Inheriting,
    /// By `ttl.expiry_key`, where rows override it.
    Overriding,
}

/// The expiry keys of a relation that the caller has locked.
pub(crate) fn of(relid: pg_sys::Oid, policy: &TablePolicy) -> Vec<ExpiryKey> {
    let mut expiry_keys = policy
        .expiring_clock()
        .map_or(vec![], |clock| of_clock(relid, policy, &clock));
    for (at, rule) in policy.rules.iter().enumerate() {
        expiry_keys.push(of_rule(relid, rule, at + 2));
    }
    expiry_keys
}

fn of_clock(relid: pg_sys::Oid, policy: &TablePolicy, clock: &Clock) -> Vec<ExpiryKey> {
    let label = &policy.label;
    let Some(ts) = label.ts_column.as_deref().map(quote_identifier) else {
        return vec![];
    };
    let serving = expiry_index::find(relid, &clock.ts, clock.ttl.as_ref());
    let ttl = label.ttl_column.as_deref().filter(|_| clock.ttl.is_some());
    let ttl = ttl.map(quote_identifier);
    let mut expiry_keys = Vec::new();
    if let Some(default) = policy.expiring_default() {
        let expiry_key = ExpiryKey::by_instant(0, ts.clone(), "true".to_owned(), default);
        let expiry_key = match &ttl {
            None => expiry_key,
            Some(ttl) if serving.is_empty() => ExpiryKey {
                predicate: format!("{ttl} IS NULL"),
                ..expiry_key
            },
            Some(ttl) => ExpiryKey {
                expression: format!("ttl.expiry_key({ts}, {ttl})"),
                scale: Scale::Inheriting,
                predicate: format!("ttl.expiry_key({ts}, {ttl}) OPERATOR(pg_catalog.>=) 0"),
                ..expiry_key
            },
        };
        expiry_keys.push(expiry_key.served_by(&serving));
    }
    if let Some(ttl) = ttl {
        let instant = format!("ttl.expires_at({ts}, {ttl}, NULL)");
        let overrides = format!("{ttl} OPERATOR(pg_catalog.>) 0");
        let expiry_key = ExpiryKey::by_instant(1, instant, overrides, 0);
        let expiry_key = match serving.is_empty() {
            true => expiry_key,
            false => ExpiryKey {
                expression: format!("ttl.expiry_key({ts}, {ttl})"),
                scale: Scale::Overriding,
                predicate: format!("ttl.expiry_key({ts}, {ttl}) OPERATOR(pg_catalog.<) 0"),
                ..expiry_key
            },
        };
        expiry_keys.push(expiry_key.served_by(&serving));
    }
    expiry_keys
}

fn of_rule(relid: pg_sys::Oid, rule: &Rule, number: usize) -> ExpiryKey {
    let (key, kind) = rule_key(rule);
    let serving = match number < EXPIRY_KEYS {
        true => expiry_index::find_by_date(relid, rule),
        false => vec![],
    };
    let finite = format!(
        "{key} OPERATOR(pg_catalog.>) '-infinity'::pg_catalog.{}",
        type_name(kind)
    );
    let predicate = match rule.predicate {
        Some(_) => format!("{} AND {finite}", rule_applies(&rule.index)),
        None => finite,
    };
    let instant = match (&rule.time_zone, kind) {
        (Some(zone), _) => in_time_zone(&key, &zone.name),
        (None, DateKind::Timestamptz) => key.clone(),
        (None, DateKind::Timestamp) => format!("pg_catalog.timezone('UTC', {key})"),
        (None, DateKind::Date) => {
            format!("pg_catalog.timezone('UTC', {key}::pg_catalog.timestamp)")
        }
    };
    ExpiryKey {
        expression: key,
        time_zone: rule.time_zone.clone(),
        scale: Scale::Date(kind),
        ..ExpiryKey::by_instant(number, instant, predicate, rule.seconds)
    }
    .served_by(&serving)
}

/// Orders by the key, NULLs where one of the indexes has them: no row that is looked for has
/// one, but PostgreSQL would sort for it.
fn order(key: &str, serving: &[pg_sys::Oid]) -> String {
    let nulls_first = !serving.is_empty()
        && !serving
            .iter()
            .any(|&index| expiry_index::has_nulls_last(index));
    format!("{key}{}", if nulls_first { " NULLS FIRST" } else { "" })
}

impl ExpiryKey {
    /// Of rows that expire a number of seconds after this instant, without an index.
    fn by_instant(number: usize, instant: String, predicate: String, seconds: i32) -> Self {
        Self {
            number,
            expression: instant.clone(),
            scale: Scale::Date(DateKind::Timestamptz),
            time_zone: None,
            instant,
            predicate,
            offset: i64::from(seconds) * MICROS_PER_SECOND,
            is_ordered: false,
            order: String::new(),
        }
    }

    /// With the access that these indexes give.
    fn served_by(self, serving: &[pg_sys::Oid]) -> Self {
        Self {
            is_ordered: !serving.is_empty(),
            order: order(&self.expression, serving),
            ..self
        }
    }

    /// Which rows expire by it.
    pub(super) fn kind(&self) -> ExpiryKind {
        match self.number {
            0 => ExpiryKind::Inheriting,
            1 => ExpiryKind::Overriding,
            _ => ExpiryKind::OfRule,
        }
    }

    /// "The key is at or before this instant." In a time zone, keys of a few later instants, too.
    pub(crate) fn at_or_before(&self, instant: i64) -> String {
        let latest = match &self.time_zone {
            Some(zone) => policy::latest_local(instant, zone.clock()),
            None => instant,
        };
        self.compare("<=", &literal(self.scale, latest))
    }

    /// "The key is after this instant."
    pub(crate) fn after(&self, instant: i64) -> String {
        let Some(zone) = &self.time_zone else {
            return self.compare(">", &literal(self.scale, instant));
        };
        let earliest = policy::earliest_local(instant.saturating_add(1), zone.clock());
        let instant = literal(Scale::Date(DateKind::Timestamptz), instant);
        format!(
            "{} AND {} OPERATOR(pg_catalog.>) {instant}",
            self.compare(">", &literal(self.scale, earliest.saturating_sub(1))),
            self.instant
        )
    }

    /// "The key is at or after this instant." In a time zone, keys of a few earlier instants, too.
    pub(crate) fn at_or_after(&self, instant: i64) -> String {
        let instant = match &self.time_zone {
            Some(zone) => policy::earliest_local(instant, zone.clock()),
            None => instant,
        };
        let operator = match self.scale {
            // A day that began before the instant is before it, so that only later days are at
            // or after it.
            Scale::Date(DateKind::Date)
                if policy::instant_of_day(day_of_instant(instant)) < instant =>
            {
                ">"
            }
            _ => ">=",
        };
        self.compare(operator, &literal(self.scale, instant))
    }

    /// "The row comes after this position, and", with what lets the index begin there. In the index, rows of one
    /// instant are in the order of their TIDs.
    pub(super) fn from(&self, from: IndexPosition) -> String {
        if from == IndexPosition::BEGINNING {
            return String::new();
        }
        let passed = match (from.block, from.offset) {
            (0, 0) => String::new(),
            (block, offset) => format!(
                " AND NOT ({} OPERATOR(pg_catalog.<=) {} AND ctid OPERATOR(pg_catalog.<=) '({block},{offset})'::pg_catalog.tid)",
                self.instant,
                literal(Scale::Date(DateKind::Timestamptz), from.key)
            ),
        };
        format!(" AND {}{passed}", self.at_or_after(from.key))
    }

    /// "The key is finite", and not so late that nothing can be added to it.
    pub(crate) fn before_the_end(&self) -> String {
        let end = match self.scale {
            Scale::Date(kind) => format!("'290000-01-01'::pg_catalog.{}", type_name(kind)),
            scale => literal(scale, i64::MAX),
        };
        self.compare("<", &end)
    }

    /// "The key is past", by `ttl.now()`, for a session's own statement.
    pub(crate) fn past(&self) -> String {
        let cutoff = format!(
            "ttl.now() OPERATOR(pg_catalog.-) '{} microseconds'::pg_catalog.interval",
            self.offset
        );
        let local = match &self.time_zone {
            Some(zone) => format!("ttl.local_time({cutoff}, {})", quote_literal(&zone.name)),
            None => format!("pg_catalog.timezone('UTC', {cutoff})"),
        };
        let cutoff = match self.scale {
            Scale::Date(DateKind::Timestamptz) if self.time_zone.is_none() => {
                format!("({cutoff})")
            }
            // The earliest of local times, as `ttl.earliest` reads them.
            Scale::Date(DateKind::Timestamptz) => format!("pg_catalog.timezone('UTC', {local})"),
            Scale::Date(DateKind::Timestamp) => local,
            Scale::Date(DateKind::Date) => format!("{local}::pg_catalog.date"),
            Scale::Inheriting => format!("ttl.expiry_key({cutoff}, NULL)"),
            // What a row has that was written a second ago, to live for one.
            Scale::Overriding => {
                let second = "'1 second'::pg_catalog.interval";
                format!("ttl.expiry_key({cutoff} OPERATOR(pg_catalog.-) {second}, 1)")
            }
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

/// The instant of a key in local time.
fn in_time_zone(key: &str, zone: &str) -> String {
    format!("ttl.in_time_zone({key}, {})", quote_literal(zone))
}

const fn type_name(kind: DateKind) -> &'static str {
    match kind {
        DateKind::Timestamptz => "timestamptz",
        DateKind::Timestamp => "timestamp",
        DateKind::Date => "date",
    }
}

/// An instant as a literal, exact under any DateStyle and time zone; for type date, its day.
fn literal(scale: Scale, micros: i64) -> String {
    let kind = match scale {
        Scale::Date(kind) => kind,
        Scale::Inheriting => return int8(policy::inheriting_key(micros)),
        Scale::Overriding => return int8(policy::overriding_key(micros)),
    };
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

fn int8(value: i64) -> String {
    format!("'{value}'::pg_catalog.int8")
}
