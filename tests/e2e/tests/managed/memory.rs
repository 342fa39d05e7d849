//! Memory: what `docs/managed.md` says of it, and servers that have little.

use ttl_ext_e2e::{PATIENCE, Server, until};

const MB: i64 = 1 << 20;

/// The size of the server's shared memory, all of it.
fn shared_memory(server: &Server) -> i64 {
    let total = "SELECT sum(allocated_size) FROM pg_shmem_allocations";
    let mut session = server.connect("postgres", "postgres");
    session.value(total).parse().expect("a number of bytes")
}

#[test]
fn shared_memory_is_as_documented() {
    let server = Server::start(&[("shared_preload_libraries", "")]);
    let without = shared_memory(&server);
    let with = |tables: &str| {
        server.configure(&[
            ("shared_preload_libraries", "ttl_ext"),
            ("ttl.max_tables", tables),
        ]);
        server.restart();
        shared_memory(&server) - without
    };
    let (few, default) = (with("100"), with("10000"));
    let each = (default - few) / 9900;
    println!("shared memory: {few} bytes for 100 tables, {default} for 10,000: {each} a table");
    assert!(few < 3 * MB, "{few}");
    assert!(default < 17 * MB, "{default}");
    assert!((300..=1550).contains(&each), "{each}");
}

/// What one asks the server for before it starts, to reserve huge pages, has our part in it.
#[test]
fn huge_pages_are_counted() {
    let server = Server::start(&[]);
    server.stop(ttl_ext_e2e::Stop::Fast);
    let size = |setting: &str| -> i64 {
        let mut postgres = server.tool("postgres", "");
        postgres.arg("-D").arg(server.dir().join("data")).args([
            "-C",
            "shared_memory_size",
            "-c",
            setting,
        ]);
        let output = server.must_run(&mut postgres);
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        text.parse().expect("a number of megabytes")
    };
    let more = size("ttl.max_tables=1000000") - size("ttl.max_tables=10000");
    println!("{more} MB for 990,000 tables more");
    assert!((300..=1500).contains(&more), "{more}");
    server.launch();
}

/// What a process has to itself, in bytes, of `/proc/PID/smaps_rollup`; `None` if it has ended.
fn own_memory(what: &str, pid: i32) -> Option<i64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(path).ok()?;
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let words = line.expect(name).split_whitespace().collect::<Vec<_>>();
        words[1].parse::<i64>().expect("a number")
    };
    let [own, pss, rss] = ["Anonymous", "Pss", "Rss"].map(figure);
    println!("{what}: {own} kB of its own, Pss {pss} kB, RSS {rss} kB");
    Some(own * 1024)
}

/// What a process has to itself; the rest is shared with the server's others.
#[test]
fn processes_are_small() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    disk.insert_expired("t", 1, 200_000);
    disk.wait_for_none("t");
    let launcher = disk.pids("ttl_ext launcher", None)[0];
    let launcher = own_memory("launcher", launcher).expect("a launcher");
    assert!(launcher < 16 * MB);
    // It ends when it has nothing to do.
    let worker = until("a worker", PATIENCE, || {
        disk.insert_expired("t", 1, 100);
        own_memory("worker", database.worker())
    });
    assert!(worker < 32 * MB);
}

/// The least that one would rent.
#[test]
fn small_servers() {
    let server = Server::start_sweeping(&[
        ("shared_buffers", "1MB"),
        ("work_mem", "64kB"),
        ("maintenance_work_mem", "1MB"),
        ("max_connections", "6"),
        ("max_wal_senders", "0"),
        ("wal_level", "minimal"),
        ("huge_pages", "try"),
        ("ttl.max_tables", "100"),
    ]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, what text);
         SELECT ttl.enable('t', 3600, index => 'btree', concurrently => true); INSERT INTO t VALUES (0);
         CREATE TABLE parts (id integer) PARTITION BY LIST (id);
         CREATE TABLE rest PARTITION OF parts DEFAULT; SELECT ttl.enable('parts', 3600)",
    );
    disk.insert_expired("t", 1, 50_000);
    disk.insert_expired("parts", 1, 50_000);
    disk.wait_for_ids("t", "0");
    disk.wait_for_none("parts");
    // Keys of expired rows are free here, too.
    disk.insert_expired("t", 1, 2000);
    disk.run(
        "RESET ttl.show_expired; INSERT INTO t SELECT n, 'new' FROM generate_series(1, 2000) AS n",
    );
    disk.wait_until("SELECT count(*) FROM t", "2001", PATIENCE);
}

/// A text that is too large for the server's memory is an error of its statement, and no other session
/// notices: each is measured before it is copied.
#[test]
fn a_huge_text_is_an_error() {
    let server = Server::start(&[]);
    let database = server.database("app");
    let mut other = database.connect();
    other.run(
        "CREATE TABLE t (id integer PRIMARY KEY, at timestamptz); CREATE TABLE u (id integer);
         SELECT ttl.enable('t', 3600)",
    );
    let mut session = database.connect();
    let pid = session.value("SELECT pg_backend_pid()");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process of ours");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let size = size.and_then(|size| size.split_whitespace().next()?.parse::<i64>().ok());
    // Enough for the text and for what PostgreSQL makes of it, not for a copy of ours.
    let limit = size.expect("kilobytes") * 1024 + 350 * MB;
    let mut prlimit = std::process::Command::new("prlimit");
    server.must_run(prlimit.args(["--pid", &pid, &format!("--as={limit}")]));
    for (statement, size) in [
        ("SELECT ttl.enable('u', 3600, index => {})", 100_000_000),
        ("SELECT ttl.set_option('t', {}, '1')", 100_000_000),
        ("SELECT ttl.set_option('t', 'notify', {})", 100_000_000),
        ("SELECT ttl.create_live_view('t', {})", 100_000_000),
        ("SELECT ttl.revive('t', {})", 100_000_000),
        (
            "SELECT ttl.create_index('t', jsonb_build_object('at', {}))",
            20_000_000,
        ),
        (
            "SELECT ttl.create_index('t', '{\"at\": 1}', jsonb_build_object('name', {}))",
            20_000_000,
        ),
        (
            "SELECT ttl.coll_mod('t', jsonb_build_object('collMod', {}))",
            20_000_000,
        ),
        (
            "DO $$ BEGIN EXECUTE 'SECURITY LABEL FOR ttl ON TABLE u IS ''' || {} || ''''; END $$",
            20_000_000,
        ),
        (
            "DO $$ BEGIN EXECUTE 'ALTER TABLE u SET (ttl.default_ttl = ''' || {} || ''')'; END $$",
            20_000_000,
        ),
    ] {
        let sql = statement.replace("{}", &format!("repeat('1', {size})"));
        let error = session.error(&sql);
        assert_eq!(error.code().code(), "54000", "{statement}: {error:?}");
    }
    assert_eq!(other.value("SELECT 1"), "1");
    assert_eq!(session.value("SELECT count(*) FROM ttl.tables"), "1");
}
