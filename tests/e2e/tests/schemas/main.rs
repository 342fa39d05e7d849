//! Tables of applications with a time to live: the right rows are seen at each instant of a list, and
//! the right rows are left on disk afterwards. Tables and statements are as the framework writes them.
//!
//! A file is a kind of application, `-- = NAME` begins one. `-- at INSTANT` (UTC) begins what happens then:
//! statements with their answers (`ttl_ext_e2e::answers`), and
//!
//! - `-- left: TABLE.COLUMN: VALUES`: these are the rows that are seen, and then those on disk;
//! - `-- disk: TABLE.COLUMN: VALUES`: these are on disk afterwards. Others may be seen before: a foreign key keeps a row that is
//!   not seen, or deletes one with an expired row to which it refers.
//!
//! All run on one server, whose clock is set from instant to instant. While statements run, no worker does:
//! what is not seen is hidden, not deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ttl_ext_e2e::{Clock, PATIENCE, Server, Session, Stop, answers};

const FILES: &[(&str, &str)] = &[
    ("sessions", include_str!("sessions.sql")),
    ("caches", include_str!("caches.sql")),
    ("queues", include_str!("queues.sql")),
    ("tokens", include_str!("tokens.sql")),
    ("logs", include_str!("logs.sql")),
    ("others", include_str!("others.sql")),
    ("applications", include_str!("applications.sql")),
];

/// When the tables are created.
const BEFORE: &str = "2026-10-01 09:00";

/// Rows that are expected.
struct Rows<'a> {
    /// What is compared, as SQL: `id FROM t`.
    from: String,
    values: Vec<&'a str>,
    /// Whether they are all that is seen.
    seen: bool,
}

struct Application<'a> {
    name: &'a str,
    /// What is run before all instants, and at each.
    setup: &'a str,
    instants: BTreeMap<&'a str, &'a str>,
    session: Session,
}

/// The rows of `-- left:` and `-- disk:`.
fn expected(script: &str) -> Vec<Rows<'_>> {
    let rows = script.lines().filter_map(|line| {
        let (text, seen) = match line.strip_prefix("-- left: ") {
            Some(text) => (text, true),
            None => (line.strip_prefix("-- disk: ")?, false),
        };
        let (place, values) = match text.strip_suffix(':') {
            Some(place) => (place, ""),
            None => text.rsplit_once(": ").expect("values"),
        };
        let (table, rest) = place.split_once('.').expect("a column");
        let (column, condition) = rest.split_once(" WHERE ").unwrap_or((rest, "true"));
        Some(Rows {
            from: format!("{column} AS x FROM {table} WHERE {condition}"),
            // Values of a script may have colons, but no spaces.
            values: values.split_whitespace().collect(),
            seen,
        })
    });
    rows.collect()
}

impl Rows<'_> {
    fn query(&self) -> String {
        format!(
            "SELECT coalesce(string_agg(x::text, ' ' ORDER BY x), '') FROM (SELECT {}) AS t",
            self.from
        )
    }
}

impl Application<'_> {
    /// Its statements at this instant, and which rows it sees then.
    fn run(&mut self, at: &str) {
        let Some(script) = self.instants.get(at) else {
            return;
        };
        answers::follow(&mut self.session, script);
        for rows in expected(script).iter().filter(|rows| rows.seen) {
            let seen = self.session.value(&rows.query());
            assert_eq!(seen, rows.values.join(" "), "seen: {}", rows.from);
        }
    }

    /// Wait until the right rows are on disk.
    fn wait_for_disk(&mut self, at: &str) {
        let Some(script) = self.instants.get(at) else {
            return;
        };
        self.session.run("SET ttl.show_expired = on");
        for rows in expected(script) {
            let values = rows.values.join(" ");
            self.session.wait_until(&rows.query(), &values, PATIENCE);
        }
        self.session.run("RESET ttl.show_expired");
    }
}

fn applications(server: &Server) -> Vec<Application<'_>> {
    let mut found = Vec::new();
    let mut admin = server.connect("app", "postgres");
    for (file, text) in FILES {
        for (n, text) in text.split("-- = ").skip(1).enumerate() {
            let (name, text) = text.split_once('\n').expect("a name");
            let mut sections = text.split("-- at ");
            let setup = sections.next().unwrap_or_default();
            let instants = sections.map(|section| section.split_once('\n').expect("an instant"));
            let schema = format!("{file}_{n}");
            admin.run(&format!("CREATE SCHEMA {schema}"));
            let options = format!("-c search_path={schema} -c client_min_messages=warning");
            found.push(Application {
                name,
                setup,
                instants: instants.collect(),
                session: server.connect_with("app", "postgres", &options),
            });
        }
    }
    found
}

fn set_clock(admin: &mut Session, clock: &mut Clock, at: &str) {
    let ahead = format!(
        "SELECT ceil(extract(epoch FROM timestamptz '{at}+00' - clock_timestamp()))::bigint"
    );
    clock.step(admin.value(&ahead).parse().expect("seconds"));
}

fn set_workers(admin: &mut Session, on: bool) {
    admin.run(&format!("ALTER SYSTEM SET ttl.enabled = {on}"));
    admin.run("SELECT pg_reload_conf()");
    admin.wait_until("SHOW ttl.enabled", if on { "on" } else { "off" }, PATIENCE);
    if !on {
        admin.wait_for_workers("app", 0);
    }
}

#[test]
fn rows_of_applications_expire_when_they_should() {
    let (server, mut clock) =
        Server::start_with_clock(&[("max_connections", "80"), ("ttl.enabled", "off")]);
    server.database("app");
    // Not while it runs: a checkpointer with assertions does not bear a clock that is set back by 25 days.
    set_clock(&mut server.connect("app", "postgres"), &mut clock, BEFORE);
    server.stop(Stop::Fast);
    clock.launch(&server);
    let mut admin = server.connect("app", "postgres");
    let mut applications = applications(&server);
    assert_eq!(applications.len(), 30);
    let mut failed = BTreeMap::new();
    let mut attempt = |name: &str, at: &str, act: &mut dyn FnMut()| {
        if !failed.contains_key(name) && catch_unwind(AssertUnwindSafe(act)).is_err() {
            failed.insert(name.to_owned(), at.to_owned());
        }
    };
    let instants: BTreeSet<&str> = applications
        .iter()
        .flat_map(|application| application.instants.keys().copied())
        .collect();
    for application in &mut applications {
        attempt(application.name, "its tables", &mut || {
            answers::follow(&mut application.session, application.setup);
        });
    }
    for at in instants {
        set_clock(&mut admin, &mut clock, at);
        for application in &mut applications {
            attempt(application.name, at, &mut || application.run(at));
        }
        set_workers(&mut admin, true);
        for application in &mut applications {
            attempt(application.name, at, &mut || application.wait_for_disk(at));
        }
        set_workers(&mut admin, false);
    }
    assert!(failed.is_empty(), "at these instants: {failed:#?}");
}
