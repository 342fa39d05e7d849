//! The table of the results, as Markdown.

use std::fmt::Write;

use crate::numbers::{median, quantile, show};
use crate::results::{Benchmark, Results, Row, Target};

const HEAD: &str = "| # | what | ttl_ext | baseline | ratio | spread of the ratio | target | |\n\
                    |---|---|---|---|---|---|---|---|\n";

/// The whole file `<pg>.md`. What lies between the two comments, the rows that have a
/// target, goes into docs/benchmarks.md.
pub fn page(results: &Results) -> String {
    let mut text = format!("# Benchmarks: {}\n\n", results.version);
    for (name, value) in &results.machine {
        let _ = writeln!(text, "- {name}: {value}");
    }
    if results.assertions {
        text +=
            "- **The server was built with assertions: figures compare with each other only.**\n";
    }
    text += "\nAll numbers are in the JSON file beside this one.\n\n";
    text += "<!-- table -->\n";
    text += &origin(results);
    text += &rows(results, |row| row.target.is_some());
    text += "<!-- /table -->\n\n## All rows\n\n";
    text += &table(results);
    for benchmark in &results.benchmarks {
        details(&mut text, benchmark);
    }
    text
}

/// Where the table comes from, for those who see nothing else of the page.
fn origin(results: &Results) -> String {
    let version: Vec<&str> = results.version.split_whitespace().take(2).collect();
    let of = |name: &str| results.machine.get(name).map_or("unknown", String::as_str);
    let dates = results
        .benchmarks
        .iter()
        .map(|benchmark| benchmark.date.as_str());
    let dates: Vec<&str> = dates.filter_map(|date| date.get(..10)).collect();
    format!(
        "{}{}, processors: {}, memory: {}, {}. Medians; the ratio is that of neighbouring runs, its spread \
         in quartiles (least – greatest).\n\n",
        version.join(" "),
        if results.assertions {
            " with assertions"
        } else {
            ""
        },
        of("processors"),
        of("memory"),
        dates.iter().max().unwrap_or(&""),
    )
}

/// All rows of all benchmarks.
pub fn table(results: &Results) -> String {
    rows(results, |_| true)
}

fn rows(results: &Results, wanted: impl Fn(&Row) -> bool) -> String {
    let mut text = HEAD.to_owned();
    for benchmark in &results.benchmarks {
        let mut id = benchmark.id.as_str();
        for row in benchmark.rows.iter().filter(|row| wanted(row)) {
            let _ = writeln!(text, "{}", line(id, row));
            id = "";
        }
        if let Some(failure) = &benchmark.failure {
            let first = failure.lines().next().unwrap_or_default();
            let _ = writeln!(
                text,
                "| {id} | {} | | | | | | **failed**: {first} |",
                benchmark.title
            );
        }
    }
    text
}

fn line(id: &str, row: &Row) -> String {
    let what = &row.what;
    let name = &row.baseline_name;
    let target = row.target.map(describe).unwrap_or_default();
    if let Some(reason) = &row.unavailable {
        return format!("| {id} | {what} | | {name} | | | {target} | not available: {reason} |");
    }
    let value = |values: &[f64]| format!("{} {}", show(median(values)), row.unit);
    let ours = value(&row.ours);
    let result = match row.met() {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "",
    };
    let ratios = row.ratios();
    if ratios.is_empty() {
        let spread = spread(&row.ours, show);
        return format!("| {id} | {what} | {ours} | {name} | | {spread} | {target} | {result} |");
    }
    let baseline = value(&row.baseline);
    format!(
        "| {id} | {what} | {ours} | {name}: {baseline} | {} | {} | {target} | {result} |",
        ratio(median(&ratios)),
        spread(&ratios, ratio),
    )
}

fn ratio(value: f64) -> String {
    match value {
        v if v >= 10.0 => show(v),
        v if v < 0.1 => format!("{v:.4}"),
        v => format!("{v:.3}"),
    }
}

fn spread(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let at = |place| show(quantile(values, place));
    format!("{} – {} ({} – {})", at(0.25), at(0.75), at(0.0), at(1.0))
}

fn describe(target: Target) -> String {
    match target {
        Target::AtMost(limit) => format!("≤ {limit:.2}"),
        Target::AtLeast(limit) if limit >= 10.0 => format!("≥ {limit:.0}"),
        Target::AtLeast(limit) => format!("≥ {limit:.2}"),
        Target::Above(limit) => format!("> {limit:.1}"),
        Target::ValueAtMost(limit) => format!("≤ {limit}"),
    }
}

fn details(text: &mut String, benchmark: &Benchmark) {
    let _ = write!(
        text,
        "\n## {}: {}\n\n{}, {}, commit {}, {:.0} s, {}, load average {}\n",
        benchmark.id,
        benchmark.title,
        benchmark.date,
        benchmark.size,
        benchmark.commit,
        benchmark.seconds,
        repetitions(benchmark),
        benchmark.load
    );
    for note in &benchmark.notes {
        let _ = write!(text, "\n- {}", note.trim_end().replace('\n', "\n  "));
    }
    if !benchmark.notes.is_empty() {
        text.push('\n');
    }
    if let Some(failure) = &benchmark.failure {
        let _ = write!(text, "\n```\n{failure}\n```\n");
    }
    for (server, settings) in &benchmark.settings {
        let all: Vec<String> = settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let _ = write!(text, "\nSettings ({server}): `{}`\n", all.join(", "));
    }
}

fn repetitions(benchmark: &Benchmark) -> String {
    let counts = benchmark.rows.iter().map(|row| row.ours.len());
    let (least, most) = counts
        .filter(|count| *count > 0)
        .fold((usize::MAX, 0), |(least, most), n| {
            (least.min(n), most.max(n))
        });
    match (least, most) {
        (_, 0) => "nothing measured".to_owned(),
        (least, most) if least == most => format!("{most} values each"),
        (least, most) => format!("{least} to {most} values each"),
    }
}
