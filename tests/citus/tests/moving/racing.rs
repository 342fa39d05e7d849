//! A shard is moved while its rows expire, are refreshed and revived. (A move lost live rows: the copy reads
//! an old snapshot by today's clock; an UPDATE that was replicated then found no row.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ttl_ext_citus::ids;

use crate::{contents, with_table};

/// What is between the beginning of a copy and its end is done by a session that waits for the copy's lock: a
/// row is expired for the copy, and refreshed by a transaction that it does not see.
#[test]
fn no_live_row_is_lost() {
    let (app, mut session) = with_table("racing");
    session.run("SELECT ttl.set_default('o', 2)");
    session.run("TRUNCATE o");
    session.run("INSERT INTO o SELECT n, 'old' FROM generate_series(1, 400) AS n");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (mut writer, done) = (app.node(part), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    // Some in time, some as they expire.
                    writer.run(&format!(
                        "UPDATE o SET v = 'again' WHERE id % 2 = {part} AND id % 10 < 6"
                    ));
                    writer.run(&format!(
                        "INSERT INTO o SELECT n, 'new' FROM generate_series(1, 400) AS n
                          WHERE n % 2 = {part} AND n % 10 >= 8
                         ON CONFLICT (id) DO UPDATE SET v = 'upsert'"
                    ));
                    // What is replicated must be able to catch up.
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
        for _ in 0..3 {
            let first = &app.placements("o")[0];
            let (from, to) = (first.node, if first.node == 1 { 2 } else { 1 });
            session.run(&format!(
                "SELECT citus_move_shard_placement({}, {}, {}, 'force_logical')",
                first.shard,
                app.address(from),
                app.address(to)
            ));
        }
        done.store(true, Ordering::Relaxed);
    });
    // Rows that were written all the time are there, at the least.
    let refreshed =
        session.column("SELECT id FROM o WHERE id % 10 < 6 OR id % 10 >= 8 ORDER BY id");
    session.run("SELECT ttl.set_default('o', -1, revive_expired => true)");
    let all = session.value("SELECT count(*) FROM o");
    assert_eq!(all, "400", "rows on disk; {} were live", refreshed.len());
}

/// Case 2 of the design, as it was seen: rows that expire after the copy's snapshot and never again.
#[test]
fn rows_that_are_made_to_live_for_ever() {
    let (app, mut session) = with_table("for_ever");
    session.run("SELECT ttl.set_default('o', -1)");
    session.run("TRUNCATE o");
    let shard = app.placements("o")[0].clone();
    let to = if shard.node == 1 { 2 } else { 1 };
    // All in the shard that moves, and so many that its copy takes a while.
    session.run(&format!(
        "INSERT INTO o (id, v, ttl)
            SELECT n, repeat('x', 200), 2 FROM generate_series(1, 200000) AS n
             WHERE get_shard_id_for_distribution_column('o', n) = {}",
        shard.shard
    ));
    let rows = session.value("SELECT count(*) FROM o");
    std::thread::scope(|scope| {
        let (app, rows) = (&app, &rows);
        scope.spawn(move || {
            let mut writer = app.node(2);
            let changed = writer.client.execute("UPDATE o SET ttl = -1", &[]);
            assert_eq!(
                changed.expect("UPDATE").to_string(),
                *rows,
                "before they expire"
            );
        });
        session.run(&format!(
            "SELECT citus_move_shard_placement({}, {}, {}, 'force_logical')",
            shard.shard,
            app.address(shard.node),
            app.address(to)
        ));
    });
    assert_eq!(session.value("SELECT count(*) FROM o"), rows);
}

/// Deletes and expiry meanwhile leave nothing behind, and nothing comes back.
#[test]
fn nothing_comes_back() {
    let (app, mut session) = with_table("nothing_back");
    let before = contents(&app, "o");
    assert_eq!(before.len(), 40);
    let shard = app.placements("o")[0].clone();
    let to = if shard.node == 1 { 2 } else { 1 };
    std::thread::scope(|scope| {
        let app = &app;
        scope.spawn(move || {
            app.node(1).run("SELECT ttl.purge('o')");
        });
        session.run(&format!(
            "SELECT citus_move_shard_placement({}, {}, {}, 'force_logical')",
            shard.shard,
            app.address(shard.node),
            app.address(to)
        ));
    });
    session.run("SELECT ttl.purge('o')");
    assert_eq!(app.on_disk("o"), ids(21..=40));
}
