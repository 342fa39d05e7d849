//! B19: many owners. 200 roles have a table each, in every one of which a row falls due each second for
//! 30 s, each table's at another instant of the second. A worker belongs to one owner, so that a row
//! may cost the start of a process. Baseline: the same tables, all of one role.
//!
//! The delay is from a row's expiry to the commit of the transaction that deleted it, which the dead
//! row on its page tells: nobody looks meanwhile. Starts are counted in the log of the postmaster. The
//! processor time is that of all processes of the server but the session that waits for the end.

use std::thread::sleep;
use std::time::Duration;

use ttl_ext_e2e::{Server, Session};

use crate::context::{Context, Figures};
use crate::fixtures::{drop_databases, number, set, wait};
use crate::machine::{Used, now};
use crate::numbers::quantile;
use crate::results::{Benchmark, Target};

/// From the INSERT of a row to its expiry, more than preparing takes, in seconds.
const DEFAULT: f64 = 3600.0;

/// Sides: a name, whether each table has an owner of its own, `ttl.max_workers`.
const SIDES: [(&str, bool, &str); 4] = [
    ("owners", true, "DEFAULT"),
    ("one owner", false, "DEFAULT"),
    ("owners, 8", true, "8"),
    ("one owner, 8", false, "8"),
];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    context.stop_server();
    let load = Load {
        tables: context.options.pick(200, 200),
        seconds: context.options.pick(30, 10),
    };
    let server = context.own_server(&[
        ("ttl.enabled", "on"),
        ("track_commit_timestamp", "on"),
        // "starting background worker process": in the postmaster and the launcher only.
        ("log_min_messages", "debug1"),
    ]);
    bench.settings_of("own", &server);
    let mut session = server.connect("postgres", "postgres");
    session.run(&format!(
        "DO $$ BEGIN FOR n IN 1..{} LOOP EXECUTE format('CREATE ROLE owner_%s LOGIN', n); END LOOP; END $$",
        load.tables
    ));
    let known = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pageinspect'";
    if session.value(known) != "1" {
        let why = "the server has no pageinspect";
        bench.unavailable("expiry to deletion, many owners", "one owner", None, why);
        return;
    }
    drop(session);
    let names = SIDES.map(|(name, ..)| name);
    let runs = Context::in_turn(1, &names, |side| load.measure(&server, side));

    for (workers, many, one) in [
        ("", "owners", "one owner"),
        (", 8 workers", "owners, 8", "one owner, 8"),
    ] {
        let mut row = |what: &str, unit: &str, figure, target| {
            let what = format!(
                "{} owners, a row a second each{workers}: {what}",
                load.tables
            );
            let baseline = ("one owner", runs.of(one, figure));
            bench.compare(&what, unit, runs.of(many, figure), baseline, target);
        };
        row("expiry to deletion, median", "s", "median", None);
        let target = Some(Target::ValueAtMost(1.0));
        row("expiry to deletion, p99", "s", "p99", target);
        row("expiry to deletion, greatest", "s", "greatest", None);
        row("processors busy", "", "busy", None);
        row("processor time for a row", "ms", "cpu/row", None);
        row("starts of a process for a row", "", "starts/row", None);
        row("turns for a row", "", "turns/row", None);
        bench.absolute(
            &format!(
                "processor time of a process{workers}, from its start to its end, with its turns"
            ),
            "ms",
            runs.of(many, "cpu/start"),
            None,
        );
        let what = format!("processor time of launcher and postmaster for a row{workers}");
        bench.absolute(&what, "ms", runs.of(many, "others/row"), None);
    }
}

/// How many tables there are, and for how many seconds.
struct Load {
    tables: u64,
    seconds: u64,
}

