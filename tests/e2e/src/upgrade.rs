//! From one major version to the next by pg_upgrade.

use crate::server::Server;
use crate::tools::Tools;

/// A server of the version before, to become one of the version under test.
#[derive(Debug)]
pub struct Upgrade {
    tools: Tools,
    /// The old server, not started.
    pub old: Server,
}

impl Upgrade {
    /// A new cluster of an older version that is installed beside the one under
    /// test, with this extension; or why there is none.
    pub fn prepare(settings: &[(&str, &str)]) -> Result<Upgrade, String> {
        let tools = Tools::from_env();
        let older = (15..tools.major).rev().find_map(|n| tools.of_major(n));
        let Some(older) = older else {
            return Err(format!("no installation older than {}", tools.major));
        };
        // What is installed there may be of another state of the sources.
        if older.extension_objects() != tools.extension_objects() {
            return Err(format!(
                "the installation of {} does not have this build of the extension",
                older.major
            ));
        }
        let old = Server::create(older, &[], settings);
        Ok(Upgrade { tools, old })
    }

    /// Upgrade the old server, which is stopped, to a new one, and start that.
    pub fn run(self, settings: &[(&str, &str)]) -> Server {
        // 18 makes clusters with checksums, the older ones make them without.
        let initdb: &[&str] = match self.tools.major {
            ..18 => &[],
            _ => &["--no-data-checksums"],
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
