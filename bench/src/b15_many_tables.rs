//! B15: growth with the number of TTL tables, of which each database has another: how long the
//! workers take until they have looked at all of them, their memory and the launcher's, `ttl.tables`
//! and `ttl.stats` in a new session, DROP TABLE of one. Whatever grows must not grow faster than the
//! number of tables.

use std::time::Instant;

use ttl_ext_e2e::{Server, Session};

use crate::context::{Context, Figures};
use crate::fixtures::{drop_databases, number, timed, worker_off, worker_on};
use crate::machine::private_memory_if_there;
use crate::numbers::{median, show};
use crate::results::{Benchmark, Curve, Target};

/// What is proportional to the number of tables, by table; a quarter more is chance.
const LINEAR: Target = Target::AtMost(1.25);
/// What must not depend on it.
const CONSTANT: Target = Target::AtMost(1.5);
/// A worker's own memory, in kB.
const MEMORY: Target = Target::ValueAtMost(65_536.0);

/// A figure of which there is one for each table: its name, and what it is.
const BY_TABLE: [(&str, &str); 4] = [
    (
        "look",
        "from the start of deletion until all were looked at",
    ),
    ("stats", "SELECT * FROM ttl.stats in a new session"),
    ("again", "the same again"),
    ("tables", "SELECT * FROM ttl.tables in a new session"),
];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let most = context.options.pick(20_000, 2_000);
    let sizes = [most / 20, most / 4, most];
    let names = sizes.map(|size| format!("b15_{size}"));
    let sides: Vec<&str> = names.iter().map(String::as_str).collect();
    // Else all workers of the server would look at all databases.
    let servers = sizes.map(|size| {
        let server = context.own_server(&[
            ("ttl.max_tables", "50000"),
            ("max_locks_per_transaction", "1024"),
        ]);
        create(&server, &format!("b15_{size}"), size);
        server
    });
    bench.settings_of("of its own", &servers[0]);
    let runs = context.alternate(3, false, &sides, |side| {
        let at = sides.iter().position(|other| *other == side);
        let at = at.expect("one of the sides");
        measure(&servers[at], side, sizes[at])
    });
    let what = |size: u64, what: &str| format!("{} TTL tables: {what}", show(size as f64));
    let few = format!("{} tables", show(sizes[0] as f64));
    for at in [1, 2] {
        for (figure, text) in BY_TABLE {
            let per = |at: usize| -> Vec<f64> {
                let values = runs.of(sides[at], figure).into_iter();
                values.map(|ms| ms * 1000.0 / sizes[at] as f64).collect()
            };
            let text = what(sizes[at], &format!("{text}, by table"));
            bench.compare(&text, "µs", per(at), (&few, per(0)), Some(LINEAR));
        }
        let (text, of) = (
            "DROP TABLE … CASCADE of one in a new session",
            |at: usize| runs.of(sides[at], "drop"),
        );
        bench.compare(
            &what(sizes[at], text),
            "ms",
            of(at),
            (&few, of(0)),
            Some(CONSTANT),
        );
        let memory = runs.of(sides[at], "worker");
        let text = what(sizes[at], "the largest worker's own memory");
        bench.absolute(&text, "kB", memory, Some(MEMORY));
    }
    for (at, size) in sizes.into_iter().enumerate() {
        let of = |figure| show(median(&runs.of(sides[at], figure)));
        bench.note(format!(
            "{} tables: all looked at after {} ms; a worker {} kB, the launcher {} kB; ttl.stats {} ms, ttl.tables {} ms",
            show(size as f64), of("look"), of("worker"), of("launcher"), of("stats"), of("tables"),
        ));
    }
    let line = |figure: &'static str| {
        let point = |(at, size): (usize, &u64)| (*size as f64, median(&runs.of(sides[at], figure)));
        sizes.iter().enumerate().map(point).collect()
    };
    bench.curves.push(Curve {
        plot: "b15-tables".to_owned(),
        title: "By the number of TTL tables".to_owned(),
        x: "TTL tables".to_owned(),
        y: "ms".to_owned(),
        x_log: false,
        lines: vec![
            ("first look at all".to_owned(), line("look")),
            ("ttl.stats".to_owned(), line("stats")),
            ("ttl.tables".to_owned(), line("tables")),
        ],
    });
    for (server, name) in servers.iter().zip(&names) {
        drop_databases(server, &[name]);
    }
}

fn create(server: &Server, name: &str, size: u64) {
    let database = server.database(name);
    let mut session = database.connect();
    session.run(&format!(
        "DO $$
         BEGIN
             FOR n IN 1..{size} LOOP
                 EXECUTE format('CREATE TABLE many_%s (id bigint PRIMARY KEY, data text)', n);
                 PERFORM ttl.enable(format('many_%s', n)::regclass, 86400);
                 IF n % 100 = 0 THEN COMMIT; END IF;
             END LOOP;
         END $$"
    ));
    session.run("VACUUM ANALYZE");
    session.run("CHECKPOINT");
}

fn measure(server: &Server, name: &str, size: u64) -> Figures {
    // Until a worker has looked at a table after the server's start, nothing is known of it.
    server.restart();
    let connect = || server.connect(name, "postgres");
    let mut session = connect();
    let passes = "SELECT COALESCE(sum(passes), 0) FROM ttl.stats";
    let before = number(&mut session, passes);
    let begin = Instant::now();
    worker_on(server);
    let mut largest: f64 = 0.0;
    let mut launcher = 0.0;
    loop {
        largest = memory(&mut session, "ttl_ext worker").fold(largest, f64::max);
        launcher = memory(&mut session, "ttl_ext launcher").fold(launcher, f64::max);
        if number(&mut session, passes) - before >= size as f64 {
            break;
        }
        assert!(begin.elapsed().as_secs() < 600, "not all were looked at");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let look = begin.elapsed().as_secs_f64() * 1000.0;
    worker_off(server);
    let first = |sql: &str| {
        let mut session = connect();
        session.run("SELECT 1");
        (
            timed(&mut session, sql) * 1000.0,
            timed(&mut session, sql) * 1000.0,
        )
    };
    let (stats, again) = first("SELECT * FROM ttl.stats");
    let (tables, _) = first("SELECT * FROM ttl.tables");
    let mut session = connect();
    session.run("BEGIN");
    let drop = timed(&mut session, "DROP TABLE many_1 CASCADE") * 1000.0;
    session.run("ROLLBACK");
    vec![
        ("look", look),
        ("stats", stats),
        ("again", again),
        ("tables", tables),
        ("drop", drop),
        ("worker", largest),
        ("launcher", launcher),
    ]
}

/// The own memory of the processes of this kind, in kB.
fn memory(session: &mut Session, kind: &str) -> impl Iterator<Item = f64> {
    let sql = format!("SELECT pid FROM pg_stat_activity WHERE backend_type = '{kind}'");
    let pids = session.column(&sql).into_iter();
    // One that ends meanwhile has none.
    pids.filter_map(|pid| private_memory_if_there(pid.parse().expect("a process id")))
}
