//! Rows that stay: more of them than there is room to set aside, locked ones, and what the figures say once others have
//! deleted them.

use std::sync::OnceLock;

use super::blocked::insert_and_age;
use ttl_ext_e2e::{PATIENCE, Server};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// More than there is room to set aside, of one time, and others behind them: those are deleted, in the table's order and in
/// that of an index. What the trigger keeps fills the room at once; what it refuses costs a hundredth of a worker's time.
#[test]
fn more_than_there_is_room_for() {
    for index in ["none", "btree"] {
        let mut disk = server().database(&format!("room_{index}")).disk();
        disk.run(&format!(
            "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600, index => '{index}'), ttl.pause('t');
             CREATE FUNCTION object() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF OLD.id <= 1030 THEN RETURN NULL; END IF;
                 IF OLD.id <= 1060 THEN RAISE EXCEPTION 'not %', OLD.id; END IF;
                 RETURN OLD;
             END $$;
             CREATE TRIGGER object BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION object()"
        ));
        insert_and_age(&mut disk, 1300);
        disk.run("SELECT ttl.resume('t')");
        disk.wait_until("SELECT count(*) FROM t WHERE id > 1060", "0", 4 * PATIENCE);
        assert_eq!(disk.count("t"), 1060, "{index}");
        let problem = "SELECT problems::text LIKE '%more rows cannot be deleted than there is room%' FROM ttl.tables WHERE relation = 't'::regclass";
        assert_eq!(disk.value(problem), "t", "{index}");
    }
}

const PROBLEMS: &str =
    "SELECT array_to_string(problems, '; ') FROM ttl.tables WHERE relation = 't'::regclass";

/// S9: rows that were set aside, and that somebody else has deleted or changed, count no longer.
#[test]
fn figures_follow_what_others_do() {
    let mut disk = server().database("follow").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE FUNCTION object() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN IF current_setting('application_name') = 'user' THEN RETURN OLD; END IF; RAISE EXCEPTION 'no'; END $$;
         CREATE TRIGGER object BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION object()",
    );
    insert_and_age(&mut disk, 20);
    disk.wait_until("SELECT blocked_rows FROM ttl.stats", "20", PATIENCE);
    disk.run(
        "SET application_name = 'user'; DELETE FROM t WHERE id <= 15; UPDATE t SET id = id + 100 WHERE id > 15",
    );
    disk.wait_until("SELECT blocked_rows FROM ttl.stats", "0", PATIENCE);
    disk.wait_until(PROBLEMS, "", PATIENCE);
}

/// S9: after DDL rows that were set aside are tried again before their time: what kept them may be gone.
#[test]
fn ddl_may_have_mended_it() {
    let mut disk = server().database("mended").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE FUNCTION object() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
         CREATE TRIGGER object BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION object()",
    );
    insert_and_age(&mut disk, 20);
    disk.wait_until("SELECT blocked_rows FROM ttl.stats", "20", PATIENCE);
    // A pass has seen them, and what keeps them.
    let passes = disk.value("SELECT passes FROM ttl.stats");
    disk.wait_until(
        &format!("SELECT passes > {passes} + 1 FROM ttl.stats"),
        "t",
        PATIENCE,
    );
    disk.run("DROP TRIGGER object ON t");
    // By themselves they would be tried again after a minute.
    disk.wait_until("SELECT count(*) FROM t", "0", 40);
    disk.wait_until(PROBLEMS, "", PATIENCE);
}

/// S9: once no foreign key keeps rows, nothing is behind.
#[test]
fn nothing_lags_without_the_foreign_key() {
    let mut disk = server().database("unreferred").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, at timestamptz); SELECT ttl.expire_after('t', 'at', 0);
         CREATE TABLE child (id integer REFERENCES t);
         INSERT INTO t SELECT n, now() + interval '1 hour' FROM generate_series(1, 20) AS n;
         INSERT INTO child SELECT id FROM t;
         UPDATE t SET at = now() - interval '1 second'",
    );
    disk.wait_until("SELECT blocked_rows FROM ttl.stats", "20", PATIENCE);
    disk.run("DROP TABLE child");
    disk.wait_until("SELECT count(*) FROM t", "0", PATIENCE);
    disk.wait_until("SELECT lag = '0' FROM ttl.stats", "t", 30);
}

/// S3: rows that others have locked for long are named, as long as they have.
#[test]
fn locked_rows_are_named() {
    let database = server().database("locked_long");
    let (mut disk, mut other) = (database.disk(), database.disk());
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600), ttl.pause('t')",
    );
    insert_and_age(&mut disk, 20);
    other.run("BEGIN; SELECT FROM t FOR UPDATE");
    disk.run("SELECT ttl.resume('t')");
    let named = format!("SELECT ({PROBLEMS}) LIKE '%20 expired rows of public.t are locked%'");
    disk.wait_until(&named, "t", PATIENCE);
    other.run("COMMIT");
    disk.wait_for_none("t");
    disk.wait_until(PROBLEMS, "", PATIENCE);
}
