//! Runs scripts in two schemas and compares what they answer.

use super::generator::{Generator, Random};
use super::outcome::Outcome;
use super::schema::Kind;
use super::script::{Script, Way};
use super::settings;
use crate::{Server, Session, SqlState};

/// What to compare, and how much.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The seed of all random choices.
    pub seed: u64,
    /// How many scripts.
    pub queries: u64,
    /// The schema under test, which is compared with `Kind::Deleted`.
    pub kind: Kind,
    /// For how many of them to check whether expired rows would change the answer.
    pub samples: u64,
}

/// The result of a run.
#[derive(Debug, Default, Clone)]
pub struct Summary {
    /// Scripts that were run.
    pub queries: u64,
    /// Of these: plain queries, COPY and prepared queries.
    pub plain: u64,
    /// Of the plain ones: those that returned a row.
    pub with_rows: u64,
    /// Scripts that failed with the same SQLSTATE on both sides.
    pub failed: u64,
    /// Scripts that were cut off on either side.
    pub timed_out: u64,
    /// Scripts that were run with `ttl.show_expired` as well.
    pub sampled: u64,
    /// Of these: those whose answer differed.
    pub sampled_differ: u64,
    /// Descriptions of the differences; the run stops after a few.
    pub differences: Vec<String>,
    /// Differences in queries whose answer also depends on the order of rows on disk, or whose failure
    /// on the plan: no fault of the extension.
    pub undecided: Vec<String>,
    /// Messages of the failures, by frequency.
    pub messages: std::collections::BTreeMap<String, u64>,
}

/// Scripts that share their settings.
const BATCH: u64 = 25;
/// Differences after which the run stops.
const ENOUGH: usize = 3;

struct Sides {
    tested: Session,
    deleted: Session,
    control: Session,
    shown: Option<Session>,
}

/// Run random scripts in both schemas of a database that `build` made.
pub fn compare(server: &Server, database: &str, options: Options) -> Summary {
    let open = |kind: Kind| {
        let command_line = format!(
            "-c search_path={} -c statement_timeout=2000 -c jit=off -c client_min_messages=error",
            kind.schema()
        );
        server.connect_with(database, "postgres", &command_line)
    };
    let mut sides = Sides {
        tested: open(options.kind),
        deleted: open(Kind::Deleted),
        control: open(Kind::Control),
        shown: (options.samples > 0).then(|| open(options.kind)),
    };
    let mut generator = Generator::new(options.seed, server.major());
    let mut dice = Random::new(options.seed ^ 0x5eed);
    let mut summary = Summary::default();
    let mut current = String::new();
    let every = (options.queries / options.samples.max(1)).max(1);
    for number in 0..options.queries {
        if number % BATCH == 0 {
            current = settings::random(&mut dice, server.major());
            apply(&mut sides.tested, &current);
            apply(&mut sides.deleted, &current);
        }
        let script = generator.script();
        step(&mut sides, &script, &current, number, &mut summary);
        if number % every == 0 {
            sample(&mut sides, &script, &current, &mut summary);
        }
        if summary.differences.len() >= ENOUGH {
            break;
        }
    }
    summary
}

/// Apply settings without the time limit of scripts, which is already set: a session may wait long
/// on a busy machine.
fn apply(session: &mut Session, settings: &str) {
    for _ in 0..20 {
        match session.try_run(settings) {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {}
            Err(error) => panic!("{settings}: {error:?}"),
            Ok(_) => return,
        }
    }
    panic!("settings are cancelled again and again: {settings}");
}

fn step(sides: &mut Sides, script: &Script, settings: &str, number: u64, summary: &mut Summary) {
    let mut messages = [String::new(), String::new()];
    let tested = Outcome::of(&mut sides.tested, script, &mut messages[0]);
    let deleted = Outcome::of(&mut sides.deleted, script, &mut messages[1]);
    summary.queries += 1;
    if tested == Outcome::TimedOut || deleted == Outcome::TimedOut {
        summary.timed_out += 1;
        return;
    }
    if tested != deleted {
        apply(&mut sides.control, settings);
        let control = Outcome::of(&mut sides.control, script, &mut String::new());
        // The other two schemas have no TTL: an internal error there is PostgreSQL's own.
        let undecided = control != deleted
            || deleted == Outcome::Failed("XX000".to_owned())
            || fails_by_plan(sides, script, settings, &tested, &deleted);
        let outcomes = [&tested, &deleted];
        let text = report(
            sides, script, settings, number, &messages, outcomes, undecided,
        );
        if undecided {
            summary.undecided.push(text);
        } else {
            summary.differences.push(text);
        }
        return;
    }
    if let Outcome::Failed(code) = &tested {
        summary.failed += 1;
        let first = messages[0].lines().next().unwrap_or(code).to_owned();
        *summary.messages.entry(first).or_default() += 1;
    }
    if matches!(script.way, Way::Query | Way::Copy | Way::Prepared) {
        summary.plain += 1;
        summary.with_rows += u64::from(tested.has_rows());
    }
}

