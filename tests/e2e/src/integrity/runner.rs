//! Runs sequences, and checks what they leave.

use std::collections::BTreeMap;

use super::answer::Answer;
use super::check::{CHECK, Disk};
use super::generator::{Generator, Step, Way};
use super::known::{self, Known};
use super::schema::Schema;
use super::shrink;
use super::sides::{STAMP, Side};
use super::visible;
use crate::diff::Random;
use crate::{Database, Server};

/// What to run, and how much.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Decides everything that is random.
    pub seed: u64,
    /// How many sequences.
    pub sequences: u64,
    /// The share of wild ones; the others are compared.
    pub wild: f64,
    /// Background workers delete meanwhile.
    pub sweeping: bool,
    /// Compare two schemas without TTL, to test the comparison itself.
    pub control: bool,
}

/// How it went.
#[derive(Debug, Default, Clone)]
pub struct Summary {
    /// Sequences that were run.
    pub sequences: u64,
    /// Of these: those that left expired rows on disk.
    pub with_expired: u64,
    /// Of these: those that ended early at a known difference.
    pub refused: u64,
    /// Statements that were run with TTL.
    pub statements: u64,
    /// Of these: those that failed, by SQLSTATE.
    pub failed: BTreeMap<String, u64>,
    /// Descriptions of what is wrong; the run stops after a few.
    pub faults: Vec<String>,
    /// Faults that did not repeat in a new schema.
    pub unsteady: Vec<String>,
}

/// Sequences that share a schema.
const BATCH: u64 = 20;
/// Faults after which the run stops.
const ENOUGH: usize = 3;

/// How the two answers to a statement compare.
enum Verdict {
    Equal,
    Different(String),
    /// A known difference; the rest cannot be compared.
    Over,
}

/// The sessions of a run.
pub(super) struct Bench<'a> {
    database: &'a Database<'a>,
    pub(super) tested: Side,
    pub(super) plain: Side,
    pub(super) disk: Disk,
    options: Options,
    pub(super) summary: Summary,
}

/// Run random sequences in a database that is made for it.
pub fn run(server: &Server, options: Options) -> Summary {
    let database = server.database("integrity");
    let mut session = database.connect();
    session.run(STAMP);
    session.run(CHECK);
    let mut bench = Bench {
        database: &database,
        tested: Side::new(&database, "a", options.control),
        plain: Side::new(&database, "b", true),
        disk: Disk::new(&database),
        options,
        summary: Summary::default(),
    };
    let mut random = Random::new(options.seed);
    let mut schema = Schema::random(&mut random);
    for number in 0..options.sequences {
        if number % BATCH == 0 {
            schema = Schema::random(&mut random);
            bench.build(&schema);
        }
        let wild = random.chance(options.wild);
        let steps = Generator::new(&mut random, &schema, wild).sequence();
        bench.summary.sequences += 1;
        if let Some(fault) = bench.sequence(&schema, &steps, wild) {
            let known = bench.summary.clone();
            let (text, steady) = shrink::report(&mut bench, &schema, steps, wild, &fault);
            bench.summary = known;
            let text = format!("sequence {number}, {text}");
            if steady {
                bench.summary.faults.push(text);
            } else {
                bench.summary.unsteady.push(text);
            }
            if bench.summary.faults.len() >= ENOUGH {
                break;
            }
            bench.build(&schema);
        }
    }
    bench.summary
}

