//! S5: time is accounted for by owner. Fifty tables whose triggers never end, or sleep, do not keep
//! another owner's rows on disk, in the same database or another.
//!
//! `TTL_FAIRNESS_ROWS` is the number of rows measured in each database (30). If it is set, the
//! required limits apply; otherwise wider ones, which also hold on a busy machine.

use std::io::Write;
use std::time::{Duration, Instant};

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, hostile, until};

const TABLES: usize = 50;
const ENDLESS: &str = "LOOP NULL; END LOOP;";
/// How long others may be delayed at most.
const ASLEEP: &str = "PERFORM pg_catalog.pg_sleep(20);";

/// A server with default settings, as an administrator would start it.
fn start(settings: &[(&str, &str)]) -> Server {
    let mut all = vec![("ttl.naptime", "60s"), ("ttl.min_effort", "1")];
    all.extend(settings);
    hostile::start(&all)
}

/// The attacker's tables, each with some expired rows and such a trigger.
fn set_traps(database: &Database<'_>, body: &str) -> Session {
    let mut attacker = database.connect_as("attacker");
    attacker.run(&format!(
        "CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           IF (SELECT backend_type FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())) LIKE 'ttl_ext%'
           THEN {body} END IF; RETURN OLD; END$$"
    ));
    for n in 0..TABLES {
        attacker.run(&format!(
            "CREATE TABLE trap{n} (id integer PRIMARY KEY);
             CREATE TRIGGER hold_up BEFORE DELETE ON trap{n} FOR EACH ROW EXECUTE FUNCTION hold_up();
             SELECT ttl.enable('trap{n}', 3600)"
        ));
        attacker.insert_expired(&format!("trap{n}"), 1, 20);
    }
    attacker
}

/// A table of the victim's.
fn make_victim(database: &Database<'_>) {
    database.connect_as("victim").run(
        "CREATE TABLE mine (id integer PRIMARY KEY);
         SELECT ttl.enable('mine', 3600)",
    );
}

/// How long rows that expire one after another stay on disk after their time, in seconds.
fn measure(database: &Database<'_>, rows: usize) -> Vec<f64> {
    let mut writer = database.connect_as("victim");
    let mut reader = database.connect_as("victim");
    reader.run("SET row_security = off");
    let began = Instant::now();
    let mut delays = Vec::new();
    let (mut written, mut known) = (0, std::collections::BTreeMap::new());
    while delays.len() < rows {
        assert!(began.elapsed() < Duration::from_secs(400), "{delays:?}");
        // At uneven times, so that rows meet workers in all their states.
        let due = Duration::from_millis(written as u64 * 700 + (written as u64 * 377) % 500);
        if written < rows && began.elapsed() >= due {
            written += 1;
            let ttl = 1 + written % 4;
            // It may be deleted before the test looks for it.
            let row = writer.rows(&format!(
                "INSERT INTO mine (id, ttl) VALUES ({written}, {ttl})
                 RETURNING extract(epoch FROM _ts) + ttl"
            ));
            known.insert(written as i64, parse(&row[0][0]));
        }
        let now: f64 = parse(&reader.value("SELECT extract(epoch FROM clock_timestamp())"));
        let there = reader.rows("SELECT id FROM mine");
        let there: std::collections::BTreeSet<i64> = there
            .iter()
            .map(|row| row[0].parse().expect("a number"))
            .collect();
        known.retain(|id, expires: &mut f64| {
            let gone = !there.contains(id);
            if gone {
                delays.push((now - *expires).max(0.0));
            }
            !gone
        });
        // The resolution of the delays.
        std::thread::sleep(Duration::from_millis(20));
    }
    delays.sort_by(f64::total_cmp);
    delays
}

fn parse(text: &str) -> f64 {
    text.parse().expect("seconds")
}

fn at(delays: &[f64], part: f64) -> f64 {
    delays[((delays.len() - 1) as f64 * part).round() as usize]
}

/// Measure in several databases at once, and print and judge what has come of it.
fn judge(what: &str, databases: &[&Database<'_>], required: f64) {
    let asked = std::env::var("TTL_FAIRNESS_ROWS").ok();
    let rows = asked
        .as_deref()
        .map_or(30, |rows| rows.parse().expect("a number"));
    let bound = if asked.is_some() { required } else { 15.0 };
    let measured: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = databases
            .iter()
            .map(|database| scope.spawn(|| measure(database, rows)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("delays");
        threads.into_iter().map(join).collect()
    });
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    for (database, delays) in databases.iter().zip(&measured) {
        let (p50, p99) = (at(delays, 0.5), at(delays, 0.99));
        writeln!(
            std::io::stderr(),
            "{what}, {}: {} rows, p50 {p50:.2} s, p99 {p99:.2} s, longest {:.2} s, load {}",
            database.name,
            delays.len(),
            at(delays, 1.0),
            load.trim()
        )
        .expect("stderr");
        assert!(p99 < bound, "{what}: {delays:?}");
    }
}

fn hold_up(what: &str, body: &str, settings: &[(&str, &str)], required: f64) {
    let server = start(settings);
    let (here, there) = (
        hostile::armed_database(&server),
        hostile::armed_database(&server),
    );
    make_victim(&here);
    make_victim(&there);
    judge(&format!("{what}: before"), &[&here, &there], 2.0);
    let attacker = set_traps(&here, body);
    judge(what, &[&here, &there], required);
    drop(attacker);
}

#[test]
fn endless_loops_hold_nobody_up() {
    hold_up("endless", ENDLESS, &[], 5.0);
}

#[test]
fn sleepers_hold_nobody_up() {
    hold_up("asleep", ASLEEP, &[], 5.0);
}

/// The limits of turns alone are enough, if slower.
#[test]
fn one_worker_is_enough() {
    hold_up("one worker", ENDLESS, &[("ttl.max_workers", "1")], 10.0);
}

/// The slow table is named, in the log for administrators and in `ttl.stats` for everybody; an
/// honest table is not.
#[test]
fn who_takes_long_is_named() {
    let server = start(&[]);
    let database = hostile::armed_database(&server);
    make_victim(&database);
    let attacker = set_traps(&database, ENDLESS);
    let mut session = database.connect();
    session.wait_until(
        "SELECT bool_or(slow) AND sum(time_used_ms) > 1000 FROM ttl.stats
          WHERE relation::text LIKE 'trap%'",
        "t",
        PATIENCE,
    );
    let named = ["WARNING:", "public.trap", "of role attacker takes too long"];
    server.wait_for_log(&named, 1, PATIENCE);
    // Once for each table.
    let lines = until("several have been tried again", PATIENCE, || {
        let lines = server.log_lines(&named);
        (lines.len() > 2).then_some(lines)
    });
    let mut tables: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split("public.").nth(1)?.split(' ').next())
        .collect();
    tables.sort_unstable();
    let count = tables.len();
    tables.dedup();
    assert_eq!(tables.len(), count, "{lines:?}");
    assert_eq!(
        session.value("SELECT slow FROM ttl.stats WHERE relation = 'mine'::regclass"),
        "f"
    );
    drop(attacker);
    assert!(!hostile::attacker_is_superuser(&mut session));
}
