//! B11: what deletion costs where there is nothing to delete: an empty pass over tables
//! of very different sizes, and the processor time of servers that do nothing, with ever
//! more TTL tables.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use ttl_ext_e2e::Server;

use crate::context::Context;
use crate::fixtures::{
    drop_databases, indexes_by_hand, number, set, settle, timed, wait, worker_off, worker_on,
};
use crate::machine::cpu_seconds;
use crate::numbers::{median, show};
use crate::results::{Benchmark, Curve, Target};

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    // Those come to rest meanwhile.
    let idle = Idle::start(context, bench);
    passes(context, bench);
    context.stop_server();
    idle.measure(context, bench);
}

/// `ttl.purge` in a session is one empty pass and nothing else; the worker's own is what
/// it says in `ttl.stats`, after a row has been written. And the blocks that it looks at.
fn passes(context: &Context, bench: &mut Benchmark) {
    let sizes = [
        ("rows_10k", 10_000),
        ("rows_1m", context.options.pick(1_000_000, 100_000)),
        ("rows_10m", context.options.pick(10_000_000, 1_000_000)),
    ];
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b11");
    let mut session = database.connect();
    for (table, rows) in sizes {
        session.run(&format!(
            "CREATE TABLE {table} (id bigint, data text);
             SELECT ttl.enable('{table}', 1000000000, index => 'none');
             SET ttl.preserve_ts = on;
             INSERT INTO {table} (id, _ts)
             SELECT i, date_trunc('second', now()) - i / 100 * interval '1 s' FROM generate_series(1, {rows}) AS i;
             RESET ttl.preserve_ts"
        ));
        indexes_by_hand(&mut session, table);
        settle(&mut session, table);
    }
    worker_on(&server);
    for (table, _) in sizes {
        let passed =
            format!("SELECT passes > 0 FROM ttl.stats WHERE relation = '{table}'::regclass");
        wait(&mut session, &passed, "t", 50, 120);
    }
    let tables = sizes.map(|(table, _)| table);
    let runs = context.alternate(5, true, &tables, |table| {
        let stats = |what: &str| {
            format!("SELECT {what} FROM ttl.stats WHERE relation = '{table}'::regclass")
        };
        let before = number(&mut session, &stats("passes"));
        session.run(&format!("INSERT INTO {table} (id) VALUES (0)"));
        wait(
            &mut session,
            &stats(&format!("passes > {before}")),
            "t",
            20,
            120,
        );
        let worker = number(&mut session, &stats("last_pass_ms"));
        let purge = format!("SELECT ttl.purge('{table}')");
        let ms = timed(&mut session, &purge) * 1000.0;
        let plan = session.column(&format!(
            "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) {purge}"
        ));
        vec![("worker", worker), ("purge", ms), ("blocks", blocks(&plan))]
    });
    worker_off(&server);
    let (most, least) = (tables[2], tables[0]);
    let rows = |at: usize| show(sizes[at].1 as f64);
    let name = format!("{} rows", rows(0));
    for (figure, what, unit) in [
        ("worker", "an empty pass of the worker", "ms"),
        ("purge", "ttl.purge() with nothing to delete", "ms"),
        ("blocks", "blocks that it looks at", "blocks"),
    ] {
        bench.compare(
            &format!("{what}, {} live rows", rows(2)),
            unit,
            runs.of(most, figure),
            (&name, runs.of(least, figure)),
            Some(Target::AtMost(1.5)),
        );
    }
    let line = |figure| {
        let point = |(table, rows): &(&str, u64)| (*rows as f64, median(&runs.of(table, figure)));
        sizes.iter().map(point).collect()
    };
    bench.curves.push(Curve {
        plot: "b11-empty-pass".to_owned(),
        title: "An empty pass, by the number of live rows".to_owned(),
        x: "live rows".to_owned(),
        y: "ms".to_owned(),
        x_log: true,
        lines: vec![
            ("worker".to_owned(), line("worker")),
            ("ttl.purge".to_owned(), line("purge")),
        ],
    });
    drop(session);
    drop_databases(&server, &["b11"]);
}

