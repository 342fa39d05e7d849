//! Signals to a server's processes, and whether they are still there (Linux).

use std::process::Command;

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

/// A process's state and its parent, from `/proc/PID/stat`.
fn state(pid: i32) -> Option<(char, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it, in parentheses, may have any character.
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}
