//! Complaint 7: rows that cannot be deleted are found, set aside, counted and shown; all other rows
//! are deleted.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ttl_ext_e2e::{PATIENCE, Server, Session, until};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// A session that sees the disk, in a database with a table `t`.
fn with_table(name: &str) -> Session {
    let mut disk = server().database(name).disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, what text); SELECT ttl.enable('t', 3600);
         INSERT INTO t VALUES (0)",
    );
    disk
}

/// Rows written now, then in the same step given a `_ts` a day ago.
pub(super) fn insert_and_age(disk: &mut Session, rows: i32) {
    disk.run_preserving(&format!(
        "INSERT INTO t (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(1, {rows}) AS n"
    ));
}

/// Wait until `ttl.stats` shows so many blocked rows, and an error with this text.
fn wait_for_blocked(disk: &mut Session, rows: i32, error: &str) {
    let query = format!(
        "SELECT blocked_rows || ' ' || COALESCE(last_error LIKE '%{error}%' AND last_error_at <= now(), false)
           FROM ttl.stats WHERE relation = 't'::regclass"
    );
    // Rows that fail take a hundredth of a worker, which is little on a busy machine.
    disk.wait_until(&query, &format!("{rows} true"), 4 * PATIENCE);
}

fn wait_for_unblocked(disk: &mut Session) {
    let query = "SELECT blocked_rows FROM ttl.stats WHERE relation = 't'::regclass";
    disk.wait_until(query, "0", PATIENCE);
}

/// A row that is set aside is not tried in later passes, which are a naptime apart. It is tried
/// again after a minute.
#[track_caller]
fn assert_no_spinning(disk: &mut Session) {
    let stats = |disk: &mut Session, what: &str| {
        disk.value(&format!(
            "SELECT {what} FROM ttl.stats WHERE relation = 't'::regclass"
        ))
    };
    let passes = |disk: &mut Session| stats(disk, "passes").parse::<u64>().expect("a count");
    let (began, first) = (Instant::now(), passes(disk));
    until("passes in which nothing is tried", PATIENCE, || {
        let tried = "batches || ' ' || COALESCE(last_error_at::text, '')";
        let (before, done) = (stats(disk, tried), passes(disk));
        // Three full passes; the first may have begun before.
        disk.wait_until(
            &format!("SELECT passes >= {done} + 4 FROM ttl.stats WHERE relation = 't'::regclass"),
            "t",
            PATIENCE,
        );
        (stats(disk, tried) == before).then_some(())
    });
    // A slow machine makes fewer passes.
    let (count, seconds) = (passes(disk) - first, began.elapsed().as_secs() + 1);
    assert!(count < 20 * seconds, "{count} passes in {seconds} s");
}

