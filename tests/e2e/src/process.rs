//! Signals to a server's processes, and whether they are still there (Linux).

use std::process::Command;
use std::time::Duration;

use crate::tools::run;

/// Send a signal; returns whether the process existed.
pub(crate) fn signal(pid: i32, name: &str) -> bool {
    assert!(pid > 1, "not a process of a server: {pid}");
    // The shell's own `kill`: the program is not installed everywhere.
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s \"$1\" \"$2\"", "kill", name])
        .arg(pid.to_string());
    let output = run(&mut kill);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || message.contains("No such process"),
        "kill -s {name} {pid}: {message}"
    );
    output.status.success()
}

/// The processes that this one has started and that are still there.
pub(crate) fn children(parent: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| state(*pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

/// Whether a process has ended, collected by its parent or not.
pub(crate) fn ended(pid: i32) -> bool {
    state(pid).is_none_or(|(state, _)| state == 'Z' || state == 'X')
}

/// Whether the process id is still taken.
pub(crate) fn listed(pid: i32) -> bool {
    state(pid).is_some()
}

/// A process's state and its parent.
fn state(pid: i32) -> Option<(char, i32)> {
    let words = status(pid)?;
    let state = words.first()?.chars().next()?;
    Some((state, words.get(1)?.parse().ok()?))
}

/// The words of `/proc/PID/stat` from the state on.
fn status(pid: i32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it, in parentheses, may have any character.
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// Processor time of a process so far, and of its children that have ended.
pub fn processor_time(pid: i32) -> Option<Duration> {
    let words = status(pid)?;
    let of = |n: usize| words.get(n)?.parse::<u64>().ok();
    let ticks: Option<u64> = (11..15).map(of).sum();
    // A tick is a hundredth of a second on Linux.
    Some(Duration::from_millis(10 * ticks?))
}
