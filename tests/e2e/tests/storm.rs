//! Everything at once, for `TTL_MINUTES` (one, if not set): rows that die and rows that must live are
//! written, while processes are killed, ended and stopped, the server crashes, the clock is set by up to a year, the disk is
//! full, locks are held and policies change. All the time the truth is told by brute force: no row that must live is
//! missing, what has expired goes, and what waits longer than half a minute is a problem with a lag.
//!
//! `TTL_SEED` repeats the choices, though not the moments.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ttl_ext_e2e::diff::Random;
use ttl_ext_e2e::{Clock, Server, Session, Stop};

/// Tables, each with rows `id`; `-1` as override, or no date, lets a row live.
const SETUP: &str = "
    CREATE TABLE a (id bigint PRIMARY KEY, pad text); SELECT ttl.enable('a', 3);
    CREATE TABLE b (id bigint PRIMARY KEY, at timestamptz); CREATE INDEX b_at ON b (at); SELECT ttl.expire_index('b_at', 0);
    CREATE TABLE c (id bigint PRIMARY KEY, prev bigint REFERENCES c); CREATE INDEX ON c (prev); SELECT ttl.enable('c', 3);
    CREATE TABLE d (id bigint, pad text) PARTITION BY HASH (id);
    CREATE TABLE d0 PARTITION OF d FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE d1 PARTITION OF d FOR VALUES WITH (MODULUS 2, REMAINDER 1); SELECT ttl.enable('d', 3, index => 'none');
    CREATE TABLE other (id int); SELECT ttl.enable('other', 3600)";

const TABLES: [&str; 4] = ["a", "b", "c", "d"];

/// "Expired, by the server's clock": brute force.
const fn expired(table: &str) -> &'static str {
    match table.as_bytes() {
        b"b" => "at < clock_timestamp()",
        _ => {
            "ttl IS DISTINCT FROM -1 AND _ts < clock_timestamp() - make_interval(secs => coalesce(ttl, 3))"
        }
    }
}

/// What waits for longer than this is to be a problem within a minute.
const LATE: Duration = Duration::from_secs(30);
const TOLD_WITHIN: Duration = Duration::from_secs(60);
/// A stopped process, a crash and a held lock together, on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Findings {
    /// How many rows are to live, by table.
    live: [u64; 4],
    written: u64,
    longest_wait: Duration,
    longest_untold: Duration,
    longest_false_problem: Duration,
    checks: u64,
}

struct Storm<'a> {
    server: &'a Server,
    is_over: AtomicBool,
    findings: Mutex<Findings>,
}

