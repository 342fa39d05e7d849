//! The machine, and what its processes use (Linux).

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use ttl_ext_e2e::Server;

/// What a reader of the figures has to know of the machine.
pub fn describe() -> BTreeMap<String, String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let field = |file: &str, name: &str| {
        let text = read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim());
        value.unwrap_or("unknown").to_owned()
    };
    let memory = field("/proc/meminfo", "MemTotal");
    let memory: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(0.0);
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let temporary = std::env::temp_dir();
    let disk = Command::new("stat")
        .args(["-f", "-c", "%T"])
        .arg(&temporary)
        .output();
    let disk = disk.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    );
    [
        ("file system of the servers", disk.trim().to_owned()),
        (
            "processors",
            format!("{cores} × {}", field("/proc/cpuinfo", "model name")),
        ),
        ("memory", format!("{:.0} GB", memory / 1e6)),
        ("kernel", kernel.trim().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Servers and their clients on one processor, the machine's last, until it is dropped.
pub struct OneProcessor(Vec<i32>);

impl OneProcessor {
    /// These servers, with all their processes.
    pub fn of<'a>(servers: impl Iterator<Item = &'a Server>) -> OneProcessor {
        let postmasters: Vec<_> = servers.map(postmaster).collect();
        let one = OneProcessor(postmasters);
        one.place(&last_processor());
        one
    }

    /// A client of theirs.
    pub fn take(client: &Child) {
        let pid = Pid::from_child(client);
        sched_setaffinity(Some(pid), &last_processor()).expect("a processor for a client");
    }

    fn place(&self, processors: &CpuSet) {
        for &postmaster in &self.0 {
            for pid in std::iter::once(postmaster).chain(children(postmaster)) {
                // One that ends meanwhile is none that matters.
                let _ = sched_setaffinity(Pid::from_raw(pid), processors);
            }
        }
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        self.place(&sched_getaffinity(None).expect("this process's processors"));
    }
}

fn last_processor() -> CpuSet {
    let all = sched_getaffinity(None).expect("this process's processors");
    let last = (0..CpuSet::MAX_CPU).rev().find(|&n| all.is_set(n));
    let mut set = CpuSet::new();
    set.set(last.expect("a processor"));
    set
}

/// Stop a process, until [`resume`].
pub fn suspend(process: &Child) {
    send(process, Signal::STOP);
}

/// Let it go on.
pub fn resume(process: &Child) {
    send(process, Signal::CONT);
}

fn send(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).expect("a child not waited for");
}

/// The load averages.
pub fn load() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The date and time in UTC.
pub fn date() -> String {
    let output = Command::new("date")
        .args(["-u", "+%F %T"])
        .output()
        .expect("date");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Seconds since 1970.
pub fn now() -> f64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs_f64()
}

/// Seconds of processor time that a process's first thread has used so far, to the nanosecond while it
/// does not run.
///
/// # Panics
/// If there is no such process.
pub fn processor_time(pid: i32) -> f64 {
    let text = read_to_string(format!("/proc/{pid}/schedstat"));
    let text = text.unwrap_or_else(|error| panic!("process {pid}: {error}"));
    let first = text.split_whitespace().next();
    let nanoseconds = first.and_then(|field| field.parse::<f64>().ok());
    nanoseconds.expect("nanoseconds in schedstat") / 1e9
}

/// Seconds of processor time that a server's processes have used so far, those that
/// have ended included, but for one session's (the one that is looking).
pub fn cpu_seconds(server: &Server, except: i32) -> f64 {
    Used::by(server, except).all
}

/// Seconds of processor time.
pub struct Used {
    /// Of all processes of a server, those that have ended included.
    pub all: f64,
    /// Of those that have ended.
    pub ended: f64,
}

impl Used {
    /// Used so far, but by one session (the one that is looking).
    pub fn by(server: &Server, except: i32) -> Used {
        let postmaster = postmaster(server);
        // The kernel's unit for these figures, whatever its own clock does.
        let seconds = |ticks: u64| ticks as f64 / 100.0;
        // Read again if a child has ended in between: its time has changed places.
        loop {
            let before = ended_children(postmaster);
            let mut ticks = own(postmaster) + before;
            for child in children(postmaster) {
                if child != except {
                    ticks += own(child) + ended_children(child);
                }
            }
            if ended_children(postmaster) == before {
                return Used {
                    all: seconds(ticks),
                    ended: seconds(before),
                };
            }
        }
    }

    /// Used since then.
    pub fn since(&self, before: &Used) -> Used {
        Used {
            all: self.all - before.all,
            ended: self.ended - before.ended,
        }
    }
}

/// A process's own memory in kB: what it shares with nobody, as after its end it would
/// be given back.
pub fn private_memory(pid: i32) -> f64 {
    private_memory_if_there(pid).unwrap_or_else(|| panic!("there is no process {pid}"))
}

/// The same of a process that may have ended.
pub fn private_memory_if_there(pid: i32) -> Option<f64> {
    let text = read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    let sum = lines
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
        .sum();
    Some(sum)
}

fn postmaster(server: &Server) -> i32 {
    let file = server.dir().join("data/postmaster.pid");
    let text = read_to_string(file).expect("postmaster.pid of a running server");
    let first = text.lines().next().and_then(|line| line.parse().ok());
    first.expect("a process id in postmaster.pid")
}

fn children(postmaster: i32) -> Vec<i32> {
    let file = format!("/proc/{postmaster}/task/{postmaster}/children");
    let text = read_to_string(file).expect("the postmaster's children");
    let pids = text.split_whitespace();
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// User and system time of a process, in ticks.
fn own(pid: i32) -> u64 {
    times(pid)[..2].iter().sum()
}

/// The same of its children that have ended.
fn ended_children(pid: i32) -> u64 {
    times(pid)[2..].iter().sum()
}

fn times(pid: i32) -> [u64; 4] {
    let text = read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it, in parentheses, may have any character.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = rest
        .split_whitespace()
        .skip(11)
        .map(|field| field.parse().unwrap_or(0));
    std::array::from_fn(|_| fields.next().unwrap_or(0))
}
