//! alter_distributed_table, undistribute_table and their like keep every row as it is, `_ts` included. (They
//! stamped every row anew.)

use ttl_ext_citus::{Application, Session, ids};

use crate::{cluster, contents, with_table, works};

/// The live ones of these rows.
fn live(rows: &[String]) -> &[String] {
    &rows[rows.len() - 20..]
}

/// Rows on disk but for those that have expired.
#[track_caller]
fn live_contents(app: &Application<'_>) -> Vec<String> {
    let rows = contents(app, "o");
    rows[rows.len() - 20..].to_vec()
}

#[test]
fn another_count_of_shards() {
    let (app, mut session) = with_table("shard_count");
    let before = contents(&app, "o");
    session.run("SELECT alter_distributed_table('o', shard_count => 6)");
    assert_eq!(app.placements("o").len(), 6);
    assert_eq!(live_contents(&app), live(&before));
    works(&app, &mut session);
}

#[test]
fn another_column() {
    let (app, mut session) = with_table("other_column");
    session.run("ALTER TABLE o ADD COLUMN k int NOT NULL DEFAULT 7");
    session.run("ALTER TABLE o DROP CONSTRAINT o_pkey");
    let before = contents(&app, "o");
    session.run("SELECT alter_distributed_table('o', distribution_column => 'k')");
    assert_eq!(live_contents(&app), live(&before));
    for node in 0..app.size() {
        let seen = app.node(node).column("SELECT id FROM o ORDER BY id");
        assert_eq!(seen.join(" "), ids(21..=40), "node {node}");
        assert_eq!(app.problems(node, "o"), "", "node {node}");
    }
}

/// Expired rows are left out: they cannot come back.
#[test]
fn expired_rows_are_left_out() {
    let (app, mut session) = with_table("left_out");
    session.run("SELECT alter_distributed_table('o', shard_count => 6)");
    assert_eq!(app.on_disk("o"), ids(21..=40));
    session.run("SELECT ttl.set_default('o', -1, revive_expired => true)");
    assert_eq!(session.value("SELECT count(*) FROM o"), "20");
}

#[track_caller]
fn plain(app: &Application<'_>, session: &mut Session, before: &[String]) {
    let mut disk = app.database(0).disk();
    let after = disk.column("SELECT row_to_json(o)::text FROM o ORDER BY id");
    assert_eq!(after[after.len() - 20..], before[20..]);
    assert_eq!(
        session.column("SELECT id FROM o ORDER BY id").join(" "),
        ids(21..=40)
    );
    assert_eq!(app.problems(0, "o"), "");
    session.run("INSERT INTO o (id, v) VALUES (1, 'new')");
    session.run("UPDATE o SET v = 'upd' WHERE id = 21");
    let young = "SELECT count(*) FROM o WHERE _ts > now() - interval '5 minutes'";
    assert_eq!(session.value(young), "2");
    session.run("SELECT ttl.purge('o')");
    assert_eq!(disk.value("SELECT count(*) FROM o"), "21");
    session.run("SELECT ttl.disable('o', drop_columns => true)");
}

#[test]
fn undistributed() {
    let (app, mut session) = with_table("undistributed_rows");
    let before = contents(&app, "o");
    session.run("SELECT undistribute_table('o')");
    plain(&app, &mut session, &before);
}

#[test]
fn a_reference_table_undistributed() {
    let app = cluster().application("unreferenced");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_reference_table('o')");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(
        "INSERT INTO o (id, v, _ts)
            SELECT n, 'old', now() - CASE WHEN n <= 20 THEN interval '2 hours' ELSE interval '10 minutes' END
              FROM generate_series(1, 40) AS n",
    );
    let before = app
        .database(0)
        .disk()
        .column("SELECT row_to_json(o)::text FROM o ORDER BY id");
    assert_eq!(before.len(), 40);
    session.run("SELECT undistribute_table('o')");
    plain(&app, &mut session, &before);
}

/// And again to where it came from.
#[test]
fn there_and_back() {
    let (app, mut session) = with_table("and_back");
    let before = contents(&app, "o");
    session.run("SELECT undistribute_table('o')");
    session.run("SELECT create_distributed_table('o', 'id')");
    assert_eq!(live_contents(&app), live(&before));
    works(&app, &mut session);
}

/// PostgreSQL's own rewrites, on each shard.
#[test]
fn by_alter_table() {
    let (app, mut session) = with_table("alter_table");
    session.run("SELECT ttl.purge('o')");
    session.run("ALTER TABLE o ALTER COLUMN v TYPE varchar(100)");
    session.run("ALTER TABLE o ADD COLUMN w text DEFAULT 'w'");
    session.run("ALTER TABLE o ADD CONSTRAINT short CHECK (length(v) < 50)");
    session.run("CREATE UNIQUE INDEX o_more ON o (id, v)");
    let young = "SELECT count(*) FROM o WHERE _ts > now() - interval '5 minutes'";
    assert_eq!(session.value(young), "0");
    session.run_preserving("UPDATE o SET _ts = now() - interval '2 hours' WHERE id <= 30");
    session.run("INSERT INTO o (id, v) SELECT n, 'new' FROM generate_series(21, 30) AS n");
    assert_eq!(app.on_disk("o"), ids(21..=40));
    session.run("VACUUM FULL o");
    session.run("ALTER TABLE o DROP COLUMN w");
    assert_eq!(session.value("SELECT count(*) FROM o"), "20");
}
