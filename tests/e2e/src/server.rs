//! Servers that a test starts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use postgres::{Config, NoTls};

use crate::database::Database;
use crate::guard::Guard;
use crate::leftovers;
use crate::limit;
use crate::session::{Session, describe};
use crate::tools::{Tools, run, tail};

/// All servers listen on a socket of their own, so they share one port.
pub(crate) const PORT: u16 = 5432;

/// The socket's path may have 107 bytes, and its name takes 17 of them.
const MAX_DIR: usize = 85;

/// How a client reaches the server in this directory.
pub(crate) fn client_of(dir: &Path) -> Config {
    let mut config = Config::new();
    config.host_path(dir).port(PORT);
    config
}

/// A running server. It is stopped and removed when dropped, or when the
/// process ends in whatever way.
#[derive(Debug)]
pub struct Server {
    pub(crate) tools: Tools,
    dir: PathBuf,
    /// Whether the test kills processes of this server on purpose.
    pub(crate) crashes: AtomicBool,
    /// Whether databases stay when the test that made them has ended.
    keeps_databases: AtomicBool,
    // The last field: dropped after everything else.
    _guard: Guard,
}

impl Server {
    /// A new cluster with the extension preloaded, and these settings beside
    /// and after the harness's own. Nothing is deleted in the background unless
    /// they turn that on.
    pub fn start(settings: &[(&str, &str)]) -> Server {
        let server = Server::create(Tools::from_env(), &[], settings);
        server.launch();
        server
    }

    /// A new cluster that is not started yet: by initdb, or a copy of what that has made with
    /// the same arguments.
    pub(crate) fn create(tools: Tools, initdb: &[&str], settings: &[(&str, &str)]) -> Server {
        let server = Server::prepare(tools);
        let mut make = match &server.tools.template {
            Some(template) if initdb.is_empty() => {
                let mut copy = Command::new("cp");
                copy.arg("-R").arg(template);
                copy
            }
            _ => {
                let mut command = server.tools.command("initdb");
                command
                    .args(["-U", "postgres", "-A", "trust", "--no-sync"])
                    .args(["--locale=C", "--encoding=UTF8"])
                    .args(initdb)
                    .arg("-D");
                command
            }
        };
        server.must_run(make.arg(server.data()));
        server.configure(&[
            ("shared_preload_libraries", "ttl_ext"),
            ("listen_addresses", ""),
            ("fsync", "off"),
            ("full_page_writes", "off"),
            ("max_connections", "40"),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            ("log_line_prefix", "%m [%p] %b %q%d "),
            ("ttl.enabled", "off"),
            // Backlogs are what many tests begin with.
            ("ttl.guard_fraction", "1"),
            ("ttl.change_delay", "0"),
        ]);
        server.configure(settings);
        server.configure(&[("unix_socket_directories", server.dir_text())]);
        server
    }

    /// A streaming standby of this server, with further settings of its own.
    pub fn start_standby(&self, settings: &[(&str, &str)]) -> Server {
        let standby = Server::prepare(self.tools.clone());
        let mut backup = self.tool("pg_basebackup", "");
        backup
            .args([
                "-R",
                "--no-sync",
                "--checkpoint=fast",
                "--wal-method=stream",
            ])
            .arg("-D")
            .arg(standby.data());
        standby.must_run(&mut backup);
        standby.configure(settings);
        standby.configure(&[("unix_socket_directories", standby.dir_text())]);
        standby.launch();
        standby
    }

    fn prepare(tools: Tools) -> Server {
        limit::begins();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "ttl-e2e-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let mut dir = std::env::temp_dir().join(&name);
        if dir.as_os_str().len() > MAX_DIR {
            dir = Path::new("/tmp").join(&name);
        }
        std::fs::create_dir(&dir)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", dir.display()));
        let guard = Guard::of(&tools, &dir);
        Server {
            tools,
            dir,
            crashes: AtomicBool::new(false),
            keeps_databases: AtomicBool::new(false),
            _guard: guard,
        }
    }

