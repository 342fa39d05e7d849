//! What is kept of a run: every single number, as JSON. The table and the plots are
//! made from it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::numbers::median;

/// The file `<pg>.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// `SELECT version()`.
    pub version: String,
    /// Whether the server was built with assertions: its figures then compare with each
    /// other only.
    pub assertions: bool,
    /// The machine.
    pub machine: BTreeMap<String, String>,
    /// In the order of their numbers.
    pub benchmarks: Vec<Benchmark>,
}

/// One benchmark's outcome.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Benchmark {
    /// `B1`.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// `full`, `quick` or `tiny`.
    pub size: String,
    /// When it began, in UTC.
    pub date: String,
    /// The commit that was measured.
    pub commit: String,
    /// How long it took.
    pub seconds: f64,
    /// The machine's load average before it.
    pub load: String,
    /// The rows of the table.
    pub rows: Vec<Row>,
    /// The lines of the plots.
    pub curves: Vec<Curve>,
    /// What a reader should know: plans, sizes, shares.
    pub notes: Vec<String>,
    /// The settings of each server that are not PostgreSQL's defaults.
    pub settings: BTreeMap<String, BTreeMap<String, String>>,
    /// Why it broke off.
    pub failure: Option<String>,
}

/// One figure, mostly against a baseline measured in turn with it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// What is measured.
    pub what: String,
    /// The unit of the values.
    pub unit: String,
    /// The extension's side; none if it could not be measured.
    pub ours: Vec<f64>,
    /// What the baseline is.
    pub baseline_name: String,
    /// The baseline's side, value by value measured next to `ours`; empty: an absolute figure.
    pub baseline: Vec<f64>,
    /// What was asked for.
    pub target: Option<Target>,
    /// Why there is nothing.
    pub unavailable: Option<String>,
}

/// What was asked for: of the ratio to the baseline, or of an absolute figure.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Target {
    /// The ratio is at most this.
    AtMost(f64),
    /// The ratio is at least this.
    AtLeast(f64),
    /// The ratio is above this.
    Above(f64),
    /// The value itself is at most this.
    ValueAtMost(f64),
}

/// One plot's lines, from a benchmark.
#[derive(Debug, Serialize, Deserialize)]
pub struct Curve {
    /// The plot's name, part of its file's name.
    pub plot: String,
    /// Its caption.
    pub title: String,
    /// The axes.
    pub x: String,
    /// The axes.
    pub y: String,
    /// Whether the horizontal axis is logarithmic.
    pub x_log: bool,
    /// The lines' names and points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl Row {
    /// Of each repetition, ours by the baseline's.
    pub fn ratios(&self) -> Vec<f64> {
        let pairs = self.ours.iter().zip(&self.baseline);
        pairs.map(|(ours, baseline)| ours / baseline).collect()
    }

    /// Whether the target is met; `None` if there is none, or no figure.
    pub fn met(&self) -> Option<bool> {
        if self.ours.is_empty() {
            return None;
        }
        let ratios = self.ratios();
        let ratio = || (!ratios.is_empty()).then(|| median(&ratios));
        Some(match self.target? {
            Target::AtMost(limit) => ratio()? <= limit,
            Target::AtLeast(limit) => ratio()? >= limit,
            Target::Above(limit) => ratio()? > limit,
            Target::ValueAtMost(limit) => median(&self.ours) <= limit,
        })
    }
}

impl Results {
    /// Read the file, if it is there.
    pub fn read(path: &Path) -> Option<Results> {
        let text = std::fs::read_to_string(path).ok()?;
        let parsed = serde_json::from_str(&text);
        Some(parsed.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Write the file.
    pub fn write(&self, path: &Path) {
        let text = serde_json::to_string_pretty(self).expect("results are JSON");
        std::fs::write(path, text + "\n")
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }

    /// Put in a benchmark in the place of an older outcome of the same.
    pub fn put(&mut self, benchmark: Benchmark, order: impl Fn(&str) -> usize) {
        self.benchmarks.retain(|old| old.id != benchmark.id);
        self.benchmarks.push(benchmark);
        self.benchmarks
            .sort_by_key(|benchmark| order(&benchmark.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: &[f64], baseline: &[f64], target: Target) -> Row {
        Row {
            what: String::new(),
            unit: String::new(),
            ours: ours.to_vec(),
            baseline_name: String::new(),
            baseline: baseline.to_vec(),
            target: Some(target),
            unavailable: None,
        }
    }

    #[test]
    fn targets_are_of_the_median_of_the_ratios() {
        let ours = [1.0, 8.0, 1.0];
        let baseline = [2.0, 8.0, 2.0];
        assert_eq!(row(&ours, &baseline, Target::AtMost(0.5)).met(), Some(true));
        assert_eq!(
            row(&ours, &baseline, Target::AtLeast(0.6)).met(),
            Some(false)
        );
        assert_eq!(row(&ours, &baseline, Target::Above(0.5)).met(), Some(false));
        assert_eq!(row(&[], &[], Target::AtMost(0.5)).met(), None);
        assert_eq!(
            row(&[2.0], &[], Target::ValueAtMost(1.5)).met(),
            Some(false)
        );
    }
}
