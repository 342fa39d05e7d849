//! Deletion by BRIN indexes: what it reads, and that it deletes all that is expired and nothing
//! else, whatever the summaries say.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, lacks_library, until};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    // VACUUM would read the tables whose reads are counted.
    SERVER.get_or_init(|| Server::start_sweeping(&[("autovacuum", "off")]))
}

/// A table in order of time, of which the first fifth is expired, with small ranges.
fn load(database: &Database<'_>, table: &str, rows: u32) -> Session {
    let mut disk = database.disk();
    disk.run(&format!(
        "CREATE TABLE {table} (id integer, what text, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
         INSERT INTO {table}
            SELECT n, repeat('x', 100), now() - interval '10 hours' + n * interval '10 hours' / {rows},
                   CASE WHEN n % 10 = 0 THEN 864000 END
              FROM generate_series(1, {rows}) AS n;
         CREATE INDEX {table}_ts ON {table} USING brin (_ts) WITH (pages_per_range = 4) WHERE ttl IS NULL;
         CREATE INDEX {table}_expiry ON {table} USING brin (ttl.expires_at(_ts, ttl, NULL))
            WITH (pages_per_range = 4) WHERE ttl > 0;
         SELECT ttl.enable('{table}', 28800, index => 'brin')"
    ));
    let built = format!("SELECT count(*) FROM pg_index WHERE indrelid = '{table}'::regclass");
    assert_eq!(disk.value(&built), "2", "the indexes serve as they are");
    disk
}

/// Blocks that were read, from the disk or not, by all sessions that have ended or are idle.
fn blocks_read(disk: &mut Session, table: &str) -> i64 {
    let read = "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = ";
    let read = disk.value(&format!("{read}'{table}'"));
    read.parse().expect("a number")
}

fn passes(disk: &mut Session, table: &str) -> i64 {
    let stats = "SELECT passes FROM ttl.stats WHERE relation = ";
    let passes = disk.value(&format!("{stats}'{table}'::regclass"));
    passes.parse().expect("a number")
}

/// What so many passes read, on average.
fn read_by_passes(disk: &mut Session, table: &str, count: i64) -> i64 {
    let (read, begun) = (blocks_read(disk, table), passes(disk, table));
    let enough = |disk: &mut Session| {
        let done = passes(disk, table) - begun;
        (done >= count).then_some(done)
    };
    let done = until("passes", 3 * PATIENCE, || enough(disk));
    (blocks_read(disk, table) - read) / done
}

/// The worker looks every second, and each time from the very beginning. Once the summaries of
/// what it has emptied are new, it reads a few ranges; before, the fifth of the table.
#[test]
fn a_pass_that_finds_nothing_reads_little() {
    let database = server().database("brin_reads");
    let mut disk = load(&database, "t", 100_000);
    let blocks =
        disk.value("SELECT pg_relation_size('t') / current_setting('block_size')::integer");
    let blocks: i64 = blocks.parse().expect("a number");
    assert!(blocks > 1500, "{blocks}");
    let deleted = "SELECT rows_deleted >= 17900 FROM ttl.stats WHERE relation = 't'::regclass";
    disk.wait_until(deleted, "t", PATIENCE);
    // What this session has written counts, too.
    disk.run("SELECT pg_stat_force_next_flush()");
    until("summaries are new", 3 * PATIENCE, || {
        (read_by_passes(&mut disk, "t", 3) < blocks / 20).then_some(())
    });
    let read = read_by_passes(&mut disk, "t", 10);
    assert!(read < blocks / 20, "{read} of {blocks} in a pass");
}

