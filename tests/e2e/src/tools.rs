//! Where the server's programs are, and how they are run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The programs of the PostgreSQL installation under test.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    bindir: PathBuf,
    /// The major version, 15 to 19.
    pub(crate) major: u32,
    /// A new cluster of the installation under test, to be copied.
    pub(crate) template: Option<PathBuf>,
}

/// Whether the server under test lacks a module of contrib that a test needs: it then leaves
/// itself out, with a line that `scripts/test-e2e.sh` counts.
pub fn lacks_library(name: &str, test: &str) -> bool {
    let lacks = !Tools::from_env().has_library(name);
    if lacks {
        println!("SKIPPED test: {test}: this server has no {name}");
    }
    lacks
}

impl Tools {
    /// The installation that `PG_CONFIG` points at.
    ///
    /// # Panics
    /// Without `PG_CONFIG`, or as root: PostgreSQL refuses to run as root.
    pub(crate) fn from_env() -> Tools {
        let pg_config = std::env::var("PG_CONFIG")
            .expect("PG_CONFIG must be the path of the pg_config of the server under test");
        let uid = stdout_of(Command::new("id").arg("-u"));
        assert_ne!(
            uid.trim(),
            "0",
            "PostgreSQL does not run as root: run this test binary as another user, as the Makefile does"
        );
        Tools {
            template: std::env::var_os("TTL_TEMPLATE").map(PathBuf::from),
            ..Tools::at(Path::new(&pg_config))
        }
    }

    /// The installation of this `pg_config`.
    fn at(pg_config: &Path) -> Tools {
        let bindir = stdout_of(Command::new(pg_config).arg("--bindir"));
        let version = stdout_of(Command::new(pg_config).arg("--version"));
        let major = version
            .split(|c: char| !c.is_ascii_digit())
            .find_map(|word| word.parse().ok())
            .unwrap_or_else(|| panic!("no version in {version:?}"));
        Tools {
            bindir: PathBuf::from(bindir.trim()),
            major,
            template: None,
        }
    }

    /// The private installation of another version beside this one, as
    /// `scripts/postgres.sh` lays them out (`…/pg17`, `…/pg18`); none if it is
    /// not there.
    pub(crate) fn of_major(&self, major: u32) -> Option<Tools> {
        let own = format!("pg{}", self.major);
        let root = self
            .bindir
            .ancestors()
            .find(|dir| dir.file_name().is_some_and(|name| *name == *own))?;
        let root = root.parent()?.join(format!("pg{major}"));
        let debian = format!("lib/postgresql/{major}/bin");
        ["bin", &debian, "pgserver/pginstall/bin"]
            .iter()
            .map(|bin| root.join(bin).join("pg_config"))
            .find(|path| path.exists())
            .map(|path| Tools::at(&path))
    }

    /// The directory of the programs.
    pub(crate) fn bindir(&self) -> &Path {
        &self.bindir
    }

    /// Whether the installation has the library of a module of contrib; what PyPI has of 16
    /// has none.
    fn has_library(&self, name: &str) -> bool {
        let directory = stdout_of(Command::new(self.path("pg_config")).arg("--pkglibdir"));
        Path::new(directory.trim())
            .join(format!("{name}.so"))
            .exists()
    }

    /// What CREATE EXTENSION makes in the schema `ttl`: the first lines of the
    /// statements in the script that is installed; none if it is not. (A script
    /// may have the functions of the tests in the crate beside them.)
    pub(crate) fn extension_objects(&self) -> Vec<String> {
        let share = stdout_of(Command::new(self.path("pg_config")).arg("--sharedir"));
        let dir = Path::new(share.trim()).join("extension");
        // There may be scripts of other versions.
        let control = std::fs::read_to_string(dir.join("ttl_ext.control")).unwrap_or_default();
        let version = control.lines().find_map(|line| {
            let value = line.strip_prefix("default_version = '")?;
            value.strip_suffix('\'')
        });
        let Some(version) = version else {
            return Vec::new();
        };
        let script = dir.join(format!("ttl_ext--{version}.sql"));
        let text = std::fs::read_to_string(&script)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", script.display()));
        let lines = text
            .lines()
            .filter(|line| line.starts_with("CREATE") && line.contains(" ttl."));
        let mut lines: Vec<_> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// A command for one of the server's programs, with an environment in which
    /// neither libpq's variables nor Rust's backtraces disturb anything.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bindir.join(program));
        command.env("LC_ALL", "C").stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("PG") && name != "PG_CONFIG" || name.starts_with("RUST_") {
                command.env_remove(&*name);
            }
        }
        command
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.bindir.join(program)
    }
}

/// Run a command to its end.
///
/// # Panics
/// If it cannot be started.
pub(crate) fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

fn stdout_of(command: &mut Command) -> String {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The last lines of a server's log, for a failure's message.
pub(crate) fn tail(log: &Path) -> String {
    const LINES: usize = 40;
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LINES);
    format!("--- {}\n{}", log.display(), lines[from..].join("\n"))
}
