//! Dumps by a role that may only read: `pg_read_all_data`.

use std::path::{Path, PathBuf};

use ttl_ext_e2e::{Database, Server};

/// A live row, an expired one, and a child that keeps an expired parent.
const ROWS: &str = "
CREATE TABLE parent (id integer PRIMARY KEY, what text);
CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES parent);
SELECT ttl.enable('parent', 3600);
INSERT INTO parent VALUES (1, 'it is live'), (2, 'it has expired'), (3, 'it is kept by a child');
INSERT INTO child VALUES (1, 3);
SET ttl.preserve_ts = on;
UPDATE parent SET _ts = now() - interval '1 day' WHERE id > 1;
RESET ttl.preserve_ts;
CREATE ROLE backup LOGIN;
GRANT pg_read_all_data TO backup";

fn dump(database: &Database<'_>, user: &str, options: &str) -> PathBuf {
    let server = database.server();
    let path = server.dir().join(format!("{user}{}.sql", options.len()));
    let mut dump = database.tool("pg_dump");
    dump.env("PGUSER", user).env("PGOPTIONS", options);
    server.must_run(dump.arg("-f").arg(&path));
    path
}

/// Without the lines that differ from one run to the next.
fn text(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("the dump");
    let lines = text.lines().filter(|line| !line.starts_with('\\'));
    lines.collect::<Vec<_>>().join("\n")
}

/// Restores a dump; what psql says if it fails.
fn restore(server: &Server, name: &str, path: &Path) -> Result<(), String> {
    let target = server.plain_database(name);
    let mut psql = target.tool("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]);
    let output = psql.arg(path).output().expect("psql");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(said)
    }
}

#[test]
fn by_pg_read_all_data() {
    let server = Server::start(&[]);
    let source = server.database("source");
    source.connect().run(ROWS);

    // Live rows only, so a child may miss its parent.
    let live = dump(&source, "backup", "");
    let said = text(&live);
    assert!(
        said.contains("it is live") && !said.contains("it has expired"),
        "{said}"
    );
    assert!(said.contains("SECURITY LABEL FOR ttl ON TABLE"), "{said}");
    let failed = restore(&server, "live", &live).expect_err("the child's parent is missing");
    assert!(
        failed.contains("violates foreign key constraint"),
        "{failed}"
    );

    // With one privilege more it is the dump that a superuser makes.
    let shows = "-c ttl.show_expired=on";
    source
        .connect()
        .run("GRANT SET ON PARAMETER ttl.show_expired TO backup");
    let all = dump(&source, "backup", shows);
    assert_eq!(text(&all), text(&dump(&source, "postgres", "")));
    restore(&server, "complete", &all).expect("a complete dump");
    let target = server.existing_database("complete");
    assert_eq!(target.disk().count("parent"), 3);
    assert_eq!(target.connect().column("SELECT id FROM parent"), ["1"]);
    assert_eq!(target.connect().column("SELECT parent FROM child"), ["3"]);
}
