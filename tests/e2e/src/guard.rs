//! Stops a test's server, however the test ends.
//!
//! A test may panic, be interrupted, or be killed by SIGKILL, and a server in a `static` is never
//! dropped. So each server has a guard: a shell that waits for the end of its input, a pipe that
//! only this process holds open. When the process ends, the kernel closes the pipe, and the guard
//! stops the server and removes its directory.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::tools::Tools;

const SCRIPT: &str = r#"
trap '' INT HUP TERM
cat >/dev/null
[ -f "$2/data/postmaster.pid" ] && "$1" -D "$2/data" -m immediate -t 60 -w -s stop
rm -rf "$2"
"#;

/// Stops the server in a directory and removes the directory, at the latest
/// when this process ends.
#[derive(Debug)]
pub(crate) struct Guard(Child);

impl Guard {
    pub(crate) fn of(tools: &Tools, dir: &Path) -> Guard {
        use std::os::unix::process::CommandExt;
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "guard"])
            .arg(tools.path("pg_ctl"))
            .arg(dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // In its own process group, so that an interrupt from the terminal reaches only the
            // test.
            .process_group(0)
            .spawn()
            .expect("cannot start sh");
        Guard(child)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Nothing useful can be done if this fails.
        let _ = self.0.wait();
    }
}
