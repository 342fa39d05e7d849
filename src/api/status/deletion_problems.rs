//! `ttl.problems`: what keeps expired rows from being deleted, and so why `lag` or
//! `backlog_estimate` of `ttl.stats` is NULL.

use super::disclosure::{shows_errors, shows_figures};
use crate::api::policy::consequences;
use crate::api::policy::problem::{Problem, look_at_last_error, look_at_locks};
use crate::citus;
use crate::deletion::partitions;
use crate::pg::catalog::{self, databases, roles, triggers};
use crate::pg::server::background;
use crate::policy::{PauseEnd, Policy};
use crate::settings::{self, MOST_TABLES, WORKERS};
use crate::worker::shared::deletion_state::{self, Halt, Obstacle};
use crate::worker::shared::places;
use pgrx::pg_sys;
use std::collections::BTreeSet;

/// Why nothing is deleted in this database.
pub(in crate::api) fn of_server() -> Vec<Problem> {
    deletion_state::halted()
        .and_then(of_halt)
        .into_iter()
        .collect()
}

/// The problems of a table with this policy, if rows expire by it.
pub(in crate::api) fn of(rel: pg_sys::Oid, policy: &Policy) -> Vec<Problem> {
    if !policy.is_on() {
        return vec![];
    }
    let tables = deletion_state::expiring_by(rel, policy);
    if tables.is_empty() && !citus::is_shell(rel) {
        return vec![];
    }
    let mut problems = match deletion_state::halted() {
        Some(_) => of_server(),
        // `ttl.problems` has reported that it waits for `ttl.resume`.
        None if policy.restored => vec![],
        None => troubles(rel, &tables),
    };
    problems.extend(paused(rel, policy));
    problems.extend(without_usage(&tables, policy.drop_partitions));
    problems
}

/// Applies to the whole server or database, so it is the same for all tables.
fn of_halt(halt: Halt) -> Option<Problem> {
    let more_processes = || {
        let processes = background::max_processes() + 8;
        format!("ALTER SYSTEM SET max_worker_processes = {processes}; {RESTART}")
    };
    let (text, to_do) = match halt {
        // A standby replays what the primary deletes.
        Halt::Standby => return None,
        Halt::Off => (
            "deletion is off: ttl.enabled",
            "ALTER SYSTEM SET ttl.enabled = on; SELECT pg_reload_conf();".to_owned(),
        ),
        Halt::Recovered => (
            "deletion is off: after a recovery, the server is on another timeline than ttl.timeline says",
            format!(
                "/* If the data is what it should be: */ ALTER SYSTEM SET ttl.timeline = {}; SELECT pg_reload_conf();",
                background::timeline()
            ),
        ),
        Halt::Template => (
            "deletion is off: the database is a template",
            format!(
                "/* If it is to be more than that: */ ALTER DATABASE {} IS_TEMPLATE false;",
                catalog::quote_identifier(&databases::name(background::my_database()))
            ),
        ),
        Halt::NoLauncher => (
            "deletion is off: its launcher is not running; it takes one of max_worker_processes when the server starts",
            more_processes(),
        ),
        Halt::NoSlot => (
            "no background worker slot is free: raise max_worker_processes",
            more_processes(),
        ),
    };
    Some(Problem::new(text).with_statement(to_do))
}

/// After the change of a setting that is read at the start only.
const RESTART: &str = "-- then restart the server";

/// A pause without an end.
fn paused(rel: pg_sys::Oid, policy: &Policy) -> Option<Problem> {
    let is_endless = policy.paused_until.is_some_and(PauseEnd::is_endless);
    is_endless.then(|| {
        let table = catalog::quote_literal(&catalog::qualified_name(rel));
        let statement = format!("SELECT ttl.resume({table})");
        let text = format!("nothing is deleted: paused without an end; {statement} ends it");
        Problem::new(text).with_statement(statement + ";")
    })
}

