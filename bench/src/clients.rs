//! pgbench, from the server's own tree: one client a side, and all sides in turn.
//!
//! Two sides that do the very same differ by 10 % and more when each is run for a second:
//! the machine is faster or slower from one second to the next, and a client that the
//! kernel places on the processor of its server process takes 17 µs for a SELECT, one beside
//! it 63. So all sides' clients and servers share one processor, each side's client is
//! stopped while another's goes on, and they take turns every 10 ms. What is measured is the
//! processor time of the client and of its server process (`/proc/…/schedstat`), by the number of
//! transactions. Then the same twice differs by 1 % at most (`A/A` in the tables).
//!
//! The times that pgbench logs are not to be used here: where the server has answered before pgbench
//! asks, as it mostly has on the same processor, pgbench takes the time of the beginning for
//! that of the end, and logs 0.

use std::fs::read_to_string;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ttl_ext_e2e::Server;

use crate::context::{Figures, Runs};
use crate::fixtures::wait;
use crate::machine::{OneProcessor, now, processor_time, resume, suspend};
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

/// How long one side runs before it is the next one's turn.
const TURN: Duration = Duration::from_millis(10);

/// What a client has done in turn with others.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Transactions a second of processor time, the client's and its server process's.
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
    /// Run so many transactions; nobody else runs meanwhile.
    ///
    /// # Panics
    /// If a transaction fails.
    pub fn run(&self, transactions: u64) {
        let _one = OneProcessor::of(std::iter::once(self.server));
        let mut run = Run::start(0, self, &["-t".to_owned(), transactions.to_string()]);
        run.end();
        assert_eq!(run.transactions(|_| true), transactions);
        wait_for_ends(&[self]);
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
    let _one = OneProcessor::of(clients.iter().map(|client| client.server));
    // The turns of the others count for pgbench, which only ends by it, and so does its start.
    let length = Duration::from_millis(milliseconds * clients.len() as u64);
    let seconds = (length.as_secs() + 2).to_string();
    let arguments = ["-T".to_owned(), seconds];
    let mut runs: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(n, client)| {
            let run = Run::start(n, client, &arguments);
            let backend = run.backend(client.server);
            suspend(&run.process);
            (run, backend)
        })
        .collect();
    // Requests that are under way.
    std::thread::sleep(TURN);
    let time = |(run, backend): &(Run, i32)| processor_time(run.pid()) + processor_time(*backend);
    let (began, before): (f64, Vec<f64>) = (now(), runs.iter().map(time).collect());
    let end = Instant::now() + length;
    // Round and round: if the order turned about, those at its ends would have two
    // turns at once, and find the processor's caches as they left them.
    while Instant::now() < end {
        for (run, _) in &runs {
            resume(&run.process);
            std::thread::sleep(TURN);
            suspend(&run.process);
        }
    }
    std::thread::sleep(TURN);
    let (ended, after): (f64, Vec<f64>) = (now(), runs.iter().map(time).collect());
    runs.iter().for_each(|(run, _)| resume(&run.process));
    let outcomes = runs.iter_mut().zip(before.into_iter().zip(after));
    let outcomes = outcomes.map(|((run, _), (before, after))| {
        run.end();
        let measured = run.transactions(|at| at > began && at <= ended);
        assert!(measured > 0, "no transaction in the time that was measured");
        Outcome {
            tps: measured as f64 / (after - before),
            transactions: run.transactions(|_| true),
        }
    });
    let outcomes = outcomes.collect();
    wait_for_ends(&clients);
    outcomes
}

/// Sessions end a moment after their clients.
fn wait_for_ends(clients: &[&Client<'_>]) {
    let here = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgbench%'";
    for client in clients {
        let mut session = client.server.connect("postgres", "postgres");
        wait(&mut session, here, "0", 1, 10);
    }
}

/// A pgbench that has been started.
struct Run {
    process: Child,
    /// The name of its session.
    name: String,
    log: PathBuf,
    output: PathBuf,
}

impl Run {
    fn start(number: usize, client: &Client, length: &[String]) -> Run {
        let dir = client.server.dir();
        let name = format!("pgbench-{number}");
        let prefix = dir.join(&name);
        let output = prefix.with_extension("out");
        let file = std::fs::File::create(&output).expect("a file for what pgbench says");
        let errors = file.try_clone().expect("the same file");
        let mut command = client.server.tool("pgbench", client.database);
        command
            .args(["-n", "-c", "1", "-j", "1", "-M", client.protocol, "-l"])
            .arg(format!("--log-prefix={}", prefix.display()))
            .args(length)
            .env("PGAPPNAME", &name)
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
        let log = dir.join(format!("{name}.{}", process.id()));
        OneProcessor::take(&process);
        Run {
            process,
            name,
            log,
            output,
        }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).expect("a process ID")
    }

    /// The server's process for it, as soon as it is at work: pgbench has another session before that.
    fn backend(&self, server: &Server) -> i32 {
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::fs::metadata(&self.log).map_or(0, |log| log.len()) == 0 {
            assert!(Instant::now() < deadline, "pgbench logs nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut session = server.connect("postgres", "postgres");
        let sessions = format!(
            "FROM pg_stat_activity WHERE application_name = '{}'",
            self.name
        );
        wait(
            &mut session,
            &format!("SELECT count(*) {sessions}"),
            "1",
            1,
            10,
        );
        let pid = session.value(&format!("SELECT pid {sessions}"));
        pid.parse().expect("a process ID")
    }

    /// Wait for its end.
    fn end(&mut self) {
        let status = self.process.wait().expect("pgbench");
        let text = read_to_string(&self.output).expect("what pgbench says");
        let ok = status.success() && text.contains("number of failed transactions: 0 ");
        assert!(ok, "pgbench: {status}\n{text}");
    }

    /// How many transactions have ended at times that count, in seconds since 1970.
    fn transactions(&self, counts: impl Fn(f64) -> bool) -> u64 {
        // client, transaction, its time, script, seconds, microseconds
        let log = read_to_string(&self.log).expect("pgbench's log");
        let ends = log.lines().map(|line| {
            let mut fields = line.split_whitespace().skip(4);
            let mut field = || fields.next()?.parse::<f64>().ok();
            let end = field().zip(field());
            let (seconds, micros) =
                end.unwrap_or_else(|| panic!("a line of pgbench's log: {line}"));
            seconds + micros / 1e6
        });
        ends.filter(|&end| counts(end)).count() as u64
    }
}

/// Where a benchmark breaks off, none stays behind, stopped for ever.
impl Drop for Run {
    fn drop(&mut self) {
        // Mostly it has ended, and been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

/// Fill pgbench's own tables.
pub fn initialize(server: &Server, database: &str, scale: u64) {
    let mut command = server.tool("pgbench", database);
    server.must_run(command.args(["-i", "-q", "-s", &scale.to_string()]));
}
