//! B14: memory of a session that touches very many tables, with TTL and without; and what
//! the first touch of each takes. All of the tables have an index on the time.

use crate::context::Context;
use crate::fixtures::number;
use crate::machine::private_memory;
use crate::numbers::show;
use crate::results::Benchmark;

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let count = context.options.pick(10_000, 1_000);
    // The default of `ttl.max_tables` is less than these and what others leave.
    let server = context.own_server(&[("ttl.max_tables", "50000")]);
    bench.settings_of("of its own", &server);
    let database = server.database("b14");
    let mut session = database.connect();
    for (side, on) in [
        (
            "ttl",
            "PERFORM ttl.enable(format('ttl_%s', n)::regclass, 86400, ttl_column => NULL, index => 'btree')",
        ),
        (
            "plain",
            "EXECUTE format('CREATE INDEX ON plain_%s (_ts)', n)",
        ),
    ] {
        session.run(&format!(
            "DO $$
             BEGIN
                 FOR n IN 1..{count} LOOP
                     EXECUTE format('CREATE TABLE {side}_%s (id bigint, _ts timestamptz NOT NULL DEFAULT now())', n);
                     {on};
                     IF n % 100 = 0 THEN COMMIT; END IF;
                 END LOOP;
             END $$"
        ));
    }
    session.run("VACUUM ANALYZE");
    let runs = context.alternate(5, false, &["ttl", "plain"], |side| {
        let mut session = database.connect();
        let pid = number(&mut session, "SELECT pg_backend_pid()") as i32;
        let contexts = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts";
        // What any session loads with its first statements.
        session.run(&format!("SELECT count(*) FROM {side}_1"));
        let before = (private_memory(pid), number(&mut session, contexts));
        let begin = std::time::Instant::now();
        for n in 1..=count {
            assert_eq!(
                session.value(&format!("SELECT count(*) FROM {side}_{n}")),
                "0"
            );
        }
        let took = begin.elapsed().as_secs_f64();
        let after = (private_memory(pid), number(&mut session, contexts));
        vec![
            ("kB", (after.0 - before.0) / count as f64),
            ("contexts", (after.1 - before.1) / 1024.0 / count as f64),
            ("us", took * 1e6 / count as f64),
        ]
    });
    let mut row = |what: &str, unit: &str, figure| {
        let what = format!(
            "a session that touches {} TTL tables: {what} a table",
            show(count as f64)
        );
        let plain = ("without TTL", runs.of("plain", figure));
        bench.compare(&what, unit, runs.of("ttl", figure), plain, None);
    };
    row("its own memory,", "kB", "kB");
    row("of that in memory contexts,", "kB", "contexts");
    row("the first count(*),", "µs", "us");
}
