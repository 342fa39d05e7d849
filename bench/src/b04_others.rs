//! B4: what those notice who do not use the extension: pgbench's own tables on a server
//! that has it preloaded and created, against a server that has not.

use crate::clients::{Clients, Length, compare, initialize};
use crate::context::Context;
use crate::results::{Benchmark, Target};

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    context.stop_server();
    let scale = context.options.pick(10, 5);
    let loaded = context.own_server(&[("ttl.enabled", "on")]);
    let bare = context.own_server(&[("shared_preload_libraries", "")]);
    bench.settings_of("preloaded", &loaded);
    bench.settings_of("not preloaded", &bare);
    drop(loaded.database("b4"));
    drop(bare.plain_database("b4"));
    for server in [&loaded, &bare] {
        initialize(server, "b4", scale);
    }
    // The simple protocol, pgbench's default: every statement is parsed and planned, where
    // the hooks are.
    for (what, builtin) in [("SELECT only", "select-only"), ("TPC-B", "tpcb-like")] {
        let protocol = "simple";
        let runs = context.alternate(13, true, &["loaded", "bare"], |side| {
            let server = if side == "loaded" { &loaded } else { &bare };
            let mut session = server.connect("b4", "postgres");
            if builtin != "select-only" {
                session.run("TRUNCATE pgbench_history");
                session.run("VACUUM pgbench_tellers, pgbench_branches");
                session.run("CHECKPOINT");
            }
            let clients = Clients {
                database: "b4",
                script: String::new(),
                protocol,
                length: Length::Seconds(1),
                arguments: &["-b", builtin],
            };
            clients.run(server).figures()
        });
        compare(
            bench,
            &format!("pgbench on plain tables, {what}, {protocol}"),
            &runs,
            "loaded",
            ("not preloaded", "bare"),
            Some(Target::AtLeast(0.99)),
        );
    }
}
