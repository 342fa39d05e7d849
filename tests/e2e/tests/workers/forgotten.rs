//! C7, C11: no expired row is forgotten, whatever is done to its table. Routine looks are a day apart here, so a row whose
//! write or expiry nobody has noted stays on disk.
//!
//! `TTL_SEED` repeats a sequence.

use std::thread::sleep;
use std::time::Duration;

use ttl_ext_e2e::diff::Random;
use ttl_ext_e2e::{Database, PATIENCE, Server, Session, Stop, catch_up};

const STEPS: usize = 60;

/// Each of integers `id`, with rows that live for three seconds, or up to four; one is so large that it is read by ranges,
/// because of rows that do not expire.
const TABLES: [&str; 5] = ["plain", "indexed", "defaults", "parts", "wide"];

const SCHEMA: &str = "
    CREATE TABLE plain (id integer PRIMARY KEY, filling text); SELECT ttl.enable('plain', 3);
    CREATE TABLE indexed (id integer PRIMARY KEY, filling text); SELECT ttl.enable('indexed', 3, index => 'btree');
    CREATE TABLE defaults (id integer PRIMARY KEY, filling text); SELECT ttl.enable('defaults', 3, ttl_column => NULL);
    CREATE TABLE wide (id integer PRIMARY KEY, filling text); ALTER TABLE wide ALTER filling SET STORAGE PLAIN;
    SELECT ttl.enable('wide', 3);
    INSERT INTO wide (id, filling, ttl) SELECT n, repeat('x', 6000), -1 FROM generate_series(10001, 12300) AS n;
    CREATE TABLE parts (id integer PRIMARY KEY, filling text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (500);
    CREATE TABLE high PARTITION OF parts FOR VALUES FROM (500) TO (MAXVALUE); SELECT ttl.enable('parts', 3);";

fn with_override(table: &str) -> bool {
    table != "defaults"
}

/// A statement that writes rows to the table.
fn write(random: &mut Random, table: &str) -> String {
    let from = random.pick(&[1, 200, 400, 600, 800]);
    let to = from + random.pick(&[0, 5, 50, 300]);
    let rows = format!("generate_series({from}, {to}) AS n");
    let keep = "ON CONFLICT DO NOTHING";
    let seconds = random.pick(&[1, 2, 4]);
    match random.pick(&[0, 1, 2, 3, 4, 5, 6, 7]) {
        1 if with_override(table) => {
            format!("INSERT INTO {table} (id, ttl) SELECT n, {seconds} FROM {rows} {keep}")
        }
        2 => format!("UPDATE {table} SET filling = 'changed' WHERE id BETWEEN {from} AND {to}"),
        3 if with_override(table) => {
            format!("UPDATE {table} SET ttl = {seconds} WHERE id BETWEEN {from} AND {to}")
        }
        4 => {
            let age = random.pick(&[-3, -1, 0, 2, 10]);
            format!(
                "SET ttl.preserve_ts = on;
                 INSERT INTO {table} (id, _ts) SELECT n, now() - interval '{age} s' FROM {rows} {keep};
                 RESET ttl.preserve_ts"
            )
        }
        5 => format!("DELETE FROM {table} WHERE id BETWEEN {from} AND {to}"),
        6 => format!("COPY {table} (id) FROM PROGRAM 'seq {from} {to}'"),
        // As a subscription applies them: triggers do not fire.
        7 => format!(
            "SET session_replication_role = replica;
             INSERT INTO {table} (id, _ts) SELECT n, now() - interval '1 s' FROM {rows} {keep};
             RESET session_replication_role"
        ),
        _ => format!("INSERT INTO {table} (id) SELECT n FROM {rows} {keep}"),
    }
}

/// A statement about the table as a whole.
fn change(random: &mut Random, table: &str, major: u32) -> String {
    let rewrite = match table {
        // It has no order of its own.
        "parts" => "VACUUM FULL parts".to_owned(),
        _ if major >= 19 => {
            let how = random.pick(&["", " (CONCURRENTLY)"]);
            format!("REPACK{how} {table} USING INDEX {table}_pkey")
        }
        _ => format!("CLUSTER {table} USING {table}_pkey"),
    };
    // A partitioned table takes no rows that are frozen.
    let frozen = if table == "parts" { "low" } else { table };
    let choices = [
        rewrite,
        format!(
            "BEGIN; TRUNCATE {frozen}; COPY {frozen} (id) FROM PROGRAM 'seq 1 100' (FREEZE); COMMIT"
        ),
        format!("VACUUM FULL {table}"),
        format!("VACUUM (FREEZE) {table}"),
        format!("TRUNCATE {table}"),
        format!("REINDEX TABLE {table}"),
        format!("ALTER TABLE {table} ADD COLUMN IF NOT EXISTS more float8 DEFAULT random()"),
        format!("ALTER TABLE {table} DROP COLUMN IF EXISTS more"),
        format!("SELECT ttl.set_default('{table}', 2, confirm => true)"),
        format!("SELECT ttl.set_default('{table}', 4, confirm => true)"),
        format!("SELECT ttl.pause('{table}')"),
        format!("SELECT ttl.resume('{table}')"),
        format!("SELECT ttl.purge('{table}')"),
        "SELECT pg_stat_reset()".to_owned(),
        "ANALYZE".to_owned(),
        "ALTER TABLE parts DETACH PARTITION high".to_owned(),
        "ALTER TABLE parts ATTACH PARTITION high FOR VALUES FROM (500) TO (MAXVALUE)".to_owned(),
    ];
    let all: Vec<&str> = choices.iter().map(String::as_str).collect();
    random.pick(&all).to_owned()
}

/// The tables of another database, without time to live, to which those of a round are subscribed. Some have a `_ts` of
/// their own; with others, the subscriber's default counts. Their rows have ids that nobody else inserts, so that no
/// conflict stops the apply worker for good.
const FEED: &str = "
    CREATE TABLE plain (id integer PRIMARY KEY, filling text, _ts timestamptz DEFAULT now(), ttl integer);
    CREATE TABLE wide (id integer PRIMARY KEY, filling text, _ts timestamptz DEFAULT now(), ttl integer);
    CREATE TABLE indexed (id integer PRIMARY KEY, filling text);
    CREATE TABLE defaults (id integer PRIMARY KEY, filling text);
    CREATE TABLE parts (id integer PRIMARY KEY, filling text);
    CREATE PUBLICATION feed FOR ALL TABLES";

struct Feed {
    database: String,
    session: Session,
}

impl Feed {
    fn new(server: &Server, subscriber: &Database<'_>, round: usize) -> Self {
        let name = format!("feed{round}");
        let mut session = server.plain_database(&name).connect();
        session.run(FEED);
        session.run(&format!(
            "SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"
        ));
        // A server that is its own publisher would wait for itself if the command made the slot.
        subscriber.connect().run(&format!(
            "CREATE SUBSCRIPTION feed CONNECTION '{}' PUBLICATION feed
               WITH (create_slot = false, slot_name = '{name}', copy_data = false)",
            server.conninfo(&name)
        ));
        Self {
            database: name,
            session,
        }
    }

    fn write(&mut self, random: &mut Random, number: usize) {
        let table = random.pick(&TABLES);
        let from = match table {
            // The partition of the others may be detached.
            "parts" => random.pick(&[-5400, -5200, -5001]),
            _ => random.pick(&[5001, 5200, 5400]),
        };
        let to = from + random.pick(&[0, 5, 50, 300]);
        let rows = format!("generate_series({from}, {to}) AS n");
        let (columns, values) = match table {
            "plain" | "wide" => (", _ts, ttl", ", now() - interval '1 s', 1 + n % 4"),
            _ => ("", ""),
        };
        let statement = match random.pick(&[0, 0, 0, 1, 2]) {
            1 => {
                format!("UPDATE {table} SET filling = 'changed' WHERE id BETWEEN {from} AND {to}")
            }
            2 => format!("DELETE FROM {table} WHERE id BETWEEN {from} AND {to}"),
            _ => format!(
                "INSERT INTO {table} (id{columns}) SELECT n{values} FROM {rows} ON CONFLICT DO NOTHING"
            ),
        };
        println!("{number}: {}: {statement}", self.database);
        self.session.run(&statement);
    }

    /// Waits until the subscriber has applied all, and ends the subscription.
    fn end(mut self, subscriber: &Database<'_>) {
        let written = self.session.value("SELECT pg_current_wal_insert_lsn()");
        let applied = format!(
            "SELECT confirmed_flush_lsn >= '{written}' FROM pg_replication_slots WHERE slot_name = '{}'",
            self.database
        );
        self.session.wait_until(&applied, "t", PATIENCE);
        subscriber.connect().run("DROP SUBSCRIPTION feed");
    }
}

struct Hand<'a> {
    session: Session,
    /// In a transaction that has written, has locked rows, or keeps an old snapshot.
    is_open: bool,
    major: u32,
    database: &'a Database<'a>,
}

