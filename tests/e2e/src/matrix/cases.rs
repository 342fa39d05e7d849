//! All combinations, the excluded ones with the reason, and a sample.

use std::collections::BTreeMap;

use super::attempts::{ATTEMPTS, Attempt, PROBE, Trace};
use super::carriers::{self, Carrier};
use super::visitors::{self, Kind, Visitor, Who};
use crate::diff::Random;

/// What is run.
#[derive(Debug, Clone)]
pub enum Selection {
    /// All of it.
    Whole,
    /// So many cases, chosen by a seed.
    Sample { seed: u64, cases: usize },
    /// Those with this in their name (`visitor/carrier/attempt`).
    Named(String),
}

/// A carrier and a visitor, with the attempts to be made there. The first is always the probe.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) carrier: Carrier,
    pub(super) visitor: Visitor,
    pub(super) attempts: Vec<usize>,
}

impl Pair {
    /// How a case is called.
    pub(super) fn name(&self, attempt: usize) -> String {
        format!(
            "{}/{}/{}",
            self.visitor.name, self.carrier.name, ATTEMPTS[attempt].name
        )
    }
}

/// What there is to run.
#[derive(Debug)]
pub struct Matrix {
    pub(super) pairs: Vec<Pair>,
    /// How many cases the whole has.
    pub whole: usize,
    /// How many of them are in this selection.
    pub chosen: usize,
    /// How many combinations cannot be, by the reason.
    pub left_out: BTreeMap<&'static str, usize>,
}

/// The cases of a selection, in an order that depends on nothing else.
pub fn matrix(selection: &Selection) -> Matrix {
    let mut left_out = BTreeMap::new();
    let mut pairs = Vec::new();
    for visitor in visitors::all() {
        for carrier in carriers::all() {
            if let Some(reason) = impossible(&carrier, &visitor) {
                *left_out.entry(reason).or_default() += ATTEMPTS.len();
                continue;
            }
            let mut attempts = Vec::new();
            for (number, attempt) in ATTEMPTS.iter().enumerate() {
                match unseen(attempt, &visitor) {
                    Some(reason) => *left_out.entry(reason).or_default() += 1,
                    None => attempts.push(number),
                }
            }
            pairs.push(Pair {
                carrier: carrier.clone(),
                visitor: visitor.clone(),
                attempts,
            });
        }
    }
    let whole = pairs.iter().map(|pair| pair.attempts.len()).sum();
    choose(&mut pairs, selection, whole);
    Matrix {
        chosen: pairs.iter().map(|pair| pair.attempts.len()).sum(),
        pairs,
        whole,
        left_out,
    }
}

fn choose(pairs: &mut Vec<Pair>, selection: &Selection, whole: usize) {
    match selection {
        Selection::Whole => {}
        Selection::Named(part) => {
            for pair in pairs.iter_mut() {
                let all = pair.attempts.clone();
                let named = |attempt: &usize| pair.name(*attempt).contains(part);
                pair.attempts = all.into_iter().filter(named).collect();
            }
        }
        Selection::Sample { seed, cases } => {
            let mut random = Random::new(*seed);
            let share = *cases as f64 / whole as f64;
            for pair in pairs.iter_mut() {
                pair.attempts.retain(|_| random.chance(share));
            }
        }
    }
    pairs.retain(|pair| !pair.attempts.is_empty());
    // A case that takes long is not to be alone at the end.
    pairs.sort_by_key(|pair| pair.visitor.who != Who::Worker);
    debug_assert_eq!(PROBE, 0);
}

/// Why these two are not combined.
fn impossible(carrier: &Carrier, visitor: &Visitor) -> Option<&'static str> {
    if carrier.name == "subtype_diff" {
        // Neither cancelled nor caught: an error that a function catches there releases the lock,
        // and an assertion of PostgreSQL's own fails.
        return Some("GiST calls it with a page locked, with or without the extension");
    }
    let is = |part: &str| visitor.name.starts_with(part);
    if visitor.who == Who::Victim && visitor.takes_ownership() && !carrier.stranger {
        return Some("only the owner or a superuser can do it");
    }
    if carrier.name.starts_with("rule") && is("merge") {
        return Some("no MERGE on tables with rules");
    }
    if matches!(carrier.name.as_str(), "rule_insert" | "rule_update") && is("upsert") {
        return Some("no ON CONFLICT on tables with such rules");
    }
    if carrier.name.starts_with("policy") && visitor.name == "copy_by_user" {
        return Some("no COPY FROM on tables with row-level security");
    }
    if carrier.name == "exclusion" && visitor.kind == Kind::Partition {
        return Some("no exclusion constraint on partitioned tables");
    }
    if carrier.name == "cast_default" && visitor.kind == Kind::Partition {
        return Some("no column is added to a partition alone");
    }
    if carrier.name == "archive_rule" && visitor.kind == Kind::Build {
        return Some("no table with rules becomes an archive");
    }
    if carrier.archive.is_some() {
        if visitor.kind == Kind::Partition {
            return Some("no whole partition is dropped where its rows go to an archive");
        }
        if visitor.archives || is("archive_to") || is("purge_archived") {
            return Some("the visitor comes with an archive");
        }
        if is("enable_documents") || visitor.kind == Kind::Control || visitor.kind == Kind::Look {
            return Some("the archive has no part in it");
        }
    }
    if visitor.who == Who::Apply && carrier.name.starts_with("policy") {
        return Some("no apply on tables with row-level security, but by superusers before 16");
    }
    if carrier.key.is_some() {
        let unique = [
            "upsert",
            "create_unique_index",
            "add_unique",
            "update_key",
            "analyze",
            "refer",
        ];
        if visitor.kind == Kind::Partition {
            return Some("one table has one partition key");
        }
        if unique.iter().any(|name| is(name)) {
            return Some("no unique constraint beside a partition key that is an expression");
        }
    }
    None
}

/// Why an attempt cannot be judged there.
fn unseen(attempt: &Attempt, visitor: &Visitor) -> Option<&'static str> {
    let (trace, session) = (
        attempt.trace,
        matches!(visitor.who, Who::Super | Who::Victim),
    );
    let refers = ["refer_expired", "refer_update"];
    if attempt.name.ends_with("row_security")
        && refers.iter().any(|it| visitor.name.starts_with(it))
    {
        // PostgreSQL looks the row up as the owner, who sees expired rows then: the statement does not fail, and its settings stay.
        return Some("without the extension there is no row to refer to");
    }
    if visitor.who == Who::Apply && trace == Trace::Time {
        return Some("an apply worker has no time limit, with or without the extension");
    }
    match trace {
        Trace::Process if visitor.who != Who::Worker => {
            Some("a session is its user's, as in PostgreSQL")
        }
        Trace::Session if !session && visitor.who != Who::Worker => {
            Some("nobody can look into that session")
        }
        Trace::Transaction if !session => Some("it has no transaction of the visitor's"),
        Trace::Database | Trace::Session | Trace::Process | Trace::Transaction | Trace::Time => {
            None
        }
    }
}
