//! A test that hangs fails, and says what it waits for, instead of holding up everything after it.

use std::io::Write;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

/// From the first server on this process has as many minutes as `TTL_LIMIT` says; without it, all it wants.
pub(crate) fn begins() {
    static ONCE: Once = Once::new();
    let limit = std::env::var("TTL_LIMIT").ok();
    let Some(minutes) = limit.and_then(|text| text.parse::<u64>().ok()) else {
        return;
    };
    ONCE.call_once(|| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(60 * minutes));
            let processes = Command::new("ps")
                .args(["axww", "-o", "pid,ppid,stat,etime,args"])
                .output();
            let list = processes.map_or_else(|error| error.to_string().into(), |ps| ps.stdout);
            // Not by a macro: that would be kept with what the test says, which does not end.
            let mut to = std::io::stderr();
            let _ = writeln!(to, "not at an end after {minutes} minutes; what runs then:");
            let _ = to.write_all(&list);
            // Guards stop the servers.
            std::process::exit(1);
        });
    });
}