impl<'a> Hand<'a> {
    fn new(database: &'a Database<'a>, major: u32) -> Self {
        let mut session = database.connect();
        session.run("SET lock_timeout = '300ms'");
        Self {
            session,
            is_open: false,
            major,
            database,
        }
    }

    fn step(&mut self, random: &mut Random, prepared: &mut Vec<String>, number: usize) {
        let table = random.pick(&TABLES);
        if self.is_open && random.chance(0.4) {
            let name = format!("p{number}");
            let end = match random.pick(&[0, 1, 2]) {
                0 => "ROLLBACK".to_owned(),
                1 => {
                    prepared.push(name.clone());
                    format!("PREPARE TRANSACTION '{name}'")
                }
                _ => "COMMIT".to_owned(),
            };
            // One that has failed is rolled back by either.
            let ended = self.session.try_run(&end);
            println!("{number}: {end}: {}", ended.is_ok());
            self.is_open = false;
            return;
        }
        let statement = match random.pick(&[0, 0, 0, 0, 1, 1, 2, 3, 4, 5]) {
            1 if !self.is_open => change(random, table, self.major),
            2 if !self.is_open => {
                self.is_open = true;
                format!("BEGIN; {}", write(random, table))
            }
            3 => format!("SELECT FROM {table} FOR UPDATE"),
            5 if !self.is_open => {
                self.is_open = true;
                format!("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM {table}")
            }
            4 if self.is_open => format!("SAVEPOINT s; {}; ROLLBACK TO s", write(random, table)),
            _ => write(random, table),
        };
        // Locks that others hold, partitions that are detached: whatever fails, writes nothing.
        let done = self.session.try_run(&statement);
        println!("{number}: {statement}: {}", done.is_ok());
        if done.is_err() && self.is_open {
            let _ = self.session.try_run("ROLLBACK");
            self.is_open = false;
        }
    }

