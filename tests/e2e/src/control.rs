//! Stops a server in each way, starts it again, promotes it.

use std::time::{Duration, Instant};

use crate::process;
use crate::server::{PORT, Server};
use crate::wait::until;

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// When the last client has left.
    Smart,
    /// Sessions are ended, and a checkpoint is written.
    Fast,
    /// As in a crash: processes end at once, and the next start recovers.
    Immediate,
}

impl Server {
    /// Stop the server; returns how long that took.
    ///
    /// # Panics
    /// If it does not stop within two minutes.
    pub fn stop(&self, how: Stop) -> Duration {
        let mode = match how {
            Stop::Smart => "smart",
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        let begin = Instant::now();
        self.pg_ctl(&["-w", "-t", "120", "-m", mode, "stop"]);
        begin.elapsed()
    }

    /// Stop the server fast and start it again, for settings that need it.
    pub fn restart(&self) {
        self.stop(Stop::Fast);
        self.launch();
    }

    /// Write settings and let the server read them again.
    pub fn reload(&self, settings: &[(&str, &str)]) {
        self.configure(settings);
        self.pg_ctl(&["reload"]);
        // Waits for the reload: sessions get the signal last.
        for (name, value) in settings {
            until(&format!("{name} = {value} after reload"), 60, || {
                let mut session = self.connect("postgres", "postgres");
                (session.value(&format!("SHOW {name}")) == *value).then_some(())
            });
        }
    }

    /// Make a standby the primary.
    pub fn promote(&self) {
        self.pg_ctl(&["-w", "-t", "120", "promote"]);
    }

    /// The process ID of its postmaster.
    ///
    /// # Panics
    /// If it is not running.
    pub fn postmaster(&self) -> i32 {
        let file = self.data().join("postmaster.pid");
        let text = std::fs::read_to_string(file).expect("postmaster.pid of a running server");
        let pid = text.lines().next().and_then(|line| line.parse().ok());
        pid.expect("a process id in postmaster.pid")
    }

    /// Processor time of all its processes so far, and of those that have ended.
    pub fn processor_time(&self) -> Duration {
        let postmaster = self.postmaster();
        let all = process::children(postmaster)
            .into_iter()
            .chain([postmaster]);
        all.filter_map(process::processor_time).sum()
    }

    /// Kill the postmaster by SIGKILL and wait until its children have noticed.
    /// [`Server::launch`] starts it again.
    ///
    /// # Panics
    /// If a child goes on without it for two minutes.
    pub fn kill_postmaster(&self) {
        let pid = self.postmaster();
        // The postmaster is stopped first, so that it starts no child in between.
        assert!(process::signal(pid, "STOP"), "no postmaster {pid}");
        let children = process::children(pid);
        assert!(process::signal(pid, "KILL"), "no postmaster {pid}");
        until("the end of all processes of the server", 120, || {
            let mut all = children.iter().chain([&pid]);
            all.all(|pid| process::ended(*pid)).then_some(())
        });
        // Without a process that reaps orphans, the dead postmaster keeps its process ID, and the
        // next one would take it for alive.
        if process::listed(pid) {
            std::fs::remove_file(self.data().join("postmaster.pid")).expect("postmaster.pid");
            let lock = self.dir().join(format!(".s.PGSQL.{PORT}.lock"));
            std::fs::remove_file(lock).expect("the lock of the socket");
        }
    }

    /// Kill a process of the server by SIGKILL; returns whether it existed. The postmaster then
    /// ends all others and recovers.
    pub fn kill(&self, pid: i32) -> bool {
        process::signal(pid, "KILL")
    }

    /// Stop a process of the server by SIGSTOP, or let it go on by SIGCONT.
    pub fn stop_process(&self, pid: i32, stopped: bool) {
        assert!(
            self.try_stop_process(pid, stopped),
            "process {pid} has ended"
        );
    }

    /// The same of a process that may have ended; false if it has.
    pub fn try_stop_process(&self, pid: i32, stopped: bool) -> bool {
        process::signal(pid, if stopped { "STOP" } else { "CONT" })
    }

    fn pg_ctl(&self, arguments: &[&str]) {
        let mut command = self.tools.command("pg_ctl");
        command.arg("-s").arg("-D").arg(self.data()).args(arguments);
        self.must_run(&mut command);
    }
}
