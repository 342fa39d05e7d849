//! Waits with a generous limit, so that slow machines do not fail tests.

use std::time::{Duration, Instant};

use crate::session::Session;

/// A limit in seconds, far above what any step takes: no test depends on speed.
pub const PATIENCE: u64 = 90;

const STEP: Duration = Duration::from_millis(50);

/// How many seconds a test of a race goes on: as many as `TTL_RACE_SECONDS` says, or these.
///
/// # Panics
/// If that is no number.
pub fn race_seconds(usual: u64) -> u64 {
    std::env::var("TTL_RACE_SECONDS").map_or(usual, |text| {
        text.parse().expect("TTL_RACE_SECONDS must be a number")
    })
}

/// Repeat until there is an answer.
///
/// # Panics
/// If there is none in time.
#[track_caller]
pub fn until<T>(what: &str, seconds: u64, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(
            Instant::now() < deadline,
            "waited {seconds} s in vain: {what}"
        );
        std::thread::sleep(STEP);
    }
}

impl Session {
    /// Repeat until a query has this value.
    ///
    /// # Panics
    /// If it fails, or has another value all the time.
    #[track_caller]
    pub fn wait_until(&mut self, sql: &str, expected: &str, seconds: u64) {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            let value = self.value(sql);
            if value == expected {
                return;
            }
            if Instant::now() >= deadline {
                let what = format!(
                    "still {value:?} and not {expected:?} after {seconds} s\n{}",
                    self.deletion_state()
                );
                self.fail(sql, &what);
            }
            std::thread::sleep(STEP);
        }
    }

    /// What the background workers do and have done, for a failure's message.
    fn deletion_state(&mut self) -> String {
        let queries = [
            "SELECT pid, backend_type, datname, state, wait_event, query
               FROM pg_stat_activity WHERE backend_type LIKE 'ttl_ext%'",
            "SELECT * FROM ttl.stats",
            "SELECT relation, default_ttl, problems FROM ttl.tables",
        ];
        let mut text = String::new();
        for query in queries {
            match self.try_run(query) {
                Ok(messages) => {
                    let rows = messages.iter().filter_map(crate::session::row_text);
                    rows.for_each(|row| text += &format!("  {}\n", row.join(" | ")));
                }
                Err(error) => text += &format!("  {}\n", crate::session::describe(&error)),
            }
        }
        text
    }
}

/// Wait until the standby has replayed what the primary has written.
///
/// # Panics
/// If it does not.
pub fn catch_up(primary: &mut Session, standby: &mut Session) {
    let written = primary.value("SELECT pg_current_wal_lsn()");
    let query = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
    until("the standby catches up", 120, || {
        (standby.value(&query) == "t").then_some(())
    });
}
