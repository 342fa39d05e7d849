//! Prints the results of a run.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::Pair;
use super::judge::Effects;
use super::oracle::{Verdict, worst};
use super::script::{self, Names};

/// Scripts of faults that are printed in full; all faults are named.
const SCRIPTS: usize = 40;

/// One case that was run.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) visitor: String,
    pub(super) carrier: String,
    pub(super) verdict: Verdict,
    pub(super) effects: Effects,
    pub(super) script: Option<String>,
    /// Why it could not be run, if so.
    pub(super) problem: Option<String>,
}

impl Case {
    pub(super) fn impossible(pair: &Pair, problem: String) -> Case {
        Case {
            name: pair.name(pair.attempts[0]),
            visitor: pair.visitor.name.clone(),
            carrier: pair.carrier.name.clone(),
            verdict: Verdict::Quiet,
            effects: Effects::new(),
            script: None,
            problem: Some(problem),
        }
    }
}

/// All cases of a run.
#[derive(Debug, Default)]
pub struct Report {
    cases: Vec<Case>,
}

impl Report {
    pub(super) fn add(&mut self, cases: Vec<Case>) {
        self.cases.extend(cases);
    }

    fn count(&self, verdict: Verdict) -> usize {
        let of = |case: &&Case| case.problem.is_none() && case.verdict == verdict;
        self.cases.iter().filter(of).count()
    }

    /// How many cases the extension is at fault in.
    pub fn faults(&self) -> usize {
        self.count(Verdict::Fault)
    }

    /// How many cases ended differently when repeated.
    pub fn unsteady(&self) -> usize {
        self.count(Verdict::Unsteady)
    }

    /// How many cases were run.
    pub fn run(&self) -> usize {
        self.cases
            .iter()
            .filter(|case| case.problem.is_none())
            .count()
    }

    /// In how many cases the attacker's code ran.
    pub fn with_code(&self) -> usize {
        self.run() - self.count(Verdict::NoCode)
    }

    /// The tables of a case that could not be made, with the server's message.
    pub fn problems(&self) -> Vec<String> {
        let of = |case: &Case| {
            case.problem
                .as_ref()
                .map(|text| format!("{}: {text}", case.name))
        };
        self.cases.iter().filter_map(of).collect()
    }

    /// The summary line.
    pub fn line(&self) -> String {
        format!(
            "{} cases: in {} no code ran, {} harmless, {} allowed by PostgreSQL too, \
             {} allowed to the table's owner by another trigger, {} unsteady, {} faults",
            self.run(),
            self.count(Verdict::NoCode),
            self.count(Verdict::Quiet),
            self.count(Verdict::Plain),
            self.count(Verdict::Equivalent),
            self.unsteady(),
            self.faults()
        )
    }

    /// What PostgreSQL allows as well: visitor and effect, with the carriers.
    pub fn allowed(&self) -> String {
        self.list(&[Verdict::Plain, Verdict::Equivalent])
    }

    fn list(&self, verdicts: &[Verdict]) -> String {
        let mut lines: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        for case in self
            .cases
            .iter()
            .filter(|case| verdicts.contains(&case.verdict))
        {
            for effect in &case.effects {
                let carriers = lines
                    .entry((&case.visitor, case.verdict, effect))
                    .or_default();
                carriers.insert(&case.carrier);
            }
        }
        let line = |((visitor, verdict, effect), carriers): (_, BTreeSet<&str>)| {
            let how = if verdict == Verdict::Equivalent {
                " (by another trigger)"
            } else {
                ""
            };
            let carriers = Vec::from_iter(carriers).join(" ");
            format!("  {visitor}: {effect}{how}: {carriers}\n")
        };
        lines.into_iter().map(line).collect()
    }

    /// The faults: how many of which kind, their names, and scripts.
    pub fn describe_faults(&self) -> String {
        let faults = || {
            self.cases
                .iter()
                .filter(|case| case.verdict == Verdict::Fault)
        };
        let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
        let mut by_visitor: BTreeMap<_, usize> = BTreeMap::new();
        for case in faults() {
            *kinds.entry(worst(&case.effects)).or_default() += 1;
            *by_visitor
                .entry((&case.visitor, worst(&case.effects)))
                .or_default() += 1;
        }
        let mut text = "faults by their worst effect:\n".to_owned();
        for (kind, count) in kinds {
            text += &format!("{count:6} {kind}\n");
        }
        text += "by visitor:\n";
        for ((visitor, kind), count) in by_visitor {
            text += &format!("{count:6} {visitor}: {kind}\n");
        }
        text += "each (run one again with TTL_CASE=name):\n";
        for case in faults() {
            let effects = Vec::from_iter(case.effects.iter().map(String::as_str)).join("; ");
            text += &format!("  {}: {effects}\n", case.name);
        }
        // First one of each kind, then others.
        let mut seen = BTreeSet::new();
        let (first, others): (Vec<_>, Vec<_>) =
            faults().partition(|case| seen.insert((&case.visitor, worst(&case.effects))));
        let preface = script::ROLES.to_owned() + "\n" + &script::preface();
        let preface = Names::to_print().put_into(&preface);
        text += &format!(
            "before each script, once, in a database `test` with the extension:\n{preface}\n"
        );
        for case in first.into_iter().chain(others).take(SCRIPTS) {
            let script = case.script.as_deref().unwrap_or_default();
            text += &format!("-- {}: {:?}\n{script}\n", case.name, case.effects);
        }
        text
    }
}
