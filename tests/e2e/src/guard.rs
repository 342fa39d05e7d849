//! Nothing stays behind: a small process of its own that outlives the test.
//!
//! A test may panic, be interrupted, or be killed by SIGKILL, and a server held
//! in a `static` is never dropped. So every server has a guard: a shell that
//! waits for the end of its input, the other end of which only this process
//! holds. However the process ends, the kernel closes the pipe, and the guard
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
            // A process group of its own: an interrupt from the terminal is for
            // the test alone.
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