/// Other joins than the planner's choice, by their methods and by their order.
const JOINS: [&str; 7] = [
    "enable_nestloop = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "from_collapse_limit = 1; SET join_collapse_limit = 1",
    "geqo_threshold = 2; SET geqo_seed = 0.2",
    "geqo_threshold = 2; SET geqo_seed = 0.5",
    "geqo_threshold = 2; SET geqo_seed = 0.8",
];

/// Whether only one side fails, and with another join one does as the other: PostgreSQL need not
/// evaluate an expression on rows that an empty side of a join makes superfluous. What fails where
/// expired rows are deleted fails at a row that lives; the tested side may come to it, too.
fn fails_by_plan(
    sides: &mut Sides,
    script: &Script,
    settings: &str,
    tested: &Outcome,
    deleted: &Outcome,
) -> bool {
    let fails = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
    if fails(tested) == fails(deleted) {
        return false;
    }
    let does = JOINS.iter().any(|join| {
        let other = format!("{settings}; SET {join}");
        apply(&mut sides.deleted, &other);
        apply(&mut sides.tested, &other);
        Outcome::of(&mut sides.deleted, script, &mut String::new()) == *tested
            || fails(deleted)
                && Outcome::of(&mut sides.tested, script, &mut String::new()) == *deleted
    });
    apply(&mut sides.deleted, settings);
    apply(&mut sides.tested, settings);
    does
}

/// Whether the script's answer would change if expired rows were visible.
fn sample(sides: &mut Sides, script: &Script, settings: &str, summary: &mut Summary) {
    let Some(shown) = &mut sides.shown else {
        return;
    };
    let mut message = String::new();
    // Before SET ROLE: only a superuser may see expired rows.
    apply(
        shown,
        &settings.replace("RESET ALL", "RESET ALL; SET ttl.show_expired = on"),
    );
    let with = Outcome::of(shown, script, &mut message);
    let without = Outcome::of(&mut sides.tested, script, &mut message);
    if with != Outcome::TimedOut && without != Outcome::TimedOut {
        summary.sampled += 1;
        summary.sampled_differ += u64::from(with != without);
    }
}

fn report(
    sides: &mut Sides,
    script: &Script,
    settings: &str,
    number: u64,
    messages: &[String; 2],
    [tested, deleted]: [&Outcome; 2],
    undecided: bool,
) -> String {
    let blame = if undecided {
        "it differs with the rows' order on disk or with the join, too: the query is not deterministic"
    } else {
        "neither the rows' order on disk nor the join makes a difference: the extension is at fault"
    };
    format!(
        "query {number} differs; {blame}\n--- settings\n{settings}\n--- script ({:?})\n{};\n\
         --- difference ('{}' first)\n{}\n{}\n{}\n--- plan, tested\n{}\n--- plan, deleted\n{}\n",
        script.way,
        script.sql(),
        Kind::Ttl.schema(),
        tested.difference(deleted, 15),
        messages[0],
        messages[1],
        plan(&mut sides.tested, script),
        plan(&mut sides.deleted, script),
    )
}

/// The plans of the statements, as far as EXPLAIN takes them.
fn plan(session: &mut Session, script: &Script) -> String {
    let mut plans = Vec::new();
    for statement in &script.statements {
        let inner = ["COPY (", "PREPARE ", "DECLARE "]
            .iter()
            .any(|word| statement.starts_with(word));
        let statement = match statement.split_once(if script.way == Way::Cursor {
            " FOR "
        } else {
            " AS "
        }) {
            Some((_, query)) if inner && !statement.starts_with("COPY") => query,
            _ if inner => statement
                .trim_start_matches("COPY (")
                .trim_end_matches(") TO STDOUT"),
            _ => statement,
        };
        let messages = session.try_run(&format!("EXPLAIN (VERBOSE, COSTS OFF) {statement}"));
        let rows = messages
            .iter()
            .flatten()
            .filter_map(crate::session::row_text);
        plans.extend(rows.map(|row| row.join("")));
        // EXPLAIN does not take every statement.
        let _ = session.try_run("ROLLBACK");
    }
    plans.join("\n")
}