/// New rows at the end belong to ranges without a summary, to which each search is led: the worker
/// summarises them.
#[test]
fn new_ranges_are_summarised() {
    if lacks_library("pageinspect", "brin::new_ranges_are_summarised") {
        return;
    }
    let database = server().database("brin_new");
    let mut disk = load(&database, "t", 20_000);
    disk.run(
        "INSERT INTO t (id, what) SELECT n, repeat('x', 100) FROM generate_series(1, 100000) AS n",
    );
    // No index leads to its last range, which is not full.
    let new = "SELECT brin_summarize_new_values('t_ts') <= 1";
    disk.wait_until(
        "SELECT passes > 0 FROM ttl.stats WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    disk.run("CREATE EXTENSION pageinspect");
    let summarised = "SELECT count(DISTINCT item.blknum) >= (pg_relation_size('t') / 8192) / 4 - 1
           FROM generate_series(0, pg_relation_size('t_ts') / 8192 - 1) AS page (number),
                LATERAL (SELECT get_raw_page('t_ts', page.number::integer) AS raw) AS page_of,
                LATERAL (SELECT * FROM brin_page_items(raw, 't_ts')
                          WHERE brin_page_type(raw) = 'regular') AS item";
    disk.wait_until(summarised, "t", PATIENCE);
    assert_eq!(disk.value(new), "t");
}

/// Rows that the summaries did not tell of when they were made: expired by an override, written
/// into ranges that were emptied, or while the sweep goes on; ranges without a summary; a table
/// that VACUUM has made shorter.
#[test]
fn whatever_the_summaries_say() {
    let database = server().database("brin_right");
    let mut disk = load(&database, "t", 10_000);
    let living = "SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM t";
    let expected = |disk: &mut Session| {
        // The clock goes on: what expires meanwhile is expired in both.
        let query = "SELECT count(*) = 0 FROM t WHERE NOT ttl.live(_ts, ttl, 28800)";
        disk.wait_until(query, "t", PATIENCE);
    };
    expected(&mut disk);
    // Into ranges that are empty now.
    disk.run("VACUUM t");
    disk.run_preserving(
        "INSERT INTO t (id, what, _ts, ttl) SELECT n, repeat('y', 100), now() - interval '2 hours',
                CASE n % 3 WHEN 0 THEN 60 WHEN 1 THEN 864000 END
           FROM generate_series(100001, 101500) AS n",
    );
    expected(&mut disk);
    assert_eq!(
        disk.value("SELECT count(*) FROM t WHERE id > 100000"),
        "1000"
    );
    // By an override, in the midst of rows that live; and back.
    disk.run_preserving("UPDATE t SET ttl = 1, _ts = _ts WHERE id > 100000 AND id % 3 = 1");
    disk.run("UPDATE t SET ttl = NULL WHERE id > 100000 AND id % 3 = 2");
    expected(&mut disk);
    assert_eq!(
        disk.value("SELECT count(*) FROM t WHERE id > 100000"),
        "500"
    );
    // Without summaries.
    disk.run(
        "SELECT brin_desummarize_range('t_ts', block), brin_desummarize_range('t_expiry', block)
           FROM generate_series(0, pg_relation_size('t') / 8192 - 1, 4) AS block",
    );
    disk.run_preserving(
        "UPDATE t SET _ts = now() - interval '1 day' WHERE id % 7 = 0 AND ttl IS NULL",
    );
    expected(&mut disk);
    // While the sweep goes on.
    let mut others: Vec<Session> = (0..3).map(|_| database.disk()).collect();
    for n in 0..60 {
        let other = &mut others[n % 3];
        other.run_preserving(&format!(
            "INSERT INTO t (id, what, _ts, ttl) SELECT 200000 + {n}, repeat('z', 100),
                    now() - interval '9 hours', CASE m % 3 WHEN 0 THEN 864000 END
               FROM generate_series(1, 30) AS m"
        ));
    }
    expected(&mut disk);
    assert_eq!(
        disk.value("SELECT count(*) FROM t WHERE id >= 200000"),
        "600"
    );
    disk.run("DELETE FROM t WHERE id < 200000");
    disk.run("VACUUM t");
    disk.run_preserving("UPDATE t SET _ts = now() - interval '20 days'");
    disk.wait_for_none("t");
    assert_eq!(disk.value(living), "0 0");
}

/// Summaries are made by the owner's code, if the index has such a column: it runs as the owner,
/// and what it does wrong stops no deletion.
#[test]
fn code_in_the_index() {
    let database = server().database("brin_code");
    let mut admin = database.connect();
    admin.run(
        "CREATE ROLE brin_owner LOGIN; GRANT CREATE ON SCHEMA public TO brin_owner;
         GRANT USAGE ON SCHEMA ttl TO brin_owner",
    );
    let mut owner = database.connect_as("brin_owner");
    owner.run(
        "CREATE FUNCTION mine(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
         BEGIN
             IF (SELECT backend_type FROM pg_stat_get_activity(pg_backend_pid())) = 'ttl_ext worker' THEN
                 RAISE 'as %', current_user;
             END IF;
             RETURN n;
         END $$;
         CREATE TABLE t (id integer, what text, _ts timestamptz NOT NULL DEFAULT now());
         CREATE INDEX t_ts ON t USING brin (_ts, public.mine(id)) WITH (pages_per_range = 1);
         SELECT ttl.enable('t', 3600, ttl_column => NULL, index => 'brin');
         SET ttl.preserve_ts = on;
         INSERT INTO t SELECT n, repeat('x', 100), now() - n % 2 * interval '1 day'
            FROM generate_series(1, 5000) AS n",
    );
    let mut disk = database.disk();
    let (expired, living) = (
        "SELECT count(*) FROM t WHERE id % 2 = 1",
        "SELECT count(*) FROM t WHERE id % 2 = 0",
    );
    disk.wait_until(expired, "0", PATIENCE);
    let said = ["could not summarize ranges", "as brin_owner"];
    server().wait_for_log(&said, 1, PATIENCE);
    owner.run("INSERT INTO t SELECT 1, '', now() - interval '1 day'");
    disk.wait_until(expired, "0", PATIENCE);
    assert_eq!(disk.value(living), "2500");
    admin.run("DROP OWNED BY brin_owner; DROP ROLE brin_owner");
}