    fn reconnect(&mut self) {
        *self = Self::new(self.database, self.major);
    }
}

/// Ends what is open, and waits until all rows are gone.
fn assert_none_is_left(database: &Database<'_>, prepared: &[String], feed: Option<Feed>) {
    let mut disk = database.disk();
    for name in prepared {
        let _ = disk.try_run(&format!("COMMIT PREPARED '{name}'"));
    }
    let attach = "ALTER TABLE parts ATTACH PARTITION high FOR VALUES FROM (500) TO (MAXVALUE)";
    let _ = disk.try_run(attach);
    for table in TABLES {
        disk.run(&format!("SELECT ttl.resume('{table}')"));
    }
    if let Some(feed) = feed {
        feed.end(database);
    }
    for table in TABLES {
        let left = format!("SELECT count(*) FROM {table} WHERE id <= 10000");
        disk.wait_until(&left, "0", PATIENCE);
    }
}

#[test]
fn no_expired_row() {
    let server = Server::start_sweeping(&[
        ("ttl.naptime", "1d"),
        ("ttl.change_delay", "0"),
        ("wal_level", "logical"),
        ("max_wal_senders", "6"),
        ("max_prepared_transactions", "20"),
        ("autovacuum", "off"),
    ]);
    let mut random = Random::from_environment();
    for round in 0..3 {
        let database = server.database(&format!("round{round}"));
        database.connect().run(SCHEMA);
        let mut feed = Feed::new(&server, &database, round);
        // The last round goes on there, too.
        let standby = (round == 2).then(|| server.start_standby(&[]));
        let hand = || Hand::new(&database, server.major());
        let mut hands = [hand(), hand()];
        let mut prepared = Vec::new();
        for number in 0..STEPS {
            if random.chance(0.03) {
                println!("{number}: restart");
                server.stop(random.pick(&[Stop::Immediate, Stop::Fast]));
                server.launch();
                hands.iter_mut().for_each(Hand::reconnect);
                feed.session = server.existing_database(&feed.database).connect();
            }
            if random.chance(0.2) {
                feed.write(&mut random, number);
            }
            if random.chance(0.2) {
                sleep(Duration::from_millis(random.pick(&[100, 500, 1500])));
            }
            let hand = usize::from(random.chance(0.5));
            hands[hand].step(&mut random, &mut prepared, number);
            if !prepared.is_empty() && random.chance(0.3) {
                let name = prepared.remove(0);
                // Unless its transaction had failed before.
                let _ = database
                    .connect()
                    .try_run(&format!("COMMIT PREPARED '{name}'"));
            }
        }
        drop(hands);
        if let Some(standby) = standby {
            let promoted = standby.existing_database(&format!("round{round}"));
            catch_up(&mut database.connect(), &mut promoted.connect());
            standby.promote();
            // The slot is the primary's.
            promoted.connect().run("ALTER SUBSCRIPTION feed DISABLE");
            assert_none_is_left(&promoted, &prepared, None);
        }
        assert_none_is_left(&database, &prepared, Some(feed));
    }
}
