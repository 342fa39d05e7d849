//! X2: what the index on `_ts` costs an UPDATE: heap-only tuples (HOT) with a b-tree, with
//! BRIN (which keeps them from 16 on) and without an index, against a plain table.

use crate::b08_delete::wal;
use crate::clients::{Client, Length};
use crate::context::Context;
use crate::fixtures::{LIFETIME, drop_databases, number, settle, wait};
use crate::numbers::median;
use crate::results::Benchmark;

const SIDES: [&str; 4] = ["plain", "btree", "brin", "none"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(100_000, 20_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("x2");
    let mut session = database.connect();
    for side in SIDES {
        session.run(&format!(
            "CREATE TABLE {side} (id bigint PRIMARY KEY, data text) WITH (fillfactor = 85)"
        ));
        if side != "plain" {
            session.run(&format!(
                "SELECT ttl.enable('{side}', {LIFETIME}, ttl_column => NULL, index => '{side}')"
            ));
        }
    }
    let runs = context.alternate(5, true, &SIDES, |side| {
        session.run(&format!(
            "TRUNCATE {side};
             SET ttl.preserve_ts = on;
             INSERT INTO {side} (id, data{column}) SELECT i, md5(i::text){value} FROM generate_series(1, {rows}) AS i;
             RESET ttl.preserve_ts",
            column = if side == "plain" { "" } else { ", _ts" },
            value = if side == "plain" { "" } else { ", now() - interval '1 h'" },
        ));
        settle(&mut session, side);
        session.run(&format!("SELECT pg_stat_reset_single_table_counters('{side}'::regclass)"));
        let before = wal(&mut session);
        let client = Client {
            server: &server,
            database: "x2",
            script: format!("\\set id random(1, {rows})\nUPDATE {side} SET data = md5('new') WHERE id = :id;\n"),
            protocol: "prepared",
            arguments: &[],
        };
        let done = client.run(Length::Milliseconds(1000));
        let written = (wal(&mut session) - before) / done.transactions as f64;
        // A client's counts come when it has ended, which pgbench does not wait for.
        let counts = format!("FROM pg_stat_user_tables WHERE relname = '{side}'");
        let all = format!("SELECT n_tup_upd {counts}");
        wait(&mut session, &all, &done.transactions.to_string(), 20, 30);
        let hot = number(&mut session, &format!("SELECT n_tup_hot_upd {counts}"));
        let updated = done.transactions as f64;
        vec![("tps", done.tps), ("hot", 100.0 * hot / updated), ("WAL", written)]
    });
    for side in &SIDES[1..] {
        let what = format!("UPDATE of a TTL table, index => '{side}'");
        let plain = |figure| ("plain table", runs.of("plain", figure));
        bench.compare(&what, "tps", runs.of(side, "tps"), plain("tps"), None);
        bench.compare(
            &format!("{what}: WAL"),
            "bytes",
            runs.of(side, "WAL"),
            plain("WAL"),
            None,
        );
    }
    for side in SIDES {
        let share = median(&runs.of(side, "hot"));
        bench.note(format!("{side}: {share:.0} % of the updates are heap-only"));
    }
    drop(session);
    drop_databases(&server, &["x2"]);
}
