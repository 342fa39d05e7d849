//! B6: COPY and INSERT … SELECT of many rows, into a table that is empty, or has expired rows on
//! disk, with other keys or with the very keys; and COPY of a file that gives `_ts`. Against the
//! table as it was before TTL (*bare*), and against one with columns and index by hand, which has
//! the same rows; where they hold the keys, it deletes them first, in the time that is measured.

use ttl_ext_e2e::Session;

use crate::context::Context;
use crate::fixtures::{
    BARE, BY_HAND, LIFETIME, columns_by_hand, drop_databases, enable, number, timed,
};
use crate::numbers::show;
use crate::results::{Benchmark, Target};

/// What is on disk before.
#[derive(Clone, Copy, PartialEq)]
enum Expired {
    None,
    /// So many, with other keys.
    Others(u64),
    /// One with each key.
    Same,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Copy,
    CopyWithTs,
    InsertSelect,
}

struct Case {
    what: &'static str,
    how: How,
    key: &'static str,
    expired: Expired,
    rows: u64,
    target: Option<f64>,
}

/// The benchmark.
pub fn run(context: &Context, bench: &mut Benchmark) {
    let (large, rows) = (
        context.options.pick(5_000_000, 300_000),
        context.options.pick(1_000_000, 100_000),
    );
    let others = Expired::Others(context.options.pick(100_000, 10_000));
    let key = "PRIMARY KEY";
    let case = |what, how, key, expired, rows, target| Case {
        what,
        how,
        key,
        expired,
        rows,
        target,
    };
    let cases = [
        case(
            "COPY without a primary key",
            How::Copy,
            "",
            Expired::None,
            large,
            Some(0.98),
        ),
        case("COPY", How::Copy, key, Expired::None, large, Some(0.90)),
        case(
            "COPY, others expired",
            How::Copy,
            key,
            others,
            rows,
            Some(0.90),
        ),
        case(
            "COPY that gives _ts",
            How::CopyWithTs,
            key,
            Expired::None,
            rows,
            Some(0.90),
        ),
        case(
            "COPY over expired rows",
            How::Copy,
            key,
            Expired::Same,
            rows,
            None,
        ),
        case(
            "INSERT … SELECT",
            How::InsertSelect,
            key,
            Expired::None,
            rows,
            None,
        ),
        case(
            "INSERT … SELECT, others expired",
            How::InsertSelect,
            key,
            others,
            rows,
            Some(0.90),
        ),
        case(
            "INSERT … SELECT over expired rows",
            How::InsertSelect,
            key,
            Expired::Same,
            rows,
            None,
        ),
    ];
    let server = context.server();
    bench.settings_of("shared", &server);
    let database = server.database("b6");
    let mut session = database.connect();
    for case in cases {
        let file = server.dir().join("rows.txt").display().to_string();
        let stamp = if case.how == How::CopyWithTs {
            ", date_trunc('second', now()), NULL"
        } else {
            ""
        };
        session.run(&format!(
            "DROP TABLE IF EXISTS source;
             CREATE TABLE source AS SELECT i AS id, md5(i::text) AS data FROM generate_series(1::bigint, {}) AS i;
             COPY (SELECT id, data{stamp} FROM source) TO '{file}'",
            case.rows
        ));
        session.run("VACUUM ANALYZE source");
        let sides: &[&str] = if case.how == How::CopyWithTs || case.expired != Expired::None {
            &["ours", "by_hand"]
        } else {
            &["ours", "by_hand", "bare"]
        };
        let runs = context.alternate(5, false, sides, |side| {
            let seconds = load(&mut session, &case, side, &file);
            vec![("rows/s", case.rows as f64 / seconds)]
        });
        let what = format!("{}, {} rows", case.what, show(case.rows as f64));
        let mut row = |(name, side): (&str, &str), target: Option<f64>| {
            let baseline = (name, runs.of(side, "rows/s"));
            let target = target.map(Target::AtLeast);
            bench.compare(&what, "rows/s", runs.of("ours", "rows/s"), baseline, target);
        };
        row(BY_HAND, case.target);
        if sides.contains(&"bare") {
            row(BARE, None);
        }
        std::fs::remove_file(&file).expect("the file that COPY reads");
    }
    drop(session);
    drop_databases(&server, &["b6"]);
}

/// Makes the table, and measures the seconds.
fn load(session: &mut Session, case: &Case, side: &str, file: &str) -> f64 {
    session.run(&format!(
        "DROP TABLE IF EXISTS target; CREATE TABLE target (id bigint {}, data text)",
        case.key
    ));
    match side {
        "ours" => enable(session, "target", LIFETIME as i64),
        "by_hand" => columns_by_hand(session, "target"),
        _ => {}
    }
    let keys = match case.expired {
        Expired::None => None,
        Expired::Others(count) => Some(format!("generate_series(-{count}, -1)")),
        Expired::Same => Some(format!("generate_series(1, {})", case.rows)),
    };
    if let Some(keys) = keys {
        session.run(&format!(
            "SET ttl.preserve_ts = on;
             INSERT INTO target (id, data, _ts) SELECT i, 'old', date_trunc('second', now()) - interval '2 days' FROM {keys} AS i;
             RESET ttl.preserve_ts"
        ));
    }
    session.run("VACUUM ANALYZE target");
    session.run("CHECKPOINT");
    let mut seconds = 0.0;
    if side == "by_hand" && case.expired == Expired::Same {
        let delete = format!("DELETE FROM target WHERE _ts < now() - interval '{LIFETIME} s'");
        seconds = timed(session, &delete);
    }
    let statement = match case.how {
        How::Copy => format!("COPY target (id, data) FROM '{file}'"),
        How::CopyWithTs => format!("COPY target (id, data, _ts, ttl) FROM '{file}'"),
        How::InsertSelect => "INSERT INTO target SELECT id, data FROM source".to_owned(),
    };
    seconds += timed(session, &statement);
    let new = "SELECT count(*) FROM target WHERE id > 0 AND data <> 'old'";
    assert_eq!(
        number(session, new),
        case.rows as f64,
        "{}, {side}",
        case.what
    );
    seconds
}