impl Bench<'_> {
    /// Creates both schemas again.
    pub(super) fn build(&mut self, schema: &Schema) {
        // What a session remembers of the tables of all schemas so far makes it slow,
        // on servers with assertions.
        self.tested = Side::new(self.database, "a", self.options.control);
        self.plain = Side::new(self.database, "b", true);
        self.disk = Disk::new(self.database);
        self.tested.build(schema);
        self.plain.build(schema);
    }

    /// Run a sequence over empty tables, and leave them empty if nothing is wrong.
    pub(super) fn sequence(
        &mut self,
        schema: &Schema,
        steps: &[Step],
        wild: bool,
    ) -> Option<String> {
        for step in steps {
            let alone = !self.tested.open;
            let answer = self.tested.step(step);
            self.count(&answer);
            let complaint = if wild {
                visible::complaint(&mut self.tested, schema, step, &answer, alone)
            } else {
                match self.compare(schema, step, &answer) {
                    Verdict::Equal => None,
                    Verdict::Different(complaint) => Some(complaint),
                    Verdict::Over => {
                        self.summary.refused += 1;
                        return self.break_off(schema);
                    }
                }
            };
            if let Some(complaint) = complaint {
                return Some(format!("{}\n-> {}\n{complaint}", step.sql, answer.text()));
            }
        }
        // A shorter script may lack its COMMIT.
        self.tested.step(&Step::new(Way::Simple, "COMMIT"));
        self.plain.step(&Step::new(Way::Simple, "COMMIT"));
        let fault = self.left(schema, wild);
        if fault.is_none() {
            self.tested.clear(schema, wild);
            self.plain.clear(schema, false);
        }
        fault
    }

    fn count(&mut self, answer: &Answer) {
        self.summary.statements += u64::from(*answer != Answer::LeftOut);
        if let Answer::Failed(failure) = answer {
            *self.summary.failed.entry(failure.code.clone()).or_default() += 1;
        }
    }

    fn compare(&mut self, schema: &Schema, step: &Step, answer: &Answer) -> Verdict {
        if step.way == Way::Policy {
            return match answer {
                Answer::Failed(_) => Verdict::Different("a change of policy failed".to_owned()),
                _ => Verdict::Equal,
            };
        }
        let expected = self.plain.step(step);
        if *answer == expected {
            return Verdict::Equal;
        }
        match known::difference(&mut self.plain, schema, step, answer, &expected) {
            Some(Known::BothFailed) => Verdict::Equal,
            Some(Known::Refused) => Verdict::Over,
            None => Verdict::Different(format!(
                "-> {} with the expired rows deleted",
                expected.text()
            )),
        }
    }

    /// End a sequence whose rest cannot be compared.
    fn break_off(&mut self, schema: &Schema) -> Option<String> {
        self.tested.abandon();
        self.plain.abandon();
        let fault = self.disk.complaint();
        if fault.is_none() {
            self.tested.clear(schema, false);
            self.plain.clear(schema, false);
        }
        fault
    }

    /// What is wrong when the last statement is done.
    fn left(&mut self, schema: &Schema, wild: bool) -> Option<String> {
        let seen = self.tested.contents(schema);
        if !wild {
            let expected = self.plain.contents(schema);
            if seen != expected {
                return Some(format!(
                    "left: {seen:?}\nwith the expired rows deleted: {expected:?}"
                ));
            }
        }
        if let Some(complaint) = self.disk.complaint() {
            return Some(complaint);
        }
        let expired = self.disk.contents(schema).len() > seen.len();
        self.summary.with_expired += u64::from(expired);
        // Then all expired rows are deleted, by the worker or by `ttl.purge`, which waits for
        // nothing.
        let kept = schema.expiring().any(|table| table.kept);
        let by_worker = self.options.sweeping && !wild && !kept;
        if by_worker && self.summary.sequences.is_multiple_of(25) {
            self.disk.wait_for(schema, seen.len());
        } else if let Some(complaint) = self.purge(schema, wild) {
            return Some(complaint);
        }
        if !wild && self.disk.contents(schema) != seen {
            return Some(format!(
                "not all is purged: {:?}",
                self.disk.contents(schema)
            ));
        }
        if expired && let Some(complaint) = self.disk.complaint() {
            return Some(format!("after the purge {complaint}"));
        }
        None
    }

    fn purge(&mut self, schema: &Schema, wild: bool) -> Option<String> {
        let expiring = schema.expiring().filter(|_| !self.options.control);
        for table in expiring {
            let name = table.name;
            let result = self
                .tested
                .session
                .try_run(&format!("SELECT ttl.purge('{name}')"));
            let answer = Answer::of(result);
            // A live child may keep its expired parent. A table without TTL indexes left has no
            // TTL.
            if let Answer::Failed(failure) = &answer
                && !(wild && ["23503", "23001", "23502"].contains(&failure.code.as_str()))
                && !(wild && table.by_index && failure.code == "55000")
            {
                return Some(format!("ttl.purge('{name}') -> {}", answer.text()));
            }
        }
        None
    }
}
