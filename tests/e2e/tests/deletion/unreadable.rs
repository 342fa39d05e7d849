//! Blocks that cannot be read: they are left out and named, and everything else goes. Random blocks of a
//! table are destroyed on disk, in all kinds of tables and indexes.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use ttl_ext_e2e::diff::Random;
use ttl_ext_e2e::{Database, PATIENCE, Server, Session, Stop};

const ROWS: u32 = 3000;
const BLOCK: u64 = 8192;

/// Each a table `t (id int, pad text)`, in which row n expires n seconds after all that are before it.
const KINDS: [(&str, &str); 7] = [
    ("auto", "SELECT ttl.enable('t', 3600)"),
    ("btree", "SELECT ttl.enable('t', 3600, index => 'btree')"),
    ("none", "SELECT ttl.enable('t', 3600, index => 'none')"),
    (
        "date",
        "ALTER TABLE t ADD _ts timestamptz; CREATE INDEX t_ts ON t (_ts); SELECT ttl.expire_index('t_ts', 3600)",
    ),
    (
        "after",
        "SELECT ttl.enable('t', 3600);
         CREATE TABLE gone (id int); GRANT ALL ON gone TO PUBLIC;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.gone VALUES (OLD.id); RETURN NULL; END';
         CREATE TRIGGER note AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION note()",
    ),
    (
        "before",
        "SELECT ttl.enable('t', 3600);
         CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
         CREATE TRIGGER pass BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION pass()",
    ),
    (
        "archive",
        "SELECT ttl.enable('t', 3600); CREATE TABLE a (LIKE t); SELECT ttl.archive_to('t', 'a')",
    ),
];

fn create(disk: &mut Session, enable: &str, live: u32) {
    disk.run("CREATE TABLE t (id int, pad text)");
    disk.run(enable);
    disk.run("SELECT ttl.pause('t')");
    disk.run("SET ttl.preserve_ts = on");
    disk.run(&format!(
        "INSERT INTO t (id, pad, _ts) SELECT i, repeat('x', 200), CASE WHEN i % {live} > 0 THEN '2000-01-01' ELSE now() END::timestamptz + i * interval '1 second'
           FROM generate_series(1, {ROWS}) AS i ORDER BY hashint4(i)"
    ));
    disk.run("RESET ttl.preserve_ts");
}

/// Overwrites these blocks of a table's or index's file. The server is down.
fn destroy(server: &Server, file: &str, blocks: &[u64]) {
    let file = server.dir().join("data").join(file);
    let file = OpenOptions::new().write(true).open(file).unwrap();
    for block in blocks {
        file.write_all_at(&[0x55; BLOCK as usize], block * BLOCK)
            .unwrap();
    }
}

/// The rows that are in other blocks.
fn readable(disk: &mut Session, blocks: &[u64], what: &str) -> String {
    // Ranges of blocks are read, and not the table.
    let mut from = 0;
    let mut parts = Vec::new();
    let ends = blocks.iter().copied().chain([u64::from(u32::MAX)]);
    for block in ends {
        parts.push(format!(
            "SELECT id, pad FROM t WHERE ctid >= '({from},0)' AND ctid < '({block},0)'"
        ));
        from = block + 1;
    }
    disk.value(&format!(
        "SELECT {what} FROM ({}) AS t",
        parts.join(" UNION ALL ")
    ))
}

