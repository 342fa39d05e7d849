//! Rule 4 on Citus: shards are copied as they are on disk, whatever has expired or is written meanwhile, and
//! have their policy, trigger, indexes and deletion where they come to.

mod conversions;
mod racing;
mod rewriting;
mod shards;

use std::sync::OnceLock;

use ttl_ext_citus::{Application, Cluster, Session, ids};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&[]))
}

/// Each way in which Citus copies a shard.
const MODES: [&str; 2] = ["force_logical", "block_writes"];

/// A distributed table `o (id, v)`: rows 1 to 20 have expired, 21 to 40 are ten minutes old.
fn with_table(name: &str) -> (Application<'static>, Session) {
    let app = cluster().application(name);
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 3600)");
    fill(&mut session);
    (app, session)
}

/// The rows of `o`.
#[track_caller]
fn fill(session: &mut Session) {
    session.run_preserving(
        "INSERT INTO o (id, v, _ts)
            SELECT n, 'old', now() - CASE WHEN n <= 20 THEN interval '2 hours' ELSE interval '10 minutes' END
              FROM generate_series(1, 40) AS n",
    );
}

/// Every row with its `_ts`, expired ones too, in the order of their numbers.
#[track_caller]
fn contents(app: &Application<'_>, table: &str) -> Vec<String> {
    let query = "SELECT id, row_to_json(t)::text FROM {} AS t";
    let mut rows: Vec<_> = app
        .of_placements(table, query)
        .into_iter()
        .flat_map(|(_, rows)| rows)
        .collect();
    rows.sort_by_key(|row| row[0].parse::<i64>().expect("a number"));
    rows.into_iter().map(|row| row[1].clone()).collect()
}

/// All rows are there with their times, hidden as before, and each shard works.
#[track_caller]
fn check(app: &Application<'_>, session: &mut Session, before: &[String]) {
    assert_eq!(contents(app, "o"), before, "rows on disk");
    works(app, session);
}

/// Each shard hides, frees keys and follows a change.
#[track_caller]
fn works(app: &Application<'_>, session: &mut Session) {
    for node in 0..app.size() {
        let seen = app.node(node).column("SELECT id FROM o ORDER BY id");
        assert_eq!(seen.join(" "), ids(21..=40), "node {node}");
        assert_eq!(app.problems(node, "o"), "", "node {node}");
    }
    let query = "SELECT
        (SELECT count(*) FROM pg_trigger WHERE tgrelid = '{}'::regclass AND tgname = '~ttl_free_expired_keys'),
        (SELECT count(*) FROM pg_index WHERE indrelid = '{}'::regclass),
        (SELECT count(*) FROM pg_attrdef WHERE adrelid = '{}'::regclass)";
    for (placement, rows) in app.of_placements("o", query) {
        assert_eq!(rows, [["1", "2", "1"]], "{placement:?}");
    }
    // Keys of expired rows are free everywhere, and a change reaches the shards as they now are.
    session.run("INSERT INTO o SELECT n, 'new' FROM generate_series(1, 10) AS n");
    session.run("SELECT ttl.set_default('o', 300)");
    let seen = session.column("SELECT id FROM o ORDER BY id");
    assert_eq!(seen.join(" "), ids(1..=10));
    session.run("SELECT ttl.purge('o')");
    assert_eq!(app.on_disk("o"), ids(1..=10));
}
