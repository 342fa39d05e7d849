//! pgbench, from the server's own tree.

use ttl_ext_e2e::Server;

use crate::context::{Figures, Runs};
use crate::fixtures::wait;
use crate::machine::cpu_seconds;
use crate::results::{Benchmark, Target};

/// Clients that run a script.
pub struct Clients<'a> {
    /// The database.
    pub database: &'a str,
    /// The script; empty: pgbench's own, by `arguments`.
    pub script: String,
    /// `simple`, `extended` or `prepared`.
    pub protocol: &'a str,
    /// For how long.
    pub length: Length,
    /// Further arguments.
    pub arguments: &'a [&'a str],
}

/// How long clients run.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// So many seconds.
    Seconds(u64),
    /// So many transactions each.
    Transactions(u64),
}

/// The number of clients: with pgbench itself they keep two processors busy.
pub const CLIENTS: &str = "2";

/// What pgbench said at its end.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Transactions a second, without connecting.
    pub tps: f64,
    /// Transactions.
    pub transactions: u64,
    /// Processor time of the server for each of them, in microseconds.
    pub cpu: f64,
}

impl Outcome {
    /// For [`crate::context::Context::alternate`].
    pub fn figures(&self) -> Figures {
        vec![("tps", self.tps), ("cpu", self.cpu)]
    }
}

impl Clients<'_> {
    /// Run them.
    ///
    /// # Panics
    /// If a transaction fails.
    pub fn run(&self, server: &Server) -> Outcome {
        let script = server.dir().join("script.sql");
        let mut command = server.tool("pgbench", self.database);
        command
            .args(["-n", "-c", CLIENTS, "-j", "1", "-M", self.protocol])
            .args(match self.length {
                Length::Seconds(seconds) => ["-T".to_owned(), seconds.to_string()],
                Length::Transactions(count) => ["-t".to_owned(), count.to_string()],
            })
            .args(self.arguments)
            .current_dir(server.dir());
        if !self.script.is_empty() {
            std::fs::write(&script, &self.script).expect("a script for pgbench");
            command.arg("-f").arg(&script);
        }
        let before = cpu_seconds(server, 0);
        let output = server.must_run(&mut command);
        // The sessions end a moment after their client.
        let here = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
        wait(
            &mut server.connect("postgres", "postgres"),
            here,
            "0",
            1,
            10,
        );
        let cpu = cpu_seconds(server, 0) - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let after = |label: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(label));
            let word = line.and_then(|rest| rest.split_whitespace().next());
            let number = word.and_then(|word| word.split('/').next()?.parse::<f64>().ok());
            number.unwrap_or_else(|| panic!("pgbench did not say {label:?}:\n{text}"))
        };
        assert_eq!(after("number of failed transactions: "), 0.0, "{text}");
        let transactions = after("number of transactions actually processed: ");
        Outcome {
            tps: after("tps = "),
            transactions: transactions as u64,
            cpu: cpu * 1e6 / transactions,
        }
    }
}

/// Throughput, which has the target, and the server's processor time, which other
/// programs on the machine disturb less.
pub fn compare(
    bench: &mut Benchmark,
    what: &str,
    runs: &Runs,
    ours: &str,
    baseline: (&str, &str),
    target: Option<Target>,
) {
    let (name, side) = baseline;
    let of = |figure| (runs.of(ours, figure), (name, runs.of(side, figure)));
    let (tps, theirs) = of("tps");
    bench.compare(what, "tps", tps, theirs, target);
    let (cpu, theirs) = of("cpu");
    bench.compare(
        &format!("{what}: processor time of the server"),
        "µs",
        cpu,
        theirs,
        None,
    );
}

/// Fill pgbench's own tables.
pub fn initialize(server: &Server, database: &str, scale: u64) {
    let mut command = server.tool("pgbench", database);
    server.must_run(command.args(["-i", "-q", "-s", &scale.to_string()]));
}