fn wait_for_rest(database: &Database<'_>, blocks: &[u64], live: u32, kind: &str) {
    let mut disk = database.disk();
    let began = Instant::now();
    let expired = format!("count(*) FILTER (WHERE id % {live} > 0)");
    while readable(&mut disk, blocks, &expired) != "0" {
        assert!(began.elapsed().as_secs() < PATIENCE, "{kind}, {blocks:?}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn what_can_be_read_goes() {
    let mut random = Random::from_environment();
    let server = Server::start_sweeping(&[("max_worker_processes", "32")]);
    let mut cases = Vec::new();
    for (kind, enable) in KINDS {
        let database = server.database(kind);
        let mut disk = database.disk();
        let live = random.between(2, 40) as u32;
        create(&mut disk, enable, live);
        let count: u64 = disk
            .value("SELECT pg_relation_size('t') / 8192")
            .parse()
            .unwrap();
        let mut blocks: Vec<u64> = (0..random.between(1, 4))
            .map(|_| random.between(0, count as i64 - 1) as u64)
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        let kept = readable(
            &mut disk,
            &blocks,
            &format!("count(*) FILTER (WHERE id % {live} = 0)"),
        );
        let file = disk.value("SELECT pg_relation_filepath('t')");
        cases.push((kind, database, live, blocks, kept, file));
    }
    server.stop(Stop::Fast);
    for (_, _, _, blocks, _, file) in &cases {
        destroy(&server, file, blocks);
    }
    server.launch();

    for (kind, database, live, blocks, kept, _) in &cases {
        let mut disk = database.disk();
        let began = Instant::now();
        disk.run("SELECT ttl.resume('t')");
        wait_for_rest(database, blocks, *live, kind);
        println!("{kind}: {blocks:?} after {:?}", began.elapsed());
        let left = readable(&mut disk, blocks, "count(*)");
        assert_eq!(&left, kept, "{kind}");
        // Each is named, to whoever looks and in the log.
        disk.wait_until(
            "SELECT problems::text LIKE '%cannot be read%' FROM ttl.tables WHERE relation = 't'::regclass",
            "t",
            PATIENCE,
        );
        // Behind the last block there may be nothing to delete, so that it comes last.
        let aside = "SELECT blocked_rows FROM ttl.stats WHERE relation = 't'::regclass";
        disk.wait_until(aside, &blocks.len().to_string(), PATIENCE);
        for block in blocks {
            let named = format!("block {block} of public.t cannot be read");
            server.wait_for_log(&[&named], 1, PATIENCE);
        }
    }
    // And once they can be read, their rows go as well.
    for (kind, database, live, _, _, _) in &cases {
        let mut disk = database.disk();
        let began = Instant::now();
        // In a new file: what was set aside is tried at once.
        for statement in [
            "SET zero_damaged_pages = on",
            "VACUUM FULL t",
            "SELECT ttl.pause('t')",
            "SET ttl.preserve_ts = on",
            &format!(
                "INSERT INTO t (id, pad, _ts) SELECT 1 + i * {live}, 'new', '2001-01-01' FROM generate_series(1, 500) AS i"
            ),
            "SELECT ttl.resume('t')",
        ] {
            disk.run(statement);
        }
        let expired = format!("SELECT count(*) FROM t WHERE id % {live} > 0");
        disk.wait_until(&expired, "0", PATIENCE);
        println!("{kind}: mended after {:?}", began.elapsed());
        let aside = "SELECT blocked_rows FROM ttl.stats WHERE relation = 't'::regclass";
        disk.wait_until(aside, "0", PATIENCE);
        println!("{kind}: none aside after {:?}", began.elapsed());
    }
}

/// An index that cannot be read: the table is.
#[test]
fn a_destroyed_index_keeps_nothing() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("index");
    let mut disk = database.disk();
    create(&mut disk, KINDS[1].1, 10);
    let index = "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 't'::regclass LIMIT 1";
    let index = disk.value(index);
    let file = disk.value(&format!("SELECT pg_relation_filepath('{index}')"));
    server.stop(Stop::Fast);
    destroy(&server, &file, &[1, 2, 3]);
    server.launch();
    let mut disk = database.disk();
    disk.run("SELECT ttl.resume('t')");
    let live = (ROWS / 10).to_string();
    disk.run("SET enable_indexscan = off; SET enable_bitmapscan = off");
    disk.wait_until("SELECT count(*) FROM t", &live, PATIENCE);
}