/// The buffers of an EXPLAIN, hit and read.
fn blocks(plan: &[String]) -> f64 {
    let line = plan
        .iter()
        .find(|line| line.trim_start().starts_with("Buffers: shared"));
    let words = line.map_or("", String::as_str).split([' ', '=']);
    let words: Vec<&str> = words.collect();
    let of = |name: &str| {
        let place = words.iter().position(|word| *word == name);
        place
            .and_then(|n| words.get(n + 1)?.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    of("hit") + of("read")
}

/// Servers with default settings, five rows in each table, measured side by side.
/// Autovacuum looks at every table, TTL or not: so there is one with as many tables that
/// have no time to live, and one with none.
///
/// Workers look at every table once in `ttl.naptime`, a minute. Their first two looks at a
/// table are searches, until its statistics say that nobody has written to it since the
/// last. To get past these, the servers first rest with a short naptime; then they are
/// watched for a whole one of the default. What counts is the average of it.
struct Idle {
    servers: Vec<Server>,
    many: u64,
    since: Instant,
}

impl Idle {
    fn start(context: &Context, bench: &mut Benchmark) -> Idle {
        let many = context.options.pick(5_000, 500);
        let variants = [
            (0, false),
            (many, false),
            (1, true),
            (100, true),
            (many, true),
        ];
        let settings = [
            ("shared_buffers", "128MB"),
            ("synchronous_commit", "on"),
            ("autovacuum", "on"),
            ("ttl.enabled", "on"),
            ("ttl.naptime", "8s"),
        ];
        let start = |_| context.own_server(&settings);
        let servers: Vec<Server> = variants.iter().map(start).collect();
        bench.settings_of("idle", &servers[0]);
        scope(|scope| {
            for (server, (count, ttl)) in servers.iter().zip(variants) {
                scope.spawn(move || tables(server, count, ttl));
            }
        });
        let since = Instant::now();
        Idle {
            servers,
            many,
            since,
        }
    }

    fn measure(self, context: &Context, bench: &mut Benchmark) {
        let rest = Duration::from_secs(context.options.pick(25, 9));
        sleep(rest.saturating_sub(self.since.elapsed()));
        for server in &self.servers {
            set(server, "ttl.naptime", "'60s'");
        }
        sleep(Duration::from_secs(9));
        let slices = context.options.pick(10, 5);
        let slice = context.options.pick(6, 2);
        let cpu = || self.servers.iter().map(|server| cpu_seconds(server, 0));
        let first: Vec<f64> = cpu().collect();
        let mut points = vec![Vec::new(); first.len()];
        let mut before = first.clone();
        for n in 1..=slices {
            sleep(Duration::from_secs(slice));
            let after: Vec<f64> = cpu().collect();
            for (server, points) in points.iter_mut().enumerate() {
                let share = 100.0 * (after[server] - before[server]) / slice as f64;
                points.push(((n * slice) as f64, share));
            }
            before = after;
        }
        let average = |n: usize| 100.0 * (before[n] - first[n]) / (slices * slice) as f64;
        let many = show(self.many as f64);
        for (n, count) in [(2, "1"), (3, "100"), (4, &many)] {
            bench.absolute(
                &format!("CPU of an idle server, {count} TTL table(s)"),
                "% of a core",
                vec![average(n)],
                Some(Target::ValueAtMost(1.0)),
            );
        }
        bench.note(format!(
            "the same server without any table: {} % of a core; with {many} tables without TTL: {} %; \
             the average of {} s",
            show(average(0)),
            show(average(1)),
            slices * slice,
        ));
        let names = [
            "no table".to_owned(),
            format!("{many} tables without TTL"),
            "1 TTL table".to_owned(),
            "100 TTL tables".to_owned(),
            format!("{many} TTL tables"),
        ];
        bench.curves.push(Curve {
            plot: "b11-idle".to_owned(),
            title: "CPU of an idle server".to_owned(),
            x: "seconds".to_owned(),
            y: "% of a core".to_owned(),
            x_log: false,
            lines: names.into_iter().zip(points).collect(),
        });
    }
}

fn tables(server: &Server, count: u64, ttl: bool) {
    let database = server.database("idle");
    let mut session = database.connect();
    let on = if ttl {
        "PERFORM ttl.enable(format('idle_%s', n)::regclass, 86400, ttl_column => NULL)"
    } else {
        "EXECUTE format('CREATE INDEX ON idle_%s (_ts)', n)"
    };
    session.run("SET synchronous_commit = off");
    session.run(&format!(
        "DO $$
         BEGIN
             FOR n IN 1..{count} LOOP
                 EXECUTE format('CREATE TABLE idle_%s (id bigint, _ts timestamptz NOT NULL DEFAULT now())', n);
                 {on};
                 EXECUTE format('INSERT INTO idle_%s SELECT generate_series(1, 5)', n);
                 COMMIT;
             END LOOP;
         END $$"
    ));
    session.run("VACUUM ANALYZE");
    session.run("CHECKPOINT");
}
