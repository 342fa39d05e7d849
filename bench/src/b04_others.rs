//! B4: what those notice who do not use the extension: pgbench's own tables on a server
//! that has it preloaded and created, against a server that has not; and two of the
//! latter against each other (`A/A`), to see what the method is worth.
//!
//! The servers are started anew for each repetition, so that nothing that comes with one
//! server's life, as where its memory lies, is taken for the extension's doing.

use ttl_ext_e2e::Server;

use crate::clients::{Client, compare, figures, initialize, throughput};
use crate::context::Context;
use crate::results::{Benchmark, Target};

const SIDES: [&str; 3] = ["loaded", "bare", "twin"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    context.stop_server();
    let scale = context.options.pick(10, 5);
    // There are three of them.
    let buffers = ("shared_buffers", "512MB");
    let servers = SIDES.map(|side| match side {
        "loaded" => context.own_server(&[buffers, ("ttl.enabled", "on")]),
        _ => context.own_server(&[buffers, ("shared_preload_libraries", "")]),
    });
    let server = |side: &str| -> &Server {
        let place = SIDES.iter().position(|name| *name == side);
        &servers[place.expect("a side")]
    };
    bench.settings_of("preloaded", server("loaded"));
    bench.settings_of("not preloaded", server("bare"));
    for side in SIDES {
        match side {
            "loaded" => drop(server(side).database("b4")),
            _ => drop(server(side).plain_database("b4")),
        }
        initialize(server(side), "b4", scale);
        let mut session = server(side).connect("b4", "postgres");
        session.run("CREATE EXTENSION pg_prewarm");
    }
    // The simple protocol, pgbench's default: every statement is parsed and planned, where
    // the hooks are.
    for (what, builtin, repetitions) in
        [("SELECT only", "select-only", 9), ("TPC-B", "tpcb-like", 7)]
    {
        let (protocol, arguments) = ("simple", ["-b", builtin]);
        let runs = context.together(repetitions, &SIDES, |order| {
            for side in order {
                server(side).restart();
                let mut session = server(side).connect("b4", "postgres");
                session.run("TRUNCATE pgbench_history");
                session.run("VACUUM pgbench_tellers, pgbench_branches");
                session.run(
                    "SELECT pg_prewarm(oid) FROM pg_class WHERE relname LIKE 'pgbench_accounts%'",
                );
                session.run("CHECKPOINT");
            }
            figures(&throughput(order, 500, |side| Client {
                server: server(side),
                database: "b4",
                script: String::new(),
                protocol,
                arguments: &arguments,
            }))
        });
        let what = format!("pgbench on plain tables, {what}, {protocol}");
        let target = Some(Target::AtLeast(0.99));
        compare(
            bench,
            &what,
            &runs,
            "loaded",
            ("not preloaded", "bare"),
            target,
        );
        let what = format!("A/A: {what}");
        compare(bench, &what, &runs, "twin", ("the same", "bare"), None);
    }
}
