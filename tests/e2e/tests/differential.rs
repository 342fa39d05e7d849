//! C6: no query can tell hidden rows from deleted ones.
//!
//! `TTL_SEED` repeats a run, `TTL_QUERIES` sets its length.

use ttl_ext_e2e::Server;
use ttl_ext_e2e::diff::{Kind, Options, Summary, build, compare};

const DEFAULT_QUERIES: u64 = 2_000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

fn seed() -> u64 {
    number("TTL_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("a clock after 1970").as_nanos() as u64 % 1_000_000_000
    })
}

fn check(summary: &Summary, seed: u64) {
    println!(
        "TTL_SEED={seed}: {} queries, {} timed out, {} failed alike; {} of {} plain ones had rows; \
         {} of {} differ with expired rows shown",
        summary.queries,
        summary.timed_out,
        summary.failed,
        summary.with_rows,
        summary.plain,
        summary.sampled_differ,
        summary.sampled
    );
    for (message, count) in &summary.messages {
        println!("{count} x {message}");
    }
    let differences = summary.differences.join("\n==========\n");
    assert!(
        summary.differences.is_empty(),
        "TTL_SEED={seed}\n{differences}"
    );
    // A query whose answer depends on the plan tests nothing; only few may do that.
    println!("{} undecided", summary.undecided.len());
    assert!(
        summary.undecided.len() as u64 <= 1 + summary.queries / 2000,
        "TTL_SEED={seed}\n{}",
        summary.undecided.join("\n==========\n")
    );
    assert!(
        is_share_at_most(0.02, summary.timed_out, summary.queries),
        "too many time-outs"
    );
    assert!(
        is_share_at_most(0.05, summary.failed, summary.queries),
        "too many queries fail"
    );
    let without_rows = summary.plain - summary.with_rows;
    assert!(
        is_share_at_most(0.4, without_rows, summary.plain),
        "too few queries return rows"
    );
}

/// Whether so many of all random queries speak for a share of this at most: four standard
/// deviations more are chance.
fn is_share_at_most(share: f64, part: u64, whole: u64) -> bool {
    let whole = whole as f64;
    part as f64 <= whole * share + 4.0 * (whole * share * (1.0 - share)).sqrt()
}

/// C6, and C3, C4, C8, C9 by the tables' policies: the same answers with the
/// expired rows hidden as with the expired rows deleted.
#[test]
fn hidden_is_as_good_as_deleted() {
    let server = Server::start(&[("max_worker_processes", "16")]);
    let seed = seed();
    println!("TTL_SEED={seed}");
    let database = build(
        &server,
        "differential",
        &[Kind::Ttl, Kind::Deleted, Kind::Control],
    );
    let options = Options {
        seed,
        queries: number("TTL_QUERIES").unwrap_or(DEFAULT_QUERIES),
        kind: Kind::Ttl,
        samples: 300,
    };
    let summary = compare(&server, &database.name, options);
    check(&summary, seed);
    // The test can fail: many queries would differ if expired rows were visible.
    assert!(
        summary.sampled_differ as f64 >= 0.2 * summary.sampled as f64,
        "only {} of {} queries notice expired rows",
        summary.sampled_differ,
        summary.sampled
    );
}

/// The queries themselves are deterministic: the same answers whatever the
/// order of the rows on disk, on a server without the extension.
#[test]
fn queries_are_deterministic() {
    let server = Server::start(&[
        ("shared_preload_libraries", ""),
        ("max_worker_processes", "16"),
    ]);
    let seed = seed();
    let database = build(&server, "control", &[Kind::Deleted, Kind::Control]);
    let options = Options {
        seed,
        queries: number("TTL_QUERIES").unwrap_or(DEFAULT_QUERIES) / 10,
        kind: Kind::Control,
        samples: 0,
    };
    check(&compare(&server, &database.name, options), seed);
}