/// One line for each kind of trouble, however many partitions have it.
fn troubles(labelled_table: pg_sys::Oid, tables: &[pg_sys::Oid]) -> Vec<Problem> {
    let mut failing: Vec<(pg_sys::Oid, Option<String>)> = Vec::new();
    let mut blocked: Vec<(pg_sys::Oid, i64, Option<String>)> = Vec::new();
    let (mut full, mut locked) = (Vec::new(), Vec::new());
    let (mut temporary, mut neglected, mut crowded, mut unread) = (0, 0, 0, 0);
    let mut clock = 0;
    let mut unstartable = Vec::new();
    let mut stalled = BTreeSet::new();
    for &table in tables {
        let standing = deletion_state::of(table);
        crowded += usize::from(standing.crowded);
        match standing.trouble {
            None => {}
            Some(Obstacle::NoRoom) => full.push(table),
            Some(Obstacle::Temporary) => temporary += 1,
            Some(Obstacle::Neglected) => neglected += 1,
            Some(Obstacle::Unread) => unread += 1,
            Some(Obstacle::CannotStart) => unstartable.push(table),
            Some(Obstacle::ClockWasSet) => clock += 1,
            Some(Obstacle::Stalled(pid)) => {
                stalled.insert(pid);
            }
            Some(Obstacle::Failing(error)) => failing.push((table, error)),
            Some(Obstacle::Blocked(rows, error)) => blocked.push((table, rows, error)),
            Some(Obstacle::Locked(rows)) => locked.push((table, rows)),
        }
    }
    let shown = |rows: String| match shows_figures(labelled_table) {
        true => rows,
        false => "some".to_owned(),
    };
    let mut problems = Vec::new();
    if let Some((table, error)) = failing.first() {
        // The message may quote rows.
        let error = error.as_deref().filter(|_| shows_errors(labelled_table));
        let table = catalog::qualified_name(*table);
        let text = format!(
            "deletion from {table}{} fails again and again: {}",
            and_others(failing.len()),
            error.unwrap_or("its owner sees why in ttl.stats")
        );
        problems.push(Problem::new(text).with_statement(look_at_last_error(labelled_table)));
    }
    if let Some((table, rows, error)) = blocked.first() {
        let error = error.as_deref().filter(|_| shows_errors(labelled_table));
        let rows = shown(rows.to_string());
        let table = catalog::qualified_name(*table);
        let text = format!(
            "{rows} expired rows of {table}{} cannot be deleted: {}",
            and_others(blocked.len()),
            error.unwrap_or("its owner sees why in ttl.stats")
        );
        let remedy = error.and_then(|error| consequences::remedy(labelled_table, error));
        let to_do = remedy.unwrap_or_else(|| look_at_last_error(labelled_table));
        problems.push(Problem::new(text).with_statement(to_do));
    }
    if let Some((table, rows)) = locked.first() {
        let rows = shown(rows.to_string());
        let name = catalog::qualified_name(*table);
        let text = format!(
            "{rows} expired rows of {name}{} are locked by other transactions, and stay until these end",
            and_others(locked.len())
        );
        problems.push(Problem::new(text).with_statement(look_at_locks(*table)));
    }
    let of_tables = |count: usize| match count {
        _ if tables.len() == 1 => String::new(),
        count => format!(" ({count} of {} tables)", tables.len()),
    };
    if let Some(&table) = full.first() {
        let why = places::refusal(table).unwrap_or_else(|| "there was none".to_owned());
        let which = match tables.len() {
            1 => String::new(),
            all => format!(
                " for {}{} ({} of {all} tables)",
                catalog::qualified_name(table),
                and_others(full.len()),
                full.len()
            ),
        };
        let text = format!("no room in shared memory{which}: {why}; raise ttl.max_tables");
        let more = settings::max_tables().saturating_mul(2).min(MOST_TABLES);
        problems.push(Problem::new(text).with_statement(format!(
            "ALTER SYSTEM SET ttl.max_tables = {more}; {RESTART}"
        )));
    }
    for pid in stalled {
        let text = format!(
            "a worker has been at it for more than a minute: process {pid} is stopped, or waits; see pg_stat_activity"
        );
        problems.push(Problem::new(text).with_statement(format!(
            "SELECT wait_event_type, wait_event, pg_blocking_pids(pid) FROM pg_stat_activity WHERE pid = {pid};"
        )));
    }
    let table = catalog::quote_literal(&catalog::qualified_name(labelled_table));
    let more_workers = Some(settings::max_workers() + 1).filter(|&more| more <= WORKERS);
    for (count, text, to_do) in [
        (
            crowded,
            "more rows cannot be deleted than there is room to set aside: each pass tries the others again",
            Some(look_at_last_error(labelled_table)),
        ),
        (
            temporary,
            "temporary: expired rows are deleted by ttl.purge only",
            Some(format!("SELECT ttl.purge({table});")),
        ),
        (
            unstartable.len(),
            "no background process of its owner could be started; the server log says why",
            unstartable
                .first()
                .and_then(|&table| letting_connect(table)),
        ),
        (
            clock,
            "deletion is held for ttl.change_delay: the system clock was set by more than a minute, or the server was down for so long",
            Some(
                "/* If this is right, ttl.purge() deletes at once: */ SELECT clock_timestamp();"
                    .to_owned(),
            ),
        ),
        (
            unread,
            "no background process has read its time to live yet: the ttl_ext scheduler is stopped, or waits; see pg_stat_activity",
            Some(LOOK_AT_SCHEDULER.to_owned()),
        ),
        (
            neglected,
            "no worker has processed the table recently: workers are busy with other tables, see ttl.max_workers",
            more_workers.map(|more| {
                format!("ALTER SYSTEM SET ttl.max_workers = {more}; SELECT pg_reload_conf();")
            }),
        ),
    ] {
        if count > 0 {
            let problem = Problem::new(format!("{text}{}", of_tables(count)));
            problems.push(problem.with_statements(to_do));
        }
    }
    problems
}

