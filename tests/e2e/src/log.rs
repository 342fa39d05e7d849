//! What the server writes into its log.

use std::sync::atomic::Ordering;

use crate::server::Server;
use crate::tools::tail;
use crate::wait::until;

impl Server {
    /// The lines of the log that contain all of these words.
    pub fn log_lines(&self, words: &[&str]) -> Vec<String> {
        let text = std::fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text
            .lines()
            .filter(|line| words.iter().all(|w| line.contains(w)));
        lines.map(str::to_owned).collect()
    }

    /// Wait until so many lines of the log contain all of these words.
    ///
    /// # Panics
    /// If they do not come.
    pub fn wait_for_log(&self, words: &[&str], count: usize, seconds: u64) -> Vec<String> {
        until(
            &format!("{count} lines with {words:?} in {}", self.log().display()),
            seconds,
            || {
                let lines = self.log_lines(words);
                (lines.len() >= count).then_some(lines)
            },
        )
    }

    /// The test kills processes of this server, so its log may report crashes.
    pub fn allow_crash(&self) {
        self.crashes.store(true, Ordering::Relaxed);
    }

    /// Checks that no process of this server crashed (unless the test kills them) or failed an
    /// assertion; where processes are killed, Citus's own assertions do not count: one of them does not hold
    /// (`sock != -1`) when a node goes away during COPY.
    pub fn assert_unharmed(&self) {
        let mut bad = vec!["PANIC:", "TRAP:", "panicked at"];
        let crashes = self.crashes.load(Ordering::Relaxed);
        if !crashes {
            bad.push("was terminated by signal");
        }
        for line in self.log_lines(&[]) {
            assert!(
                crashes && line.contains("/src/backend/distributed/")
                    || !bad.iter().any(|word| line.contains(word)),
                "the server is harmed: {line}\n{}",
                tail(&self.log())
            );
        }
    }
}
