//! B7: UPDATE of one row by its primary key, in a table small enough to have no index for deletion and in one that has one, against the table as it was before TTL (*bare*), whose
//! updates are heap-only, as nothing indexed changes; against statements that set `_ts`
//! themselves; and against moddatetime. And the WAL of an update, alone.

use crate::b08_delete::wal;
use crate::clients::{Client, compare, figures, throughput};
use crate::context::Context;
use crate::fixtures::{
    BARE, BY_HAND, CREATED, LIFETIME, PARTITIONED, columns_by_hand, drop_databases, enable, number,
    partitioned_by_hand, settle, wait,
};
use crate::numbers::median;
use crate::results::{Benchmark, Target};
use ttl_ext_e2e::{Server, Session};

const SIDES: [&str; 8] = [
    "ours",
    "granular",
    "btree",
    "by_hand",
    "bare",
    "twin",
    "partitioned",
    "moddatetime",
];

/// As a table of sessions has them: the lifetime, and the granularity of `_ts`.
const GRANULAR: (u64, u64) = (1800, 60);

const WHAT: &str = "UPDATE by primary key, prepared";

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let rows = context.options.pick(100_000, 50_000);
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b7");
    let mut session = database.connect();
    let trigger = session.try_run("CREATE EXTENSION moddatetime").is_ok();
    let sides = &SIDES[..if trigger { 8 } else { 7 }];
    for side in sides {
        if *side == "partitioned" {
            partitioned_by_hand(&mut session, 85);
            continue;
        }
        // Room for the new version beside the old one, as one gives a table of sessions.
        session.run(&format!(
            "CREATE TABLE {side} (id bigint PRIMARY KEY, data text) WITH (fillfactor = 85)"
        ));
        match *side {
            "ours" => enable(&mut session, side, LIFETIME as i64),
            "granular" => {
                let (lifetime, granularity) = GRANULAR;
                let granular = format!(
                    "SELECT ttl.enable('{side}', {lifetime}, ts_granularity => {granularity})"
                );
                session.run(&granular);
            }
            "btree" => {
                session.run(&format!(
                    "SELECT ttl.enable('{side}', {LIFETIME}, index => '{side}')"
                ));
            }
            "bare" | "twin" => {}
            _ => columns_by_hand(&mut session, side),
        }
    }
    if trigger {
        session.run(
            "CREATE TRIGGER stamp BEFORE UPDATE ON moddatetime FOR EACH ROW EXECUTE FUNCTION moddatetime(_ts)",
        );
    }
    let runs = context.together(7, sides, |order| {
        for side in order {
            fill(&mut session, side, rows);
        }
        let outcomes = throughput(order, 750, |side| client(&server, side, rows));
        // Each has stamped what it has written, and nothing else.
        let stamps = |side: &&&str| is_stamped(side) && **side != "granular";
        for side in order.iter().filter(stamps) {
            let unlike = number(
                &mut session,
                &format!(
                    "SELECT count(*) FROM {side} WHERE (data = md5('new')) <> (_ts > now() - interval '10 min')"
                ),
            );
            assert_eq!(unlike, 0.0, "{side}: rows are not stamped");
        }
        figures(&outcomes)
    });
    let mut row = |what: &str, side, baseline, target| {
        compare(bench, what, &runs, side, baseline, target);
    };
    row(WHAT, "ours", BY_HAND, Some(Target::AtLeast(0.98)));
    row(WHAT, "ours", BARE, None);
    row(WHAT, "ours", PARTITIONED, None);
    let indexed = format!("{WHAT}, index => 'btree'");
    row(&indexed, "btree", BY_HAND, None);
    row(&indexed, "btree", BARE, None);
    let granular = format!("{WHAT}, granularity {} of {} s", GRANULAR.1, GRANULAR.0);
    row(&granular, "granular", BARE, Some(Target::AtLeast(0.97)));
    row(&format!("A/A: {WHAT}"), "twin", BARE, None);
    let moddatetime = ("moddatetime", "moddatetime");
    let target = Some(Target::Above(1.0));
    if trigger {
        row(WHAT, "ours", moddatetime, target);
    } else {
        bench.unavailable(
            WHAT,
            moddatetime.0,
            target,
            "this server has no moddatetime",
        );
    }
    let written = context.alternate(3, false, &SIDES[..5], |side| {
        fill(&mut session, side, rows);
        alone(&server, &mut session, side, rows)
    });
    for (side, target) in [
        ("ours", Some(1.05)),
        ("granular", Some(1.1)),
        ("btree", None),
    ] {
        let what = format!("WAL of an UPDATE by primary key ({side})");
        for ((name, other), target) in [(BY_HAND, None), (BARE, target)] {
            let baseline = (name, written.of(other, "WAL"));
            let target = target.map(Target::AtMost);
            bench.compare(&what, "bytes", written.of(side, "WAL"), baseline, target);
        }
    }
    for side in &SIDES[..5] {
        let share = median(&written.of(side, "hot"));
        bench.note(format!("{side}: {share:.0} % of the updates are heap-only"));
    }
    drop(session);
    drop_databases(&server, &["b7"]);
}

/// Whether rows of the side have a `_ts`.
fn is_stamped(side: &str) -> bool {
    !["bare", "twin", "partitioned"].contains(&side)
}

/// Rows that were written a while ago.
fn fill(session: &mut Session, side: &str, rows: u64) {
    let (column, value) = if is_stamped(side) {
        let age = match side {
            // Sessions whose users click every six seconds: one click in eleven stamps.
            "granular" => "interval '1 s' * (i % 66)",
            _ => "interval '20 min'",
        };
        (", _ts", format!(", date_trunc('second', now()) - {age}"))
    } else if side == "partitioned" {
        (", created_at", format!(", {CREATED}"))
    } else {
        ("", String::new())
    };
    session.run(&format!(
        "TRUNCATE {side};
         SET ttl.preserve_ts = on;
         INSERT INTO {side} (id, data{column}) SELECT i, md5(i::text){value} FROM generate_series(1, {rows}) AS i;
         RESET ttl.preserve_ts"
    ));
    settle(session, side);
}

fn client<'a>(server: &'a Server, side: &str, rows: u64) -> Client<'a> {
    let stamp = if side == "by_hand" {
        ", _ts = now()"
    } else {
        ""
    };
    Client {
        server,
        database: "b7",
        script: format!(
            "\\set id random(1, {rows})\nUPDATE {side} SET data = md5('new'){stamp} WHERE id = :id;\n"
        ),
        protocol: "prepared",
        arguments: &[],
    }
}

/// What a side writes to the WAL for each update, and how many of them are heap-only, in percent.
fn alone(
    server: &Server,
    session: &mut Session,
    side: &str,
    rows: u64,
) -> Vec<(&'static str, f64)> {
    session.run(&format!(
        "SELECT pg_stat_reset_single_table_counters('{side}'::regclass)"
    ));
    let before = wal(session);
    let updated = rows / 2;
    client(server, side, rows).run(updated);
    let written = (wal(session) - before) / updated as f64;
    // A client's counts come when it has ended, which pgbench does not wait for.
    let counts = format!("FROM pg_stat_user_tables WHERE relname = '{side}'");
    let all = format!("SELECT n_tup_upd {counts}");
    wait(session, &all, &updated.to_string(), 20, 30);
    let hot = number(session, &format!("SELECT n_tup_hot_upd {counts}"));
    vec![("WAL", written), ("hot", 100.0 * hot / updated as f64)]
}
