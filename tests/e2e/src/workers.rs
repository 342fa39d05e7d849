//! The launcher and the workers of background deletion, as a client sees them.

use crate::database::Database;
use crate::server::Server;
use crate::session::Session;
use crate::wait::PATIENCE;

/// What makes deletion eager: no throttle, and a look at each table every second.
pub(crate) const EAGER: [(&str, &str); 3] = [
    ("ttl.enabled", "on"),
    ("ttl.naptime", "1s"),
    ("ttl.min_effort", "100"),
];

impl Server {
    /// A new cluster that deletes expired rows without delay.
    pub fn start_sweeping(settings: &[(&str, &str)]) -> Server {
        let mut all = EAGER.to_vec();
        all.extend(settings);
        Server::start(&all)
    }
}

impl Session {
    /// The processes of a kind (`ttl_ext worker`), in one database if it is named.
    pub fn pids(&mut self, kind: &str, database: Option<&str>) -> Vec<i32> {
        let of = database.map(|name| format!("AND datname = '{name}'"));
        let pids = self.column(&format!(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = '{kind}' {}",
            of.unwrap_or_default()
        ));
        let parse = |pid: &String| pid.parse().expect("a process id");
        pids.iter().map(parse).collect()
    }

    /// The background workers that delete.
    pub fn workers(&mut self) -> Vec<i32> {
        self.pids("ttl_ext worker", None)
    }

    /// Wait until the launcher has looked at all databases twice from now on, and so has left alone
    /// those that it should. It reports that it is idle after each look.
    #[track_caller]
    pub fn launcher_looks_again(&mut self) {
        let looked =
            "SELECT state_change FROM pg_stat_activity WHERE backend_type = 'ttl_ext launcher'";
        // The first of them may have begun before.
        for _ in 0..3 {
            let before = self.value(looked);
            self.wait_until(&format!("SELECT ({looked}) > '{before}'"), "t", PATIENCE);
        }
    }

    /// Wait until so many workers are in that database.
    #[track_caller]
    pub fn wait_for_workers(&mut self, database: &str, count: usize) {
        let query = format!(
            "SELECT count(*) FROM pg_stat_activity
              WHERE backend_type = 'ttl_ext worker' AND datname = '{database}'"
        );
        self.wait_until(&query, &count.to_string(), PATIENCE);
    }
}

impl Database<'_> {
    /// Wait until one worker deletes here, and its process id.
    pub fn worker(&self) -> i32 {
        let mut session = self.server().connect("postgres", "postgres");
        crate::wait::until(&format!("a worker in {}", self.name), PATIENCE, || {
            let pids = session.pids("ttl_ext worker", Some(&self.name));
            pids.first().copied()
        })
    }

    /// Do something while no worker is in this database and none can start, so that workers find
    /// expired rows and locks on them together. No session can begin meanwhile.
    pub fn without_workers(&self, act: impl FnOnce()) {
        let mut admin = self.server().connect("postgres", "postgres");
        let mut allow = |connections: bool| {
            admin.run(&format!(
                "ALTER DATABASE {} ALLOW_CONNECTIONS {connections}",
                self.name
            ));
            if !connections {
                admin.wait_for_workers(&self.name, 0);
            }
        };
        allow(false);
        act();
        allow(true);
    }
}
