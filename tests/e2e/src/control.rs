//! Stops a server in each way, starts it again, promotes it.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use postgres::{Config, NoTls};

use crate::process;
use crate::server::{PORT, Server, client_of};
use crate::wait::{PATIENCE, until};

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

/// Types of wait events during which no lock in shared memory is held.
const AT_REST: [&str; 3] = ["Activity", "Extension", "Timeout"];

/// What type of event a process waits for.
fn wait_event(mut client: Config, pid: i32) -> Result<Option<String>, postgres::Error> {
    let mut session = client.user("postgres").dbname("postgres").connect(NoTls)?;
    let row = session.query_opt(
        "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $1",
        &[&pid],
    )?;
    Ok(row.and_then(|row| row.get(0)))
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

    /// Stop a process of the server by SIGSTOP where it waits for something to do. Anywhere else it may hold a lock in
    /// shared memory, and no session would get an answer, the test's own included. False if it has ended.
    ///
    /// # Panics
    /// If it never waits.
    pub fn stop_process(&self, pid: i32) -> bool {
        until("a process that waits", PATIENCE, || {
            if !process::signal(pid, "STOP") {
                return Some(false);
            }
            let (answer, answered) = mpsc::channel();
            let client = client_of(self.dir());
            std::thread::spawn(move || {
                let waits = wait_event(client, pid)
                    .is_ok_and(|event| event.is_some_and(|of| AT_REST.contains(&of.as_str())));
                // Nobody listens any more if it came too late.
                let _ = answer.send(waits);
            });
            if answered.recv_timeout(Duration::from_secs(10)) == Ok(true) {
                return Some(true);
            }
            process::signal(pid, "CONT");
            None
        })
    }

    /// Stop a process of the server wherever it is, or let it go on by SIGCONT; false if it has ended.
    pub fn signal_process(&self, pid: i32, stopped: bool) -> bool {
        process::signal(pid, if stopped { "STOP" } else { "CONT" })
    }

    fn pg_ctl(&self, arguments: &[&str]) {
        let mut command = self.tools.command("pg_ctl");
        command.arg("-s").arg("-D").arg(self.data()).args(arguments);
        self.must_run(&mut command);
    }
}
