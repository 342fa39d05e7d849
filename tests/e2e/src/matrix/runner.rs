//! Runs cases in lanes side by side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::attempts::{ATTEMPTS, PROBE};
use super::cases::{Matrix, Pair};
use super::judge::{Effects, RAN};
use super::lane::Lane;
use super::oracle::{self, Verdict};
use super::report::{Case, Report};
use super::script::{self, Names};
use super::visitors::Who;
use crate::Server;

/// More lanes than processors: sessions wait for their servers half of the time.
const LANES: usize = 4;

/// Servers with the extension, with workers as well, and without.
struct Servers<'a> {
    quiet: &'a Server,
    sweeping: &'a Server,
    plain: &'a Server,
}

/// A lane on each server.
struct Lanes<'a> {
    quiet: Lane<'a>,
    sweeping: Lane<'a>,
    plain: Lane<'a>,
}

/// Run all cases of the matrix: `quiet` has the extension and no workers, `sweeping` has both,
/// `plain` none.
pub fn run(matrix: &Matrix, quiet: &Server, sweeping: &Server, plain: &Server) -> Report {
    let servers = Servers {
        quiet,
        sweeping,
        plain,
    };
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for number in 0..LANES {
            let (servers, next, report) = (&servers, &next, &report);
            scope.spawn(move || {
                let mut lanes = servers.open(number);
                while let Some(pair) = matrix.pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let cases = lanes.run(pair);
                    report.lock().expect("no lane panics with it").add(cases);
                }
            });
        }
    });
    report.into_inner().expect("no lane panics with it")
}

impl<'a> Servers<'a> {
    fn open(&self, number: usize) -> Lanes<'a> {
        Lanes {
            quiet: Lane::open(self.quiet, self.plain, number, true, false),
            sweeping: Lane::open(self.sweeping, self.plain, number, true, true),
            plain: Lane::open(self.plain, self.plain, number, false, false),
        }
    }
}

impl<'a> Lanes<'a> {
    fn tested(&mut self, pair: &Pair) -> &mut Lane<'a> {
        if pair.visitor.who == Who::Worker {
            &mut self.sweeping
        } else {
            &mut self.quiet
        }
    }

    fn run(&mut self, pair: &Pair) -> Vec<Case> {
        let probe = match self
            .tested(pair)
            .observe(&pair.carrier, &pair.visitor, PROBE)
        {
            Ok(effects) => effects,
            Err(message) => return vec![Case::impossible(pair, message)],
        };
        let runs = probe.iter().any(|effect| effect.starts_with(RAN));
        let mut cases = Vec::new();
        for attempt in &pair.attempts {
            let (verdict, effects) = match *attempt {
                PROBE => self.judge(pair, PROBE, probe.clone()),
                _ if !runs => (Verdict::NoCode, Effects::new()),
                attempt => match self
                    .tested(pair)
                    .observe(&pair.carrier, &pair.visitor, attempt)
                {
                    Ok(effects) => self.judge(pair, attempt, effects),
                    Err(message) => {
                        cases.push(Case::impossible(pair, message));
                        continue;
                    }
                },
            };
            let verdict = if verdict == Verdict::Quiet && !runs {
                Verdict::NoCode
            } else {
                verdict
            };
            cases.push(case(pair, *attempt, verdict, effects));
        }
        cases
    }

    /// What the oracle says of these effects.
    fn judge(&mut self, pair: &Pair, attempt: usize, effects: Effects) -> (Verdict, Effects) {
        let name = ATTEMPTS[attempt].name;
        let (carrier, visitor) = (&pair.carrier, &pair.visitor);
        let mut rest = oracle::unexpected(carrier, visitor, name, &effects);
        if rest.is_empty() {
            return (Verdict::Quiet, rest);
        }
        if visitor.same {
            let plain = self
                .plain
                .observe(carrier, visitor, attempt)
                .unwrap_or_default();
            if rest.is_subset(&plain) {
                return (Verdict::Plain, rest);
            }
            rest = &rest - &plain;
        }
        if let Some((carrier, visitor)) = oracle::instead(carrier, visitor) {
            let plain = self
                .plain
                .observe(&carrier, &visitor, attempt)
                .unwrap_or_default();
            if rest.is_subset(&plain) {
                return (Verdict::Equivalent, rest);
            }
            rest = &rest - &plain;
        }
        // A busy machine may be slow once.
        let again = self
            .tested(pair)
            .observe(carrier, visitor, attempt)
            .unwrap_or_default();
        let rest = &rest & &again;
        if rest.is_empty() {
            (Verdict::Unsteady, rest)
        } else {
            (Verdict::Fault, rest)
        }
    }
}

fn case(pair: &Pair, attempt: usize, verdict: Verdict, effects: Effects) -> Case {
    let script = (verdict == Verdict::Fault).then(|| {
        let attempt = &ATTEMPTS[attempt];
        let setup = script::setup(&pair.carrier, &pair.visitor, attempt, true);
        Names::to_print().put_into(&(setup + &script::visit(&pair.visitor, attempt)))
    });
    Case {
        name: pair.name(attempt),
        visitor: pair.visitor.name.clone(),
        carrier: pair.carrier.name.clone(),
        verdict,
        effects,
        script,
        problem: None,
    }
}
