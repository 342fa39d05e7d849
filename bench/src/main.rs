//! Benchmarks of `ttl_ext`: what time to live costs those who read and write, and what
//! deletion achieves, against what one would do without it.
//!
//! Run by `make bench`. Each benchmark is a file `bNN_*.rs`; it starts servers or takes the shared one, measures
//! its sides in turn, checks that both did the same work, and adds rows. A benchmark
//! that breaks off is shown as failed, and the others go on.
//!
//! `ttl_bench render` makes the table and the plots anew from the JSON file.

mod clients;
mod context;
mod cron;
mod fixtures;
mod machine;
mod numbers;
mod options;
mod plots;
mod results;
mod table;
mod transactions;

mod b01_count_override;
mod b02_count_default;
mod b03_select_by_key;
mod b04_others;
mod b05_insert;
mod b06_copy;
mod b07_update;
mod b08_delete;
mod b09_foreground;
mod b10_delay;
mod b11_growth;
mod b12_partitions;
mod b13_planning;
mod b14_tables;
mod b15_many_tables;
mod b16_two_tables;
mod b17_many_partitions;
mod b18_turning_on;
mod b19_owners;
mod b20_expiry_forms;
mod b21_references;
mod b22_promise;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use context::Context;
use options::{Options, Size};
use results::{Benchmark, Results};

type Run = fn(&Context, &mut Benchmark);

/// Number, title, function; in the order in which they run.
const BENCHMARKS: [(&str, &str, Run); 22] = [
    (
        "B1",
        "counting a table with a default and overrides",
        b01_count_override::run,
    ),
    (
        "B2",
        "counting a table with a default only",
        b02_count_default::run,
    ),
    ("B3", "SELECT by primary key", b03_select_by_key::run),
    ("B4", "what those notice who do not use it", b04_others::run),
    ("B5", "INSERT of one row", b05_insert::run),
    ("B6", "COPY of many rows", b06_copy::run),
    ("B7", "UPDATE by primary key", b07_update::run),
    ("B8", "deletion without throttle", b08_delete::run),
    (
        "B9",
        "clients while a backlog is removed",
        b09_foreground::run,
    ),
    (
        "B10",
        "from expiry to deletion on an idle server",
        b10_delay::run,
    ),
    (
        "B11",
        "growth where there is nothing to delete",
        b11_growth::run,
    ),
    ("B12", "expiry of whole partitions", b12_partitions::run),
    ("B13", "planning time", b13_planning::run),
    ("B14", "a session that touches many tables", b14_tables::run),
    ("B15", "growth with TTL tables", b15_many_tables::run),
    ("B16", "deletion on two tables at once", b16_two_tables::run),
    ("B17", "growth with partitions", b17_many_partitions::run),
    (
        "B18",
        "turning it on for a large table in use",
        b18_turning_on::run,
    ),
    ("B19", "deletion for many owners", b19_owners::run),
    (
        "B20",
        "counting by each form of expiry",
        b20_expiry_forms::run,
    ),
    (
        "B21",
        "rows that refer to a table with TTL",
        b21_references::run,
    ),
    (
        "B22",
        "the promise without and with an index, under load",
        b22_promise::run,
    ),
];

fn main() -> ExitCode {
    let options = Options::from_env();
    let out = options.out.clone();
    let rendering = std::env::args().nth(1).as_deref() == Some("render");
    let name = std::env::var("TTL_BENCH_NAME").unwrap_or_else(|_| "results".to_owned());
    let file = out.join(format!("{name}.json"));
    let mut ok = true;
    if !rendering {
        ok = measure(&Context::new(options), &file);
    }
    let results = Results::read(&file).unwrap_or_else(|| panic!("there is no {}", file.display()));
    std::fs::write(out.join(format!("{name}.md")), table::page(&results)).expect("the table");
    plots::draw(&results, &out, &name);
    println!("{}", table::table(&results));
    if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Run what is wanted. The file is written after each benchmark; others' outcomes that
/// are in it stay.
fn measure(context: &Context, file: &Path) -> bool {
    let known: Vec<&str> = BENCHMARKS.iter().map(|(id, ..)| *id).collect();
    for only in &context.options.only {
        let found = known.iter().any(|id| id.eq_ignore_ascii_case(only));
        assert!(
            found,
            "there is no benchmark {only}; there are {}",
            known.join(" ")
        );
    }
    let mut ok = true;
    for (id, title, run) in BENCHMARKS {
        if !context.options.wants(id) {
            continue;
        }
        eprintln!("{id}: {title}");
        let benchmark = one(context, id, title, run);
        eprintln!("{id}: {:.0} s", benchmark.seconds);
        ok &= benchmark.failure.is_none();
        let mut results = current(context, file);
        let order = |id: &str| {
            known
                .iter()
                .position(|known| *known == id)
                .unwrap_or(known.len())
        };
        results.put(benchmark, order);
        results.write(file);
    }
    ok
}

fn one(context: &Context, id: &str, title: &str, run: Run) -> Benchmark {
    let size = match context.options.size {
        Size::Full => "full",
        Size::Quick => "quick",
        Size::Tiny => "tiny",
    };
    let mut benchmark = Benchmark {
        id: id.to_owned(),
        title: title.to_owned(),
        size: size.to_owned(),
        date: machine::date(),
        commit: context.options.commit.clone(),
        load: machine::load(),
        ..Benchmark::default()
    };
    let begin = Instant::now();
    let done = catch_unwind(AssertUnwindSafe(|| run(context, &mut benchmark)));
    benchmark.seconds = begin.elapsed().as_secs_f64();
    if let Err(panic) = done {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        benchmark.failure = Some(text.unwrap_or("a panic without a message").to_owned());
        // What it has left in the shared server is of no use to the next.
        context.stop_server();
    }
    benchmark
}

/// The file's results, with the machine and the server as they are now.
fn current(context: &Context, file: &Path) -> Results {
    let server = context.server();
    let mut session = server.connect("postgres", "postgres");
    Results {
        version: session.value("SELECT version()"),
        assertions: session.value("SHOW debug_assertions") == "on",
        machine: machine::describe(),
        benchmarks: Results::read(file).map_or_else(Vec::new, |old| old.benchmarks),
    }
}
