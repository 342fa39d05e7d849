//! What the caller wants, from the environment; scripts/bench.sh sets it.

use std::path::PathBuf;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// What the documents cite.
    Full,
    /// Some minutes: fewer rows, three repetitions.
    Quick,
    /// Seconds: only whether everything still works. The figures mean nothing.
    Tiny,
}

/// One run of this program.
#[derive(Debug)]
pub struct Options {
    /// How much is measured.
    pub size: Size,
    /// The benchmarks to run, as `b1`; `b` and `x` stand for all of their kind. Empty: `b`.
    pub only: Vec<String>,
    /// Where `<pg>.json`, `<pg>.md` and `<pg>-*.svg` go.
    pub out: PathBuf,
    /// The commit that the extension was built from.
    pub commit: String,
}

impl Options {
    /// From `TTL_BENCH_SIZE`, `TTL_BENCH_ONLY`, `TTL_BENCH_OUT` and `TTL_BENCH_COMMIT`.
    pub fn from_env() -> Options {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let size = match variable("TTL_BENCH_SIZE").as_str() {
            "" | "full" => Size::Full,
            "quick" => Size::Quick,
            "tiny" => Size::Tiny,
            other => panic!("TTL_BENCH_SIZE={other}: full, quick or tiny"),
        };
        let only = variable("TTL_BENCH_ONLY");
        let out = variable("TTL_BENCH_OUT");
        Options {
            size,
            only: only
                .split([',', ' '])
                .filter(|id| !id.is_empty())
                .map(str::to_lowercase)
                .collect(),
            out: PathBuf::from(if out.is_empty() { "." } else { &out }),
            commit: variable("TTL_BENCH_COMMIT"),
        }
    }

    /// Whether this benchmark is to run.
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.eq_ignore_ascii_case(id))
    }

    /// A number of rows, seconds and the like.
    pub fn pick(&self, full: u64, quick: u64) -> u64 {
        match self.size {
            Size::Full => full,
            Size::Quick => quick,
            Size::Tiny => quick.div_ceil(20),
        }
    }

    /// How often each side is measured; `full` is 5 at least.
    pub fn repetitions(&self, full: usize) -> usize {
        match self.size {
            Size::Full => full.max(5),
            Size::Quick => 3,
            Size::Tiny => 2,
        }
    }
}
