//! B7: UPDATE of one row by its primary key, against statements that set `_ts`
//! themselves, and against moddatetime. All tables have the same indexes.
//!
//! The extension writes whole seconds, by which the index on `_ts` stays smaller; a third
//! baseline does so by hand.

use crate::clients::{Client, compare, figures, throughput};
use crate::context::Context;
use crate::fixtures::{LIFETIME, columns_by_hand, drop_databases, enable, number, settle};
use crate::results::{Benchmark, Target};

const SIDES: [&str; 4] = ["ours", "by_hand", "by_hand_seconds", "moddatetime"];

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(100_000, 50_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b7");
    let mut session = database.connect();
    let trigger = session.try_run("CREATE EXTENSION moddatetime").is_ok();
    let sides = &SIDES[..if trigger { 4 } else { 3 }];
    for side in sides {
        session.run(&format!(
            "CREATE TABLE {side} (id bigint PRIMARY KEY, data text)"
        ));
        if *side == "ours" {
            enable(&mut session, side, LIFETIME as i64);
        } else {
            columns_by_hand(&mut session, side, "now()");
        }
    }
    if trigger {
        session.run(
            "CREATE TRIGGER stamp BEFORE UPDATE ON moddatetime FOR EACH ROW EXECUTE FUNCTION moddatetime(_ts)",
        );
    }
    let runs = context.together(7, sides, |order| {
        for side in order {
            session.run(&format!(
                "TRUNCATE {side};
                 SET ttl.preserve_ts = on;
                 INSERT INTO {side} (id, data, _ts)
                     SELECT i, md5(i::text), date_trunc('second', now()) - interval '1 h' FROM generate_series(1, {rows}) AS i;
                 RESET ttl.preserve_ts"
            ));
            settle(&mut session, side);
        }
        let outcomes = throughput(order, 750, |side| {
            let stamp = match side {
                "by_hand" => ", _ts = now()",
                "by_hand_seconds" => ", _ts = date_trunc('second', now())",
                _ => "",
            };
            Client {
                server: &server,
                database: "b7",
                script: format!("\\set id random(1, {rows})\nUPDATE {side} SET data = md5('new'){stamp} WHERE id = :id;\n"),
                protocol: "prepared",
                arguments: &[],
            }
        });
        // Each has stamped what it has written, and nothing else.
        for side in order {
            let unlike = number(
                &mut session,
                &format!(
                    "SELECT count(*) FROM {side} WHERE (data = md5('new')) <> (_ts > now() - interval '30 min')"
                ),
            );
            assert_eq!(unlike, 0.0, "{side}: rows are not stamped");
        }
        figures(&outcomes)
    });
    let mut row = |name: &str, side: &str, target| {
        let what = "UPDATE by primary key, prepared";
        compare(bench, what, &runs, "ours", (name, side), target);
    };
    row(
        "`SET …, _ts = now()`",
        "by_hand",
        Some(Target::AtLeast(0.98)),
    );
    row("the same in whole seconds", "by_hand_seconds", None);
    if trigger {
        row("moddatetime", "moddatetime", Some(Target::Above(1.0)));
    } else {
        let what = "UPDATE by primary key, prepared";
        let why = "this server has no moddatetime";
        bench.unavailable(what, "moddatetime", Some(Target::Above(1.0)), why);
    }
    drop(session);
    drop_databases(&server, &["b7"]);
}