/// Thousands that live rows refer to, of the same second as others: the others go, and all are counted. By foreign
/// keys of two columns, with other names and types, beside one that cascades.
#[test]
fn many_of_one_time() {
    let mut disk = with_table("many_of_one_time");
    disk.run(
        "CREATE TABLE \"x\" (a bigint, \"B b\" varchar, pad text, UNIQUE (a, \"B b\"));
         SELECT ttl.enable('x', 3600);
         CREATE TABLE child (id integer REFERENCES t, what text);
         CREATE INDEX ON child (id);
         CREATE TABLE cascades (id integer REFERENCES t ON DELETE CASCADE);
         CREATE INDEX ON cascades (id);
         CREATE TABLE two (b text, a integer, FOREIGN KEY (a, b) REFERENCES \"x\" (a, \"B b\") ON DELETE RESTRICT);
         CREATE INDEX ON two (a, b);
         BEGIN; SET LOCAL ttl.preserve_ts = on;
         INSERT INTO t (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(1, 6000) AS n;
         INSERT INTO \"x\" (a, \"B b\", _ts) SELECT n, n, now() - interval '1 day' FROM generate_series(1, 6000) AS n;
         INSERT INTO x VALUES (NULL, 'no key');
         SET session_replication_role = replica;
         INSERT INTO child SELECT n FROM generate_series(1, 6000) AS n WHERE n % 6 <> 0;
         INSERT INTO cascades SELECT n FROM generate_series(1, 6000) AS n;
         INSERT INTO two SELECT n, n FROM generate_series(1, 6000) AS n WHERE n % 6 <> 0;
         INSERT INTO two VALUES (NULL, 2);
         COMMIT; RESET session_replication_role",
    );
    for table in ["t", "x"] {
        let key = if table == "t" { "id" } else { "a" };
        let left = format!("SELECT count(*) FROM {table} WHERE {key} > 0");
        disk.wait_until(&left, "5000", 2 * PATIENCE);
        let free = format!("SELECT count(*) FROM {table} WHERE {key} > 0 AND {key} % 6 = 0");
        assert_eq!(disk.value(&free), "0");
        let blocked = format!(
            "SELECT blocked_rows || ' ' || (lag > '1 hour') FROM ttl.stats WHERE relation = '{table}'::regclass"
        );
        disk.wait_until(&blocked, "5000 true", 2 * PATIENCE);
        let told = format!(
            "SELECT count(*) FROM ttl.tables, unnest(problems) AS problem
              WHERE relation = '{table}'::regclass AND problem LIKE '5000 expired rows%foreign key%'"
        );
        disk.wait_until(&told, "1", PATIENCE);
    }
    // What is not referred to any more is deleted; a change of policy makes the worker look at once.
    disk.run("DELETE FROM child WHERE id <= 3000; SELECT ttl.set_default('t', 3599)");
    disk.wait_until("SELECT count(*) FROM t WHERE id > 0", "2500", 2 * PATIENCE);
    disk.run("DROP TABLE child; SELECT ttl.set_default('t', 3598)");
    disk.wait_until("SELECT count(*) FROM t WHERE id > 0", "0", 2 * PATIENCE);
    wait_for_unblocked(&mut disk);
}

/// A foreign key keeps one row of a thousand. Once it is dropped, a change of policy makes the
/// worker try again at once.
#[test]
fn foreign_key() {
    let mut disk = with_table("foreign_key");
    disk.run(
        "CREATE TABLE child (id integer REFERENCES t);
         INSERT INTO t SELECT n FROM generate_series(1, 1000) AS n;
         INSERT INTO child VALUES (500)",
    );
    disk.run_preserving("UPDATE t SET _ts = now() - interval '1 day' WHERE id > 0");
    disk.wait_for_ids("t", "0 500");
    wait_for_blocked(&mut disk, 1, "violates foreign key constraint");
    assert_no_spinning(&mut disk);
    // C6: blocked rows are hidden too.
    disk.run("RESET ttl.show_expired");
    assert_eq!(disk.column("SELECT id FROM t"), ["0"]);
    disk.run("SET ttl.show_expired = on");
    // Rows that expire later are deleted.
    disk.look_again("t");
    disk.insert_expired("t", 2001, 2500);
    disk.wait_for_ids("t", "0 500");
    disk.run("DELETE FROM child; SELECT ttl.set_default('t', 3599)");
    disk.wait_for_ids("t", "0");
    wait_for_unblocked(&mut disk);
}

/// A trigger fails for some rows; once it does not, `ttl.purge` deletes them.
#[test]
fn failing_trigger() {
    let mut disk = with_table("failing_trigger");
    disk.run(
        "CREATE FUNCTION object() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF OLD.id % 100 = 7 THEN RAISE EXCEPTION 'not %', OLD.id; END IF;
             RETURN OLD;
         END $$;
         CREATE TRIGGER object BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION object()",
    );
    insert_and_age(&mut disk, 1000);
    disk.wait_for_ids("t", "0 7 107 207 307 407 507 607 707 807 907");
    wait_for_blocked(&mut disk, 10, "not ");
    assert_no_spinning(&mut disk);
    disk.look_again("t");
    // A purge deletes all rows or none.
    let error = disk.error("SELECT ttl.purge('t')");
    assert!(error.message().starts_with("not "), "{error:?}");
    // In one transaction, so that no worker deletes in between.
    let purged = disk.value("DROP TRIGGER object ON t; SELECT ttl.purge('t')");
    assert_eq!(purged, "10");
    assert_eq!(disk.count("t"), 1);
    disk.run("SELECT ttl.set_default('t', 3599)");
    wait_for_unblocked(&mut disk);
}

/// One trigger fails for every row, another at commit: the other tables are still served.
#[test]
fn every_row_fails() {
    let mut disk = with_table("every_row");
    disk.run(
        "CREATE TABLE u (id integer PRIMARY KEY); SELECT ttl.enable('u', 3600);
         CREATE FUNCTION object() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN RAISE EXCEPTION 'never %', OLD.id; END $$;
         CREATE CONSTRAINT TRIGGER object AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION object()",
    );
    insert_and_age(&mut disk, 300);
    for round in 0..3 {
        disk.insert_expired("u", 1, 500);
        disk.wait_for_none("u");
        if round == 0 {
            wait_for_blocked(&mut disk, 300, "never ");
        }
    }
    assert_eq!(disk.count("t"), 301);
    assert_no_spinning(&mut disk);
    disk.run("DROP TRIGGER object ON t; SELECT ttl.set_default('t', 3599)");
    disk.wait_for_ids("t", "0");
    wait_for_unblocked(&mut disk);
}

/// An AFTER trigger fails for some rows, at once or at commit: they alone are set aside.
#[test]
fn failing_after_trigger() {
    for (name, deferred) in [("at_once", ""), ("at_commit", "INITIALLY DEFERRED")] {
        let mut disk = with_table(&format!("failing_{name}"));
        disk.run(&format!(
            "CREATE FUNCTION object() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF OLD.id IN (7, 700) THEN RAISE EXCEPTION 'not %', OLD.id; END IF;
                 RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER object AFTER DELETE ON t DEFERRABLE {deferred}
                FOR EACH ROW EXECUTE FUNCTION object()"
        ));
        insert_and_age(&mut disk, 1000);
        disk.wait_for_ids("t", "0 7 700");
        wait_for_blocked(&mut disk, 2, "not ");
        disk.run("DROP TRIGGER object ON t; SELECT ttl.set_default('t', 3599)");
        disk.wait_for_ids("t", "0");
        wait_for_unblocked(&mut disk);
    }
}

/// A trigger ends the worker for one row, which is then set aside; those beside it are deleted.
#[test]
fn row_that_ends_the_worker() {
    for when in ["AFTER", "BEFORE"] {
        let mut disk = with_table(&format!("ends_the_worker_{}", when.to_lowercase()));
        disk.run(&format!(
            "CREATE FUNCTION finish() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF OLD.id = 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(60); END IF;
                 RETURN OLD;
             END $$;
             CREATE TRIGGER finish {when} DELETE ON t FOR EACH ROW EXECUTE FUNCTION finish()"
        ));
        insert_and_age(&mut disk, 4);
        disk.wait_for_ids("t", "0 3");
        wait_for_blocked(&mut disk, 1, "a worker ended");
        disk.run("DROP TRIGGER finish ON t; SELECT ttl.set_default('t', 3599)");
        disk.wait_for_ids("t", "0");
        wait_for_unblocked(&mut disk);
    }
}

/// Cascades delete the referencing rows; one that cannot keeps only its own parent row.
#[test]
fn cascades() {
    let mut disk = with_table("cascades");
    disk.run(
        "CREATE TABLE child (id integer PRIMARY KEY, t integer REFERENCES t ON DELETE CASCADE);
         CREATE INDEX ON child (t);
         CREATE TABLE grandchild (id integer REFERENCES child);
         CREATE TABLE orphan (id integer, t integer REFERENCES t ON DELETE SET NULL);
         INSERT INTO t SELECT n FROM generate_series(1, 500) AS n;
         INSERT INTO child SELECT n, n / 20 FROM generate_series(20, 10019) AS n;
         INSERT INTO grandchild VALUES (6005), (6006);
         INSERT INTO orphan SELECT n, n FROM generate_series(1, 500) AS n",
    );
    disk.run_preserving("UPDATE t SET _ts = now() - interval '1 day' WHERE id > 0");
    disk.wait_for_ids("t", "0 300");
    wait_for_blocked(&mut disk, 1, "violates foreign key constraint");
    let left = "SELECT count(*) || ' ' || min(t) || ' ' || max(t) FROM child";
    assert_eq!(disk.value(left), "20 300 300");
    let orphans = "SELECT count(*) || ' ' || count(t) FROM orphan";
    assert_eq!(disk.value(orphans), "500 1");
    disk.run("DELETE FROM grandchild; SELECT ttl.set_default('t', 3599)");
    disk.wait_for_ids("t", "0");
    assert_eq!(disk.value("SELECT count(*) FROM child"), "0");
    wait_for_unblocked(&mut disk);
}

/// A trigger that returns NULL keeps a row without raising an error.
#[test]
fn trigger_returns_null() {
    let mut disk = with_table("returns_null");
    disk.run(
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF OLD.id IN (5, 6) THEN RETURN NULL; END IF;
             RETURN OLD;
         END $$;
         CREATE TRIGGER keep BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep()",
    );
    insert_and_age(&mut disk, 1000);
    disk.wait_for_ids("t", "0 5 6");
    disk.wait_until(
        "SELECT blocked_rows FROM ttl.stats WHERE relation = 't'::regclass",
        "2",
        PATIENCE,
    );
    assert_no_spinning(&mut disk);
    disk.look_again("t");
    disk.run("DROP TRIGGER keep ON t; SELECT ttl.set_default('t', 3599)");
    disk.wait_for_ids("t", "0");
    wait_for_unblocked(&mut disk);
}

/// A rule keeps every row: this is reported, and stops no other table.
#[test]
fn rule_instead() {
    let mut disk = with_table("rule");
    disk.run(
        "CREATE TABLE u (id integer PRIMARY KEY); SELECT ttl.enable('u', 3600);
         CREATE RULE keep AS ON DELETE TO t DO INSTEAD NOTHING",
    );
    insert_and_age(&mut disk, 100);
    disk.insert_expired("u", 1, 500);
    disk.wait_for_none("u");
    disk.wait_until(
        "SELECT blocked_rows > 0 OR last_error IS NOT NULL FROM ttl.stats WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    assert_no_spinning(&mut disk);
    disk.look_again("u");
    assert_eq!(disk.count("t"), 101);
    disk.run("DROP RULE keep ON t; SELECT ttl.set_default('t', 3599)");
    disk.wait_for_ids("t", "0");
}

/// A foreign key within one table: a tree, and two rows that refer to each other. They can only be
/// deleted together.
#[test]
fn self_reference() {
    let mut disk = with_table("self_reference");
    disk.run(
        "ALTER TABLE t ADD parent integer REFERENCES t;
         INSERT INTO t (id, parent) SELECT n, nullif(n / 2, 0) FROM generate_series(1, 200) AS n;
         UPDATE t SET parent = 200 WHERE id = 199;
         UPDATE t SET parent = 199 WHERE id = 200",
    );
    disk.run_preserving("UPDATE t SET _ts = now() - interval '1 day' WHERE id > 0");
    disk.wait_for_ids("t", "0");
    let blocked = "SELECT blocked_rows FROM ttl.stats WHERE relation = 't'::regclass";
    assert_eq!(disk.value(blocked), "0");
}

/// Rows that cannot be deleted take a small share of a worker's time, however many there are, and
/// delay no others of their table.
#[test]
fn many_blocked_rows_delay_nothing() {
    let mut disk = server().database("many_blocked").disk();
    disk.run(
        "CREATE TABLE p (id integer PRIMARY KEY); CREATE TABLE c (p integer REFERENCES p);
         SELECT ttl.enable('p', 3600), ttl.pause('p');
         INSERT INTO p SELECT generate_series(1, 5000); INSERT INTO c SELECT id FROM p; CREATE INDEX ON c (p)",
    );
    disk.run_preserving(
        "UPDATE p SET _ts = now() - interval '1 day' + id * interval '10 s'; SELECT ttl.resume('p')",
    );
    let blocked = "SELECT blocked_rows >= 100 FROM ttl.stats WHERE relation = 'p'::regclass";
    disk.wait_until(blocked, "t", PATIENCE);
    // The first search through all of them.
    std::thread::sleep(Duration::from_secs(10));
    let used = |disk: &mut Session| {
        let used = "SELECT time_used_ms FROM ttl.stats WHERE relation = 'p'::regclass";
        disk.value(used).parse::<f64>().expect("a time")
    };
    let (began, before) = (Instant::now(), used(&mut disk));
    for round in 0..30 {
        disk.run(&format!(
            "INSERT INTO p (id, ttl) VALUES ({}, 1)",
            10_000 + round
        ));
        std::thread::sleep(Duration::from_secs(1));
        let late = format!(
            "SELECT count(*) FROM p WHERE id >= 10000 AND id < {}",
            10_000 + round - 20
        );
        assert_eq!(disk.value(&late), "0", "round {round}");
    }
    let share = (used(&mut disk) - before) / began.elapsed().as_secs_f64() / 1000.0;
    println!("share of a worker's time: {share:.4}");
    // It is 0.01 to 0.05, by how busy the machine is; trying all of them each time would take all of it.
    assert!(share < 0.2, "{share}");
    assert_eq!(
        disk.value("SELECT count(*) FROM p WHERE id <= 5000"),
        "5000"
    );
    let problem = "SELECT problems::text LIKE '%cannot be deleted%' FROM ttl.tables WHERE relation = 'p'::regclass";
    assert_eq!(disk.value(problem), "t");
    // What keeps them goes.
    disk.run("TRUNCATE c; SELECT ttl.set_default('p', 3599)");
    disk.wait_until("SELECT count(*) FROM p", "0", PATIENCE);
}

/// What fails at the commit of a batch is not its last row: with a full queue of notifications no row is set aside, and all go once
/// there is room.
#[test]
fn an_error_of_the_commit_is_no_rows() {
    let server = Server::start_sweeping(&[]);
    if server.major() < 17 {
        println!("SKIPPED: since PostgreSQL 17");
        return;
    }
    server.configure(&[("max_notify_queue_pages", "64")]);
    server.restart();
    let database = server.database("full_queue");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, what text); SELECT ttl.enable('t', 3600), ttl.set_option('t', 'notify', 'gone'), ttl.pause('t')",
    );
    insert_and_age(&mut disk, 3000);
    let mut listener = database.connect();
    listener.run("LISTEN other");
    listener.run("BEGIN; SELECT 1");
    let mut filling = database.connect();
    let fill =
        "SELECT count(pg_notify('other', n || repeat('x', 7000))) FROM generate_series(1, 8) AS n";
    let full = (0..200).find_map(|_| filling.try_run(fill).err());
    assert_eq!(
        full.and_then(|error| error.code().map(|it| it.code().to_owned())),
        Some("54000".to_owned())
    );
    disk.run("SELECT ttl.resume('t')");
    disk.wait_until(
        "SELECT last_error LIKE '%too many notifications%' FROM ttl.stats WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    assert_eq!(
        disk.value("SELECT blocked_rows FROM ttl.stats WHERE relation = 't'::regclass"),
        "0"
    );
    listener.run("COMMIT");
    // That advances the queue's tail, too.
    disk.wait_until("SELECT pg_notification_queue_usage() < 0.1", "t", PATIENCE);
    disk.wait_for_none("t");
}