/// Where the scheduler is.
const LOOK_AT_SCHEDULER: &str = "SELECT pid, datname, wait_event_type, wait_event, pg_blocking_pids(pid) FROM pg_stat_activity WHERE backend_type = 'ttl_ext scheduler';";

/// A role may have been locked out on purpose.
const IF_MEANT: &str = "/* If the role is to connect: */ ";

/// The statement without which PostgreSQL lets no process of the table's owner connect to the database; `None` if
/// it does.
fn letting_connect(table: pg_sys::Oid) -> Option<String> {
    let owner = catalog::class(table)?.owner;
    let database = background::my_database();
    if roles::may_connect(database, owner) {
        return None;
    }
    let role = catalog::quote_identifier(&roles::name(owner));
    Some(match roles::needs_login(owner) {
        true => format!("{IF_MEANT}ALTER ROLE {role} LOGIN;"),
        false => format!(
            "{IF_MEANT}GRANT CONNECT ON DATABASE {} TO {role};",
            catalog::quote_identifier(&databases::name(database))
        ),
    })
}

fn and_others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    }
}

/// For each table whose owner lacks USAGE on a schema in which deletion must look up names.
fn without_usage(tables: &[pg_sys::Oid], drop_partitions: bool) -> BTreeSet<Problem> {
    let mut problems = BTreeSet::new();
    let mut schemas = BTreeSet::new();
    for &table in tables {
        let class = catalog::class(table).filter(|class| drop_partitions && class.is_partition);
        if class.is_some_and(|it| schemas.insert((it.namespace.to_u32(), it.owner.to_u32())))
            && let Some(why) = partitions::renamable(table)
        {
            let text = format!("partitions are not dropped as a whole: {why}");
            problems.insert(Problem::new(text));
        }
        let is_partition = catalog::class(table).is_some_and(|class| class.is_partition);
        if drop_partitions && is_partition {
            let places = catalog::parents(table).into_iter().chain([table]);
            let lacking = places.filter_map(lacking_usage);
            problems.extend(lacking.map(|(lacking, grant)| {
                let text = format!("partitions are not dropped as a whole: {lacking}; {grant}");
                Problem::new(text).with_statement(grant + ";")
            }));
        }
        for place in triggers::looked_up_on_delete(table) {
            problems.extend(lacking_usage(place).map(|(lacking, grant)| {
                let place = catalog::qualified_name(place);
                let text = format!(
                    "deletion fails at a foreign key, which looks {place} up by name: {lacking}; {grant}"
                );
                Problem::new(text).with_statement(grant + ";")
            }));
        }
    }
    problems
}

/// The privilege that the table's owner lacks, and how to grant it.
fn lacking_usage(table: pg_sys::Oid) -> Option<(String, String)> {
    let class = catalog::class(table)?;
    (!roles::may_use_schema(class.namespace, class.owner)).then(|| {
        let owner = catalog::quote_identifier(&roles::name(class.owner));
        let schema = catalog::schema_name(class.namespace);
        (
            format!("its owner {owner} may not use schema {schema}"),
            format!("GRANT USAGE ON SCHEMA {schema} TO {owner}"),
        )
    })
}