impl Storm<'_> {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// A session, as soon as the server is there.
    fn session(&self, options: &str) -> Option<Session> {
        while !self.is_over() {
            if let Ok(session) = self.server.try_connect("storm", "postgres", options) {
                return Some(session);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        None
    }

    /// Writes rows that die and one that lives to each table. What may have been committed, and may not,
    /// is deleted.
    fn write(&self) {
        let mut number = 0_u64;
        while let Some(mut session) = self.session("") {
            while !self.is_over() {
                number += 1;
                let (first, last) = (number * 100, number * 100 + 20);
                let doing = format!(
                    "BEGIN; INSERT INTO a SELECT n, 'dies' FROM generate_series({first} + 1, {last}) AS n;
                     INSERT INTO a (id, pad, ttl) VALUES ({first}, 'lives', -1);
                     INSERT INTO b SELECT n, clock_timestamp() + interval '3 seconds' FROM generate_series({first} + 1, {last}) AS n;
                     INSERT INTO b VALUES ({first}, NULL);
                     INSERT INTO c SELECT n, nullif(n - 1, {first}) FROM generate_series({first} + 1, {last}) AS n;
                     INSERT INTO c (id, ttl) VALUES ({first}, -1);
                     INSERT INTO d SELECT n, 'dies' FROM generate_series({first} + 1, {last}) AS n;
                     INSERT INTO d (id, pad, ttl) VALUES ({first}, 'lives', -1); COMMIT"
                );
                if session.try_run(&doing).is_err() {
                    break;
                }
                let mut findings = self.findings.lock().unwrap();
                findings.written += 80;
                findings.live.iter_mut().for_each(|live| *live += 1);
                drop(findings);
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Compares what there is with what is to be.
    fn check(&self) {
        let mut waits = [const { None }; 4];
        let (mut late, mut false_problem) = (None, None);
        while let Some(mut disk) = self.session("-c ttl.show_expired=on") {
            while !self.is_over() {
                let now = Instant::now();
                let Some(report) = look(&mut disk, &mut waits, now) else {
                    break;
                };
                self.note(&report, &waits, &mut late, &mut false_problem, now);
                if !self.lives(&mut disk) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(500));
            }
        }
    }

    /// No row is missing that must live: counted after what is known to be committed.
    fn lives(&self, disk: &mut Session) -> bool {
        let least = self.findings.lock().unwrap().live;
        for (table, least) in TABLES.into_iter().zip(least) {
            let live = if table == "b" {
                "at IS NULL"
            } else {
                "ttl = -1"
            };
            let query = format!("SELECT count(*) FROM {table} WHERE {live}");
            let Some(count) = ask(disk, &query) else {
                return false;
            };
            let count: u64 = count.parse().unwrap();
            assert!(count >= least, "{table}: {count} rows of {least} that live");
        }
        true
    }

    fn note(
        &self,
        report: &Report,
        waits: &[Option<(String, Instant)>; 4],
        late: &mut Option<Instant>,
        false_problem: &mut Option<Instant>,
        now: Instant,
    ) {
        let since = |at: &Option<Instant>| at.map_or(Duration::ZERO, |at| now - at);
        let longest = waits.iter().flatten().map(|(_, at)| now - *at).max();
        let longest = longest.unwrap_or_default();
        let is_told = !report.problems.is_empty() && report.has_lag;
        *late = (longest > LATE && !is_told).then(|| late.unwrap_or(now));
        let nothing_waits = longest < Duration::from_secs(3);
        *false_problem =
            (nothing_waits && !report.problems.is_empty()).then(|| false_problem.unwrap_or(now));
        let mut findings = self.findings.lock().unwrap();
        findings.checks += 1;
        findings.longest_wait = findings.longest_wait.max(longest);
        findings.longest_untold = findings.longest_untold.max(since(late));
        findings.longest_false_problem = findings.longest_false_problem.max(since(false_problem));
        assert!(
            longest < LONGEST,
            "waits for {longest:?}: {waits:?}, {}",
            report.problems
        );
        assert!(
            since(late) < TOLD_WITHIN,
            "{waits:?} without a problem: {}",
            report.problems
        );
        assert!(
            since(false_problem) < TOLD_WITHIN + LATE,
            "nothing waits, but: {}",
            report.problems
        );
    }
}

struct Report {
    problems: String,
    has_lag: bool,
}

/// A query's value; `None` if the server has gone.
fn ask(session: &mut Session, query: &str) -> Option<String> {
    match session.try_run(query) {
        Ok(messages) => messages
            .iter()
            .find_map(ttl_ext_e2e::row_text)
            .map(|row| row[0].clone()),
        Err(error) => {
            let gone = error.code().is_none_or(|code| {
                ["53", "57", "08"]
                    .iter()
                    .any(|class| code.code().starts_with(class))
            });
            assert!(gone, "{query}: {error:?}");
            None
        }
    }
}

/// Since when the first expired row of each table has been there, and what the views say.
fn look(
    disk: &mut Session,
    waits: &mut [Option<(String, Instant)>; 4],
    now: Instant,
) -> Option<Report> {
    for (table, wait) in TABLES.into_iter().zip(waits.iter_mut()) {
        let first = ask(
            disk,
            &format!(
                "SELECT coalesce(min(id)::text, '') FROM {table} WHERE {}",
                expired(table)
            ),
        )?;
        let is_same = wait.as_ref().is_some_and(|(known, _)| *known == first);
        if first.is_empty() {
            *wait = None;
        } else if !is_same {
            *wait = Some((first, now));
        }
    }
    // That `d` has no index is always said.
    let problems = "SELECT coalesce(string_agg(relation::text || ': ' || problem, ' | '), '')
                      FROM ttl.tables, unnest(problems) AS problem WHERE problem NOT LIKE 'no valid index%'";
    let lag = "SELECT coalesce(bool_or(lag > '0'), false) FROM ttl.stats";
    Some(Report {
        problems: ask(disk, problems)?,
        has_lag: ask(disk, lag)? == "t",
    })
}

const KINDS: [&str; 4] = ["worker", "worker", "scheduler", "launcher"];
const STEPS: [i64; 5] = [2, 61, 3600, 86_400, 366 * 86_400];

/// One thing that goes wrong.
fn disturb(storm: &Storm<'_>, clock: &mut Clock, random: &mut Random) -> Option<&'static str> {
    let server = storm.server;
    let mut session = storm.session("-c ttl.show_expired=on")?;
    let kind = random.pick(&KINDS);
    let pid = session.try_run(&format!(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'ttl_ext {kind}' ORDER BY random() LIMIT 1"
    ));
    let pid = pid.ok()?.iter().find_map(ttl_ext_e2e::row_text);
    let pid: Option<i32> = pid.map(|row| row[0].parse().unwrap());
    let mut try_run = |sql: &str| {
        drop(session.try_run(sql));
    };
    Some(match random.between(0, 11) {
        0 => {
            server.kill(pid?);
            "killed"
        }
        1 | 2 => {
            let pid = pid?;
            if server.signal_process(pid, true) {
                std::thread::sleep(Duration::from_secs(random.between(1, 8) as u64));
                server.signal_process(pid, false);
            }
            "stopped"
        }
        3 => {
            try_run(&format!("SELECT pg_terminate_backend({})", pid?));
            "terminated"
        }
        4 => {
            server.stop(Stop::Immediate);
            clock.launch(server);
            "crashed"
        }
        5 => {
            server.stop(Stop::Fast);
            clock.launch(server);
            "restarted"
        }
        6 | 7 => {
            clock.step(random.pick(&STEPS) * random.pick(&[1, -1]));
            "clock set"
        }
        8 => {
            let table = random.pick(&TABLES);
            try_run(&format!(
                "BEGIN; LOCK TABLE {table} IN SHARE MODE; SELECT pg_sleep({}); COMMIT",
                random.between(1, 5)
            ));
            "locked"
        }
        9 => {
            try_run("SELECT ttl.disable('other')");
            try_run("SELECT ttl.enable('other', 3600, index => 'btree', concurrently => true)");
            try_run("CREATE SCHEMA s; DROP SCHEMA s");
            "policy changed"
        }
        10 => {
            clock.fill_disk(true);
            std::thread::sleep(Duration::from_secs(random.between(1, 8) as u64));
            clock.fill_disk(false);
            "disk full"
        }
        _ => {
            try_run("SELECT ttl.pause('a')");
            std::thread::sleep(Duration::from_secs(2));
            loop {
                let mut session = storm.session("")?;
                if session.try_run("SELECT ttl.resume('a')").is_ok() {
                    break;
                }
            }
            "paused"
        }
    })
}

#[test]
fn nothing_is_lost_and_nothing_stalls() {
    let minutes = std::env::var("TTL_MINUTES").map_or(1, |text| text.parse().unwrap());
    let mut random = Random::from_environment();
    let (server, mut clock) = Server::start_with_clock(&[
        ("ttl.change_delay", "1s"),
        ("restart_after_crash", "on"),
        ("autovacuum_naptime", "1s"),
    ]);
    server.allow_crash();
    server.database("storm").connect().run(SETUP);
    let storm = Storm {
        server: &server,
        is_over: AtomicBool::new(false),
        findings: Mutex::default(),
    };
    let mut events = std::collections::BTreeMap::new();
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    std::thread::scope(|scope| {
        let threads = [scope.spawn(|| storm.write()), scope.spawn(|| storm.check())];
        while Instant::now() < end && !threads.iter().any(|thread| thread.is_finished()) {
            if let Some(event) = disturb(&storm, &mut clock, &mut random) {
                *events.entry(event).or_insert(0) += 1;
            }
            std::thread::sleep(Duration::from_millis(random.between(500, 5000) as u64));
        }
        storm.is_over.store(true, Ordering::Relaxed);
    });
    // What has expired goes; what lives stays.
    let mut disk = server.connect_with("storm", "postgres", "-c ttl.show_expired=on");
    for table in TABLES {
        let left = format!("SELECT count(*) FROM {table} WHERE {}", expired(table));
        disk.wait_until(&left, "0", LONGEST.as_secs());
    }
    assert!(storm.lives(&mut disk));
    let findings = storm.findings.into_inner().unwrap();
    println!(
        "{minutes} min, {events:?}: {} rows written that die, {} that live, {} checks; longest wait of a row {:.1} s, \
         longest time without a problem that tells {:.1} s, longest problem without a row {:.1} s",
        findings.written,
        findings.live.iter().sum::<u64>(),
        findings.checks,
        findings.longest_wait.as_secs_f64(),
        findings.longest_untold.as_secs_f64(),
        findings.longest_false_problem.as_secs_f64(),
    );
}
