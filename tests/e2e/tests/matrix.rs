//! S1, S2: a hostile table owner gains nothing by the extension. Runs every carrier of code with
//! every visitor and every attempt (`src/matrix`), and compares with a server without the library.
//!
//! `TTL_MATRIX` is the number of cases (`all` for all), `TTL_SEED` repeats a sample, `TTL_CASE`
//! runs the cases with this in their name.

use ttl_ext_e2e::Server;
use ttl_ext_e2e::matrix::{Selection, matrix, run};

const DEFAULT_CASES: usize = 1_200;
/// `make test` always runs the same sample, so that an untested case does not fail an unrelated
/// change. New cases come from `TTL_SEED` and `make test-matrix`.
const DEFAULT_SEED: u64 = 1;

fn seed() -> u64 {
    std::env::var("TTL_SEED").map_or(DEFAULT_SEED, |text| {
        text.parse().expect("TTL_SEED is a number")
    })
}

fn selection() -> Selection {
    if let Ok(part) = std::env::var("TTL_CASE") {
        return Selection::Named(part);
    }
    let cases = match std::env::var("TTL_MATRIX") {
        Ok(text) if text == "all" => return Selection::Whole,
        Ok(text) => text.parse().expect("TTL_MATRIX is a number, or all"),
        Err(_) => DEFAULT_CASES,
    };
    Selection::Sample {
        seed: seed(),
        cases,
    }
}

#[test]
fn nobody_gains_by_it() {
    let selection = selection();
    let matrix = matrix(&selection);
    println!("{selection:?}: {} of {} cases", matrix.chosen, matrix.whole);
    for (reason, count) in &matrix.left_out {
        println!("{count} left out: {reason}");
    }
    let quiet = Server::start(&[
        ("autovacuum", "off"),
        ("max_worker_processes", "24"),
        // Before 16, apply workers are started one by one, at this distance.
        ("wal_retrieve_retry_interval", "10ms"),
    ]);
    let sweeping = Server::start_sweeping(&[
        ("autovacuum", "off"),
        ("ttl.statement_timeout", "1s"),
        ("ttl.max_workers", "8"),
        ("max_worker_processes", "24"),
    ]);
    let plain = Server::start(&[
        ("shared_preload_libraries", ""),
        ("autovacuum", "off"),
        ("wal_level", "logical"),
        ("ttl.logical_messages", "on"),
        ("wal_retrieve_retry_interval", "10ms"),
        ("max_worker_processes", "24"),
    ]);
    let begin = std::time::Instant::now();
    let report = run(&matrix, &quiet, &sweeping, &plain);
    println!("allowed by PostgreSQL too:\n{}", report.allowed());
    println!("{selection:?}: {} in {:?}", report.line(), begin.elapsed());
    assert!(
        report.faults() == 0,
        "{selection:?}: {}\n{}",
        report.line(),
        report.describe_faults()
    );
    let problems = report.problems();
    assert!(
        problems.is_empty(),
        "cases that cannot be made:\n{}",
        problems.join("\n")
    );
    // A fault that does not repeat proves nothing; a busy machine has a few.
    assert!(
        report.unsteady() * 100 <= report.run(),
        "{} unsteady",
        report.unsteady()
    );
    // A sample in which no code runs tests nothing.
    let whole = !matches!(selection, Selection::Named(_));
    assert!(
        !whole || report.with_code() * 20 > report.run(),
        "{} with code",
        report.with_code()
    );
}
