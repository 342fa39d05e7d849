//! Restores in random ways: format, jobs, sections, definitions and data apart, lists in any order, table by
//! table, a copy of the restored database; workers look between the steps. Whatever the way, every row of the dump is on disk
//! until the owner resumes, and then those that live stay.

use std::path::{Path, PathBuf};
use std::process::Command;

use ttl_ext_e2e::diff::Random;
use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

/// Tables with rows that have expired and, with numbers below 100, rows that live.
const SOURCE: &str = "
CREATE TABLE plain (id int PRIMARY KEY, what text);
SELECT ttl.enable('plain', 3600);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES plain ON DELETE CASCADE);
SELECT ttl.enable('child', 3600, index => 'none');
CREATE TABLE dated (id int PRIMARY KEY, at timestamptz);
CREATE INDEX dated_at ON dated (at);
SELECT ttl.expire_index('dated_at', 0);
CREATE TABLE log (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
CREATE TABLE log_2020 PARTITION OF log FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE log_2021 PARTITION OF log FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
CREATE TABLE log_rest PARTITION OF log DEFAULT;
SELECT ttl.enable('log', 3600, drop_partitions => true);
CREATE TABLE hashed (id int) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT ttl.enable('hashed', 3600, index => 'btree');
CREATE TABLE \"kept: all\" (id int);
CREATE TABLE gone (LIKE \"kept: all\");
SELECT ttl.enable('\"kept: all\"', 3600);
ALTER TABLE gone ADD ttl int, ADD _ts timestamptz;
SELECT ttl.archive_to('\"kept: all\"', 'gone');
CREATE TABLE empty (id int PRIMARY KEY);
SELECT ttl.enable('empty', 3600);
SET ttl.preserve_ts = on;
INSERT INTO plain (id, what, ttl) SELECT n, 'x', CASE WHEN n < 100 THEN -1 END FROM generate_series(90, 300) AS n;
INSERT INTO child (id, parent, ttl, _ts) SELECT n, n, CASE WHEN n < 100 THEN -1 END, '2020-06-01' FROM generate_series(90, 300) AS n;
UPDATE plain SET _ts = '2020-06-01';
INSERT INTO dated SELECT n, CASE WHEN n >= 100 THEN timestamptz '2020-06-01' END FROM generate_series(90, 300) AS n;
INSERT INTO log (id, _ts, ttl) SELECT n, CASE WHEN n % 2 = 0 THEN '2020-06-01' ELSE '2021-06-01' END::timestamptz, CASE WHEN n < 99 THEN -1 END FROM generate_series(97, 300) AS n WHERE n <> 99;
INSERT INTO hashed (id, ttl, _ts) SELECT n, CASE WHEN n < 100 THEN -1 END, '2020-06-01' FROM generate_series(90, 300) AS n;
INSERT INTO \"kept: all\" (id, ttl, _ts) SELECT n, CASE WHEN n < 100 THEN -1 END, '2020-06-01' FROM generate_series(90, 300) AS n;
RESET ttl.preserve_ts";

const TABLES: [&str; 6] = ["plain", "child", "dated", "log", "hashed", "\"kept: all\""];

/// The numbers that are on disk, by table.
fn on_disk(disk: &mut Session, condition: &str) -> Vec<String> {
    TABLES
        .map(|table| {
            disk.value(&format!(
                "SELECT string_agg(id::text, ' ' ORDER BY id) FROM {table} WHERE {condition}"
            ))
        })
        .to_vec()
}

/// Waits until workers have looked at all tables, if the extension is there already.
fn let_workers_look(target: &Database<'_>) {
    let mut disk = target.disk();
    if disk.value("SELECT to_regclass('ttl.tables') IS NOT NULL") == "t" {
        disk.run(
            "CREATE TABLE IF NOT EXISTS public.sentinel (id integer PRIMARY KEY); SELECT ttl.enable('public.sentinel', 3600); SELECT ttl.resume('public.sentinel')",
        );
        disk.look_again("public.sentinel");
    }
}

struct Dumps {
    custom: PathBuf,
    directory: PathBuf,
    plain: PathBuf,
}

fn dump(source: &Database<'_>) -> Dumps {
    let file = |name: &str, format: &str| {
        let file = source.server().dir().join(name);
        let mut dump = source.tool("pg_dump");
        source
            .server()
            .must_run(dump.args([format, "-f"]).arg(&file));
        file
    };
    Dumps {
        custom: file("custom.dump", "-Fc"),
        directory: file("directory.dump", "-Fd"),
        plain: file("plain.sql", "-Fp"),
    }
}

/// The entries of a dump, as pg_restore lists them, those of data in any order.
fn shuffled(target: &Database<'_>, dump: &Path, random: &mut Random) -> [Vec<String>; 3] {
    let mut list = target.tool("pg_restore");
    let output = target.server().must_run(list.arg("-l").arg(dump));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut parts = [vec![], vec![], vec![]];
    for line in text.lines().filter(|line| !line.starts_with(';')) {
        let is_data = line.contains(" TABLE DATA ") || line.contains(" SEQUENCE SET ");
        let is_late = ["INDEX", "CONSTRAINT", "TRIGGER", "SECURITY LABEL", "ACL"]
            .iter()
            .any(|kind| line.contains(&format!(" {kind} ")));
        let part = if is_data { 1 } else { 2 * usize::from(is_late) };
        parts[part].push(line.to_owned());
    }
    let data = &mut parts[1];
    for at in (1..data.len()).rev() {
        data.swap(at, random.between(0, at as i64) as usize);
    }
    parts
}

/// The steps of one way to restore, each a command.
fn steps(target: &Database<'_>, name: &str, dumps: &Dumps, random: &mut Random) -> Vec<Command> {
    let way = random.between(0, 6);
    let dump = match random.chance(0.5) {
        true => &dumps.custom,
        false => &dumps.directory,
    };
    let jobs = random.pick(&["-j1", "-j2", "-j4"]);
    let restore = |arguments: &[&str]| {
        let mut restore = target.tool("pg_restore");
        restore
            .args(["--exit-on-error", "-d", name])
            .args(arguments)
            .arg(dump);
        restore
    };
    println!("{name}: way {way}, {}, {jobs}", dump.display());
    match way {
        0 => {
            let mut psql = target.tool("psql");
            psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
            if random.chance(0.5) {
                psql.arg("-1");
            }
            psql.arg("-f").arg(&dumps.plain);
            vec![psql]
        }
        1 => vec![restore(&[jobs])],
        2 => vec![restore(&["-1"])],
        3 => ["pre-data", "data", "post-data"]
            .map(|section| restore(&[jobs, "--section", section]))
            .into(),
        // The rows come last, into tables that are ready.
        4 => vec![
            restore(&["--section", "pre-data", "--section", "post-data"]),
            restore(&[jobs, "--section", "data", "--disable-triggers"]),
        ],
        5 => vec![
            restore(&["--schema-only"]),
            restore(&["--data-only", "--disable-triggers"]),
        ],
        _ => {
            let [before, data, after] = shuffled(target, dump, random);
            let middle = data.len() / 2;
            let data = [&data[..middle], &data[middle..]].map(<[String]>::to_vec);
            // Definitions that come late, before the rows or after them.
            let lists: Vec<Vec<String>> = match random.chance(0.5) {
                true => [before].into_iter().chain(data).chain([after]).collect(),
                false => [before, after].into_iter().chain(data).collect(),
            };
            let with_list = |(number, list): (usize, Vec<String>)| {
                let file = target.server().dir().join(format!("{name}.{number}.list"));
                std::fs::write(&file, list.join("\n") + "\n").unwrap();
                let file = file.to_str().unwrap().to_owned();
                restore(&["--disable-triggers", "-L", &file])
            };
            lists.into_iter().enumerate().map(with_list).collect()
        }
    }
}

#[test]
fn a_restore_loses_nothing() {
    let mut random = Random::from_environment();
    let rounds = std::env::var("TTL_RESTORES").map_or(6, |text| text.parse().unwrap());
    let server = Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")]);
    let source = server.database("source");
    source.connect().run(SOURCE);
    let all = on_disk(&mut source.disk(), "true");
    let live = on_disk(&mut source.disk(), "id < 100");
    let dumps = dump(&source);
    server.reload(&[("ttl.enabled", "on"), ("ttl.empty_partition_age", "0")]);
    source.disk().run("SELECT 1");
    for round in 0..rounds {
        let name = format!("restored_{round}");
        let target = server.plain_database(&name);
        for mut step in steps(&target, &name, &dumps, &mut random) {
            server.must_run(&mut step);
            if random.chance(0.7) {
                let_workers_look(&target);
            }
        }
        let_workers_look(&target);
        assert_eq!(on_disk(&mut target.disk(), "true"), all, "{name}");
        // A copy waits as well.
        let copy = format!("copy_{round}");
        if random.chance(0.3) {
            drop(target.disk());
            server.database(&format!("waits_{round}"));
            let mut admin = server.connect("postgres", "postgres");
            admin.wait_until(
                &format!(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND backend_type = 'client backend'"
                ),
                "0",
                PATIENCE,
            );
            admin.run(&format!("CREATE DATABASE {copy} TEMPLATE {name}"));
            let copied = server.existing_database(&copy);
            let_workers_look(&copied);
            assert_eq!(on_disk(&mut copied.disk(), "true"), all, "{copy}");
        }
        let mut disk = target.disk();
        disk.run("SELECT ttl.resume_restored()");
        // The archive waits for its owner's word as well.
        disk.run("SELECT ttl.archive_to('\"kept: all\"', 'gone')");
        for (table, live) in TABLES.into_iter().zip(&live) {
            let left = format!("SELECT string_agg(id::text, ' ' ORDER BY id) FROM {table}");
            disk.wait_until(&left, live, PATIENCE);
        }
        disk.wait_until("SELECT count(*) FROM gone", "201", PATIENCE);
        // That `child` has no index is always said.
        let problems = "SELECT count(*) FROM ttl.tables, unnest(problems) AS p WHERE p NOT LIKE 'no valid index%'";
        disk.wait_until(problems, "0", PATIENCE);
    }
}