impl Load {
    /// One side, once.
    fn measure(&self, server: &Server, side: &str) -> Figures {
        let (_, many, workers) = SIDES.into_iter().find(|it| it.0 == side).expect("a side");
        set(server, "ttl.max_workers", workers);
        let database = server.database("b19");
        let mut session = database.connect();
        session
            .run("ALTER DATABASE b19 SET log_min_messages = warning; CREATE EXTENSION pageinspect");
        self.make_tables(&mut session, many);
        sleep(Duration::from_secs(3));
        let begin = now().ceil() + 3.0;
        self.insert(&mut session, begin);
        sleep(Duration::from_secs_f64((begin - now()).max(0.0)));

        let own = number(&mut session, "SELECT pg_backend_pid()") as i32;
        let turns = "SELECT sum(sub_passes) FROM ttl.stats";
        let (starts_before, turns_before) = (starts(server), number(&mut session, turns));
        let before = Used::by(server, own);
        sleep(Duration::from_secs(self.seconds));
        let rows = self.tables * self.seconds;
        let deleted = format!("SELECT sum(rows_deleted) >= {rows} FROM ttl.stats");
        wait(&mut session, &deleted, "t", 200, 300);
        let took = now() - begin;
        // Workers that wait for more to do leave.
        sleep(Duration::from_secs(4));
        let used = Used::by(server, own).since(&before);
        let starts = starts(server) - starts_before;
        let turns = number(&mut session, turns) - turns_before;

        let delays = self.delays(&mut session, begin);
        assert_eq!(delays.len() as u64, rows, "rows with a time of deletion");
        drop(session);
        drop_databases(server, &["b19"]);
        let rows = rows as f64;
        vec![
            ("median", quantile(&delays, 0.5)),
            ("p99", quantile(&delays, 0.99)),
            ("greatest", quantile(&delays, 1.0)),
            ("busy", used.all / took),
            ("cpu/row", used.all * 1e3 / rows),
            ("others/row", (used.all - used.ended) * 1e3 / rows),
            ("starts/row", starts / rows),
            ("turns/row", turns / rows),
            // All of them have ended.
            ("cpu/start", used.ended * 1e3 / starts.max(1.0)),
        ]
    }

    fn make_tables(&self, session: &mut Session, many: bool) {
        session.run("GRANT CREATE ON SCHEMA public TO PUBLIC");
        for n in 1..=self.tables {
            let owner = if many { n } else { 1 };
            session.run(&format!(
                "SET ROLE owner_{owner};
                 CREATE TABLE t{n} (id integer) WITH (autovacuum_enabled = off);
                 SELECT ttl.enable('t{n}', {DEFAULT:.0});
                 RESET ROLE"
            ));
        }
    }

    /// Row `k` of table `n` expires `k - 1 + n / tables` seconds after the beginning.
    fn insert(&self, session: &mut Session, begin: f64) {
        session.run(&format!(
            "SET ttl.preserve_ts = on;
             DO $$ BEGIN FOR n IN 1..{tables} LOOP
                EXECUTE format('INSERT INTO t%s (id, _ts) SELECT k, to_timestamp({begin} - {DEFAULT} + k - 1 + %s::float8 / {tables})
                                  FROM generate_series(1, {seconds}) AS k', n, n);
             END LOOP; END $$;
             RESET ttl.preserve_ts",
            tables = self.tables,
            seconds = self.seconds,
        ));
    }

    /// From expiry to deletion, of all rows. They are in the order of the INSERT on the first page.
    fn delays(&self, session: &mut Session, begin: f64) -> Vec<f64> {
        let rows = session.column(&format!(
            "SELECT extract(epoch FROM pg_xact_commit_timestamp(item.t_xmax)) - ({begin} + item.lp - 1 + n::float8 / {tables})
               FROM generate_series(1, {tables}) AS n, heap_page_items(get_raw_page('t' || n, 0)) AS item",
            tables = self.tables,
        ));
        let parse = |text: String| text.parse().expect("a delay");
        rows.into_iter().map(parse).collect()
    }
}

/// How many processes of the extension have been started so far.
fn starts(server: &Server) -> f64 {
    let log = std::fs::read(server.dir().join("server.log")).expect("the server's log");
    let log = String::from_utf8_lossy(&log);
    let start = "starting background worker process \"ttl_ext ";
    log.lines().filter(|line| line.contains(start)).count() as f64
}
