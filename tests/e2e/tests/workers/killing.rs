//! C6, C7: `kill -9` of a worker, a backend or the postmaster, repeatedly, under load. No live row
//! is lost, no expired row is seen, and the workers come back.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use ttl_ext_e2e::{
    Database, Error, PATIENCE, Server, Session, describe, is_disconnect, row_text, until,
};

const WRITERS: i64 = 4;

/// What the writers share.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    /// Statements that have succeeded.
    done: AtomicU64,
    /// The `id`s of committed rows with a long life.
    kept: Mutex<HashSet<i64>>,
}

impl Load {
    /// One round of a writer; an error is for the caller to judge.
    fn round(&self, session: &mut Session, id: i64) -> Result<(), Error> {
        let ttl = ["-1", "NULL", "86400"][id as usize % 3];
        session.try_run(&format!("INSERT INTO t (id, ttl) VALUES ({id}, {ttl})"))?;
        self.kept.lock().expect("kept").insert(id);
        // Refreshed now and then, which moves the row in the table.
        if id % 4 == 0 {
            session.try_run(&format!("UPDATE t SET what = 'again' WHERE id = {id}"))?;
        }
        // Rows with a negative id expire, for the workers.
        session.try_run(&format!(
            "BEGIN; SET LOCAL ttl.preserve_ts = on;
             INSERT INTO t (id, what, _ts) SELECT -100 * {id} - n, 'expired', now() - interval '1 day'
               FROM generate_series(0, 99) AS n;
             COMMIT"
        ))?;
        let seen = session.try_run("SELECT id FROM t WHERE what = 'expired' LIMIT 1")?;
        let rows = seen.iter().filter_map(row_text).count();
        assert_eq!(rows, 0, "an expired row is seen: {seen:?}");
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Write until told to stop, with a new connection whenever one breaks.
    fn write(&self, server: &Server, writer: i64) {
        let mut id = writer;
        while !self.stop.load(Ordering::Relaxed) {
            let mut session = match server.try_connect("app", "postgres", "") {
                Ok(session) => session,
                Err(error) if is_disconnect(&error) => {
                    // Until the server takes connections again.
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    continue;
                }
                Err(error) => panic!("{}", describe(&error)),
            };
            while !self.stop.load(Ordering::Relaxed) {
                // Each number is used once: its row may or may not have been committed.
                id += WRITERS;
                match self.round(&mut session, id) {
                    Ok(()) => {}
                    Err(error) if is_disconnect(&error) => break,
                    Err(error) => panic!("{}", describe(&error)),
                }
            }
        }
    }

    /// Wait until the writers have got on.
    fn wait(&self) {
        let before = self.done.load(Ordering::Relaxed);
        until("the writers get on", PATIENCE, || {
            (self.done.load(Ordering::Relaxed) > before + 40).then_some(())
        });
    }
}

/// Ends the writers also if the test fails.
struct StopAtEnd<'a>(&'a Load);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Kill a process that there may be several of, and wait for the recovery.
fn kill_one(database: &Database<'_>, kind: &str, random: &mut ChaCha8Rng) {
    let server = database.server();
    let died = server.log_lines(&["was terminated by signal 9"]).len();
    let ready = server.log_lines(&["ready to accept connections"]).len();
    until(&format!("a {kind} to kill"), PATIENCE, || {
        let mut session = server.connect("postgres", "postgres");
        let pids = session.pids(kind, Some("app"));
        drop(session);
        let n = random.random_range(0..pids.len().max(1));
        pids.get(n)
            .is_some_and(|pid| server.kill(*pid))
            .then_some(())
    });
    server.wait_for_log(&["was terminated by signal 9"], died + 1, PATIENCE);
    server.wait_for_log(&["ready to accept connections"], ready + 1, PATIENCE);
}

fn kill(database: &Database<'_>, round: u32, random: &mut ChaCha8Rng) {
    match round % 3 {
        0 => kill_one(database, "ttl_ext worker", random),
        1 => kill_one(database, "client backend", random),
        _ => {
            database.server().kill_postmaster();
            database.server().launch();
        }
    }
}

/// All live rows are found, by a table scan and by the key; expired rows are deleted.
fn check(database: &Database<'_>, load: &Load) {
    let mut session = database.connect();
    assert_eq!(session.value("SELECT count(*) FROM t WHERE id < 0"), "0");
    for plan in [
        "SET enable_indexscan = off; SET enable_indexonlyscan = off",
        "RESET ALL; SET enable_seqscan = off",
    ] {
        session.run(plan);
        let there = session.column("SELECT id FROM t WHERE id > 0");
        let there: HashSet<i64> = there.iter().map(|id| id.parse().expect("an id")).collect();
        let kept = load.kept.lock().expect("kept");
        let lost: Vec<_> = kept.difference(&there).collect();
        assert!(
            lost.is_empty(),
            "{} of {} rows are lost: {lost:?}",
            lost.len(),
            kept.len()
        );
    }
    let mut disk = database.disk();
    disk.wait_until("SELECT count(*) FROM t WHERE id < 0", "0", 2 * PATIENCE);
}

#[test]
fn nothing_is_lost() {
    let kills: u32 = std::env::var("TTL_KILLS")
        .map_or(3, |text| text.parse().expect("TTL_KILLS must be a number"));
    let server = Server::start_sweeping(&[]);
    server.allow_crash();
    let database = server.database("app");
    database
        .connect()
        .run("CREATE TABLE t (id bigint PRIMARY KEY, what text); SELECT ttl.enable('t', 3600)");
    let load = Load::default();
    let mut random = ChaCha8Rng::seed_from_u64(0);
    std::thread::scope(|scope| {
        let stop = StopAtEnd(&load);
        let writers: Vec<_> = (1..=WRITERS)
            .map(|writer| {
                let (load, server) = (&load, &server);
                scope.spawn(move || load.write(server, writer))
            })
            .collect();
        for round in 0..kills {
            load.wait();
            kill(&database, round, &mut random);
            load.wait();
            // Counters restart with the server, so this is a new worker.
            let mut session = server.connect("app", "postgres");
            session.wait_until("SELECT rows_deleted > 0 FROM ttl.stats", "t", PATIENCE);
        }
        drop(stop);
        for writer in writers {
            writer.join().expect("a writer");
        }
    });
    check(&database, &load);
}
