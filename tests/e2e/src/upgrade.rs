//! From one major version to the next by pg_upgrade.

use crate::control::Stop;
use crate::database::Database;
use crate::server::Server;
use crate::tools::Tools;
use std::io::Write;

/// A server of the version before, to become one of the version under test.
#[derive(Debug)]
pub struct Upgrade {
    tools: Tools,
    /// The old server, not started.
    pub old: Server,
}

impl Upgrade {
    /// Fill the database "app" of a cluster of an older version, and upgrade it to one
    /// of the version under test that sweeps. `None` if there is no older version: the
    /// test says that it is skipped.
    pub fn of_app(fill: impl Fn(&Database<'_>)) -> Option<Server> {
        let tools = Tools::from_env();
        let Some(newest) = Self::older(&tools).pop() else {
            skip(&format!("no installation older than {}", tools.major));
            return None;
        };
        Self::from(newest, &fill)
    }

    /// The same from each older version, the oldest first: its number, and a way to the upgraded server.
    pub fn each_of_app(fill: impl Fn(&Database<'_>), check: impl Fn(u32, Server)) {
        let tools = Tools::from_env();
        let older = Self::older(&tools);
        if older.is_empty() {
            skip(&format!("no installation older than {}", tools.major));
        }
        for older in older {
            let major = older.major;
            if let Some(server) = Self::from(older, &fill) {
                check(major, server);
            }
        }
    }

    /// The older versions that are installed beside the one under test.
    fn older(tools: &Tools) -> Vec<Tools> {
        (15..tools.major)
            .filter_map(|major| tools.of_major(major))
            .collect()
    }

    fn from(older: Tools, fill: &impl Fn(&Database<'_>)) -> Option<Server> {
        let major = older.major;
        let upgrade = match Upgrade::prepare(older) {
            Ok(upgrade) => upgrade,
            Err(reason) => {
                skip(&format!("from {major}: {reason}"));
                return None;
            }
        };
        upgrade.old.launch();
        let source = upgrade.old.database("app");
        fill(&source);
        // Debian's 15 may store an option of columns that no newer version knows.
        source.connect().run(
            "SET allow_system_table_mods = on;
             UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '%pg_attver%'",
        );
        drop(source);
        upgrade.old.stop(Stop::Fast);
        Some(upgrade.run(&[
            ("ttl.enabled", "on"),
            ("ttl.naptime", "1s"),
            ("ttl.min_effort", "100"),
        ]))
    }

    /// A new cluster of the older version, with this extension; or why there is none.
    fn prepare(older: Tools) -> Result<Upgrade, String> {
        let tools = Tools::from_env();
        // What is installed there may be of another state of the sources.
        if older.extension_objects() != tools.extension_objects() {
            return Err(format!(
                "the installation of {} does not have this build of the extension",
                older.major
            ));
        }
        let old = Server::create(older, &[], &[]);
        Ok(Upgrade { tools, old })
    }

    /// Upgrade the old server, which is stopped, to a new one, and start that.
    fn run(self, settings: &[(&str, &str)]) -> Server {
        // From 18 on clusters have checksums, before they have none.
        let initdb: &[&str] = match (self.old.tools.major, self.tools.major) {
            (..18, 18..) => &["--no-data-checksums"],
            _ => &[],
        };
        let new = Server::create(self.tools, initdb, settings);
        let mut upgrade = new.tools.command("pg_upgrade");
        upgrade
            .args(["-U", "postgres"])
            .arg("-b")
            .arg(self.old.tools.bindir())
            .arg("-B")
            .arg(new.tools.bindir())
            .arg("-d")
            .arg(self.old.data())
            .arg("-D")
            .arg(new.data())
            // It writes its logs, and makes its sockets, where it runs.
            .current_dir(new.dir());
        new.must_run(&mut upgrade);
        new.launch();
        new
    }
}

/// Past the test harness, which shows what is printed in failures only.
fn skip(reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED: pg_upgrade: {reason}").expect("stderr");
}
