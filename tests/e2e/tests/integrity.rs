//! C6, C10: keys and foreign keys hold after any sequence of statements, and no statement can tell
//! a key held by an expired row from a free key.
//!
//! `TTL_SEED` repeats a run, `TTL_SEQUENCES` sets its length.

use ttl_ext_e2e::Server;
use ttl_ext_e2e::integrity::{Options, Summary, run};

const DEFAULT_SEQUENCES: u64 = 500;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

fn sequences() -> u64 {
    number("TTL_SEQUENCES").unwrap_or(DEFAULT_SEQUENCES)
}

fn seed() -> u64 {
    number("TTL_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("a clock after 1970").as_nanos() as u64 % 1_000_000_000
    })
}

fn check(server: &Server, options: Options) {
    let seed = options.seed;
    println!("TTL_SEED={seed}");
    let begin = std::time::Instant::now();
    let summary = run(server, options);
    let Summary {
        sequences,
        with_expired,
        refused,
        statements,
        ..
    } = summary;
    println!(
        "TTL_SEED={seed}: {sequences} sequences, {with_expired} with expired rows at the end, \
         {refused} ended early, {statements} statements in {:?}; failed: {:?}",
        begin.elapsed(),
        summary.failed
    );
    assert!(
        summary.faults.is_empty(),
        "TTL_SEED={seed}\n{}",
        summary.faults.join("\n==========\n")
    );
    // A difference that does not repeat proves nothing: the order of triggers by name, for example,
    // depends on the OIDs of constraints.
    println!("{} unsteady", summary.unsteady.len());
    assert!(
        summary.unsteady.len() as u64 <= 1 + sequences / 1000,
        "TTL_SEED={seed}\n{}",
        summary.unsteady.join("\n==========\n")
    );
    // What ends them comes in clusters (a schema serves twenty), so a small run needs room.
    assert!(
        refused <= 5 + sequences / 20,
        "too many end early: {refused}"
    );
    // Whether the generator makes what the test is for. Twenty sequences share a schema: a few
    // schemas may well have no foreign key among them.
    if sequences < 200 {
        return;
    }
    let failed: u64 = summary.failed.values().sum();
    assert!(failed * 2 < statements, "too many statements fail");
    for code in ["23503", "23505"] {
        assert!(summary.failed.contains_key(code), "none fails with {code}");
    }
    assert!(
        options.sweeping || options.control || with_expired * 8 > sequences,
        "too few sequences leave expired rows"
    );
}

/// C6: every answer is that of tables whose expired rows are really deleted.
#[test]
fn an_expired_row_is_in_nobodys_way() {
    check(
        &Server::start(&[]),
        Options {
            seed: seed(),
            sequences: sequences(),
            wild: 0.0,
            sweeping: false,
            control: false,
        },
    );
}

/// C10: also with policies that change, and live rows that keep expired parents.
#[test]
fn constraints_hold_whatever_happens() {
    check(
        &Server::start(&[]),
        Options {
            seed: seed(),
            sequences: sequences() / 4,
            wild: 1.0,
            sweeping: false,
            control: false,
        },
    );
}

/// C6, C7: all of this while background workers delete.
#[test]
fn sweeping_makes_no_difference() {
    check(
        &Server::start_sweeping(&[]),
        Options {
            seed: seed(),
            sequences: sequences() / 8,
            wild: 0.5,
            sweeping: true,
            control: false,
        },
    );
}

/// The comparison itself is sound: no differences without TTL on either side.
#[test]
fn sequences_are_deterministic() {
    check(
        &Server::start(&[]),
        Options {
            seed: seed(),
            sequences: sequences() / 20,
            wild: 0.0,
            sweeping: false,
            control: true,
        },
    );
}
