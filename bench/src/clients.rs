//! pgbench, from the server's own tree: one client a side, and all sides in turn.
//!
//! Two sides that do the very same differ by 10 % and more when each is run for a second:
//! the machine is faster or slower from one second to the next, and a client that the
//! kernel places on the processor of its server process takes 17 µs for a SELECT, one beside
//! it 63. So all sides' clients and servers share one processor, each side's client is
//! stopped while another's goes on, and they take turns every 10 ms. Then the same twice
//! differs by 1 % at most (`A/A` in the tables), and a transaction's time is the
//! processor time that client, kernel and server need for it.

use std::fs::read_to_string;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ttl_ext_e2e::Server;

use crate::context::{Figures, Runs};
use crate::fixtures::wait;
use crate::machine::{OneProcessor, resume, suspend};
use crate::numbers::trimmed_mean;
use crate::results::{Benchmark, Target};

/// A client that runs a script.
pub struct Client<'a> {
    /// The server.
    pub server: &'a Server,
    /// The database.
    pub database: &'a str,
    /// The script; empty: pgbench's own, by `arguments`.
    pub script: String,
    /// `simple`, `extended` or `prepared`.
    pub protocol: &'a str,
    /// Further arguments.
    pub arguments: &'a [&'a str],
}

/// How long a client runs.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// So many milliseconds.
    Milliseconds(u64),
    /// So many transactions; nobody else runs meanwhile.
    Transactions(u64),
}

/// How long one side runs before it is the next one's turn.
const TURN: Duration = Duration::from_millis(10);

/// The share of the shortest, and of the longest transactions that does not count:
/// those that a turn's end or the machine has interrupted.
const TRIMMED: f64 = 0.05;

/// What a client has done.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Transactions a second, from the mean time of those that count.
    pub tps: f64,
    /// Transactions, all of them.
    pub transactions: u64,
}

/// For [`crate::context::Context::together`].
pub fn figures(outcomes: &[Outcome]) -> Vec<Figures> {
    let of = |outcome: &Outcome| vec![("tps", outcome.tps)];
    outcomes.iter().map(of).collect()
}

/// The throughput of one side against another's.
pub fn compare(
    bench: &mut Benchmark,
    what: &str,
    runs: &Runs,
    side: &str,
    baseline: (&str, &str),
    target: Option<Target>,
) {
    let (name, other) = baseline;
    let theirs = (name, runs.of(other, "tps"));
    bench.compare(what, "tps", runs.of(side, "tps"), theirs, target);
}

impl Client<'_> {
    /// Run it alone.
    ///
    /// # Panics
    /// If a transaction fails.
    pub fn run(&self, length: Length) -> Outcome {
        in_turn(&[self], length)[0]
    }
}

/// What the sides' clients have done in turn, each for so many milliseconds.
///
/// # Panics
/// If a transaction fails.
pub fn throughput<'a>(
    sides: &[&str],
    milliseconds: u64,
    client: impl Fn(&str) -> Client<'a>,
) -> Vec<Outcome> {
    let clients: Vec<_> = sides.iter().map(|side| client(side)).collect();
    let clients: Vec<_> = clients.iter().collect();
    in_turn(&clients, Length::Milliseconds(milliseconds))
}

/// Run the clients in turn, each for that length.
fn in_turn(clients: &[&Client], length: Length) -> Vec<Outcome> {
    let _one = OneProcessor::of(clients.iter().map(|client| client.server));
    let sides = clients.len() as u64;
    let mut runs: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(n, client)| Run::start(n, client, length, sides))
        .collect();
    if let ([_, _, ..], Length::Milliseconds(each)) = (runs.as_slice(), length) {
        runs.iter().for_each(|run| suspend(&run.process));
        let end = Instant::now() + Duration::from_millis(each * sides);
        // Round and round: if the order turned about, those at its ends would have two
        // turns at once, and find the processor's caches as they left them.
        while Instant::now() < end {
            for run in &runs {
                resume(&run.process);
                std::thread::sleep(TURN);
                suspend(&run.process);
            }
        }
        runs.iter().for_each(|run| resume(&run.process));
    }
    let outcomes = runs.iter_mut().map(Run::outcome).collect();
    // The sessions end a moment after their clients.
    let here = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
    for client in clients {
        let mut session = client.server.connect("postgres", "postgres");
        wait(&mut session, here, "0", 1, 10);
    }
    outcomes
}

/// A pgbench that has been started.
struct Run {
    process: Child,
    log: PathBuf,
    output: PathBuf,
}

impl Run {
    fn start(number: usize, client: &Client, length: Length, sides: u64) -> Run {
        let dir = client.server.dir();
        let prefix = dir.join(format!("pgbench-{number}"));
        let output = prefix.with_extension("out");
        let file = std::fs::File::create(&output).expect("a file for what pgbench says");
        let errors = file.try_clone().expect("the same file");
        let mut command = client.server.tool("pgbench", client.database);
        command
            .args(["-n", "-c", "1", "-j", "1", "-M", client.protocol, "-l"])
            .arg(format!("--log-prefix={}", prefix.display()))
            .args(match length {
                // The turns of the others count for pgbench, which only ends by it.
                Length::Milliseconds(each) => {
                    ["-T".to_owned(), (each * sides).div_ceil(1000).to_string()]
                }
                Length::Transactions(count) => ["-t".to_owned(), count.to_string()],
            })
            .args(client.arguments)
            .current_dir(dir)
            .stdout(file)
            .stderr(errors)
            .stdin(Stdio::null());
        if !client.script.is_empty() {
            let script = prefix.with_extension("sql");
            std::fs::write(&script, &client.script).expect("a script for pgbench");
            command.arg("-f").arg(&script);
        }
        let process = command.spawn().expect("pgbench");
        let log = dir.join(format!("pgbench-{number}.{}", process.id()));
        OneProcessor::take(&process);
        Run {
            process,
            log,
            output,
        }
    }

    fn outcome(&mut self) -> Outcome {
        let status = self.process.wait().expect("pgbench");
        let text = read_to_string(&self.output).expect("what pgbench says");
        let ok = status.success() && text.contains("number of failed transactions: 0 ");
        assert!(ok, "pgbench: {status}\n{text}");
        // client, transaction, time in microseconds, …
        let log = read_to_string(&self.log).expect("pgbench's log");
        let times: Vec<f64> = log
            .lines()
            .map(|line| {
                let time = line.split_whitespace().nth(2);
                let time = time.and_then(|time| time.parse().ok());
                time.unwrap_or_else(|| panic!("a line of pgbench's log: {line}"))
            })
            .collect();
        std::fs::remove_file(&self.log).expect("the log can be removed");
        Outcome {
            tps: 1e6 / trimmed_mean(&times, TRIMMED),
            transactions: times.len() as u64,
        }
    }
}

/// Where a benchmark breaks off, none stays behind, stopped for ever.
impl Drop for Run {
    fn drop(&mut self) {
        // Mostly it has ended, and been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Fill pgbench's own tables.
pub fn initialize(server: &Server, database: &str, scale: u64) {
    let mut command = server.tool("pgbench", database);
    server.must_run(command.args(["-i", "-q", "-s", &scale.to_string()]));
}