    /// Append settings to `postgresql.conf`; the last one of a name counts.
    pub fn configure(&self, settings: &[(&str, &str)]) {
        use std::io::Write;
        let path = self.data().join("postgresql.conf");
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("postgresql.conf");
        for (name, value) in settings {
            let value = value.replace('\'', "''");
            writeln!(file, "{name} = '{value}'").expect("postgresql.conf");
        }
    }

    /// Start the server, which is stopped, and wait until it takes connections.
    pub fn launch(&self) {
        self.launch_with(&[]);
    }

    /// The same with further variables in the server's environment.
    pub fn launch_with(&self, environment: &[(&str, &str)]) {
        let mut start = self.tools.command("pg_ctl");
        start
            .envs(environment.iter().copied())
            .args(["-w", "-t", "120", "-s", "-D"])
            .arg(self.data())
            .arg("-l")
            .arg(self.log())
            .arg("start")
            // The server would keep pipes open, and with them the caller waiting.
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let status = start.status().expect("cannot run pg_ctl");
        assert!(status.success(), "no start\n{}", tail(&self.log()));
    }

    /// Databases stay when their tests end: DROP DATABASE ends workers, and the log says so.
    pub fn keep_databases(&self) {
        self.keeps_databases.store(true, Ordering::Relaxed);
    }

    /// The server's major version.
    pub fn major(&self) -> u32 {
        self.tools.major
    }

    /// A connection string for this server, as a subscription needs it.
    pub fn conninfo(&self, database: &str) -> String {
        format!(
            "host={} port={PORT} user=postgres dbname={database}",
            self.dir.display()
        )
    }

    /// A directory for a test's files, removed with the server.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn dir_text(&self) -> &str {
        self.dir.to_str().expect("a path in UTF-8")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// Create a database without the extension.
    pub fn plain_database(&self, name: &str) -> Database<'_> {
        self.connect("postgres", "postgres")
            .run(&format!("CREATE DATABASE {name}"));
        if !self.keeps_databases.load(Ordering::Relaxed) {
            leftovers::drop_with_test(&self.dir, name);
        }
        Database::new(self, name)
    }

    /// Create a database with the extension.
    pub fn database(&self, name: &str) -> Database<'_> {
        let database = self.plain_database(name);
        database.connect().run("CREATE EXTENSION ttl_ext");
        database
    }

    /// A database that is there, a standby's for example.
    pub fn existing_database(&self, name: &str) -> Database<'_> {
        Database::new(self, name)
    }

    /// A session of this user in this database.
    pub fn connect(&self, database: &str, user: &str) -> Session {
        self.connect_with(database, user, "")
    }

    /// A session with command-line options, such as `-c search_path=a`, which
    /// RESET restores.
    pub fn connect_with(&self, database: &str, user: &str, options: &str) -> Session {
        self.try_connect(database, user, options)
            .unwrap_or_else(|error| panic!("{}\n{}", describe(&error), tail(&self.log())))
    }

    /// A session, or the error, for a server that may be down.
    pub fn try_connect(
        &self,
        database: &str,
        user: &str,
        options: &str,
    ) -> Result<Session, postgres::Error> {
        let client = client_of(&self.dir)
            .dbname(database)
            .user(user)
            .options(options)
            .connect(NoTls)?;
        Ok(Session::new(client, self.log()))
    }

    /// A command for one of libpq's programs, set to connect here as superuser.
    pub fn tool(&self, program: &str, database: &str) -> Command {
        let mut command = self.tools.command(program);
        command
            .env("PGHOST", &self.dir)
            .env("PGPORT", PORT.to_string())
            .env("PGUSER", "postgres");
        if !database.is_empty() {
            command.env("PGDATABASE", database);
        }
        command
    }

    /// Run a command that must succeed.
    #[track_caller]
    pub fn must_run(&self, command: &mut Command) -> Output {
        let output = run(command);
        assert!(
            output.status.success(),
            "{command:?}: {}\n{}{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            tail(&self.log())
        );
        output
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_unharmed();
        }
    }
}
