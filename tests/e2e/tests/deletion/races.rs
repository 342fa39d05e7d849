//! C7, C10: clients refresh rows at the moment they expire, while deletion runs without a throttle.
//! No refreshed row is lost, and all others are deleted.
//!
//! A row is lost if a client does not find it although the server's clock, read *after* the
//! look-up, says that it is still live. The client computes its expiry from the `_ts` that its last
//! committed write returned. A row that expires between write and look-up is no loss, so slow
//! machines do not matter.

use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use ttl_ext_e2e::{Database, PATIENCE, Server, Session, race_seconds};

const TTL: u32 = 3;
const CLIENTS: u64 = 8;
const ROWS: i64 = 25;

/// A row as the client that owns it knows it.
struct Row {
    id: i64,
    /// The `_ts` of the last write.
    written: String,
    /// How often it was written since it was inserted.
    n: i64,
    /// When it expires, by this process's clock; only for timing.
    expires: Instant,
}

/// Counters of what happened.
#[derive(Debug, Default)]
struct Tally {
    updates: u32,
    upserts: u32,
    replacements: u32,
    looks: u32,
    expired: u32,
}

struct Client {
    session: Session,
    table: &'static str,
    random: ChaCha8Rng,
    tally: Tally,
    /// The last `id` used.
    last: i64,
}

impl Client {
    /// Whether the row must still be there; evaluated after the items before it in `FROM`.
    fn in_time(row: &Row) -> String {
        format!(
            "clock_timestamp() < '{}'::timestamptz + interval '{TTL} seconds'",
            row.written
        )
    }

    fn judge(&self, row: &Row, reached: bool, in_time: &str, how: &str) {
        assert!(
            reached || in_time == "f",
            "{how}: row {} of {} is lost; last written at {}, {} times",
            row.id,
            self.table,
            row.written,
            row.n
        );
    }

    /// Record a write from what it returned: `_ts`, and the seconds left.
    fn note(row: &mut Row, written: &str, left: &str) {
        written.clone_into(&mut row.written);
        let left: f64 = left.parse().expect("seconds");
        row.expires = Instant::now() + Duration::from_secs_f64(left.max(0.0));
    }

    /// The columns by which [`Client::note`] learns of a write `w`.
    fn result() -> String {
        format!("w._ts, extract(epoch FROM w._ts + interval '{TTL} seconds' - clock_timestamp())")
    }

    fn insert(&mut self) -> Row {
        self.last += 1;
        self.insert_with(self.last)
    }

    fn insert_with(&mut self, id: i64) -> Row {
        let rows = self.session.rows(&format!(
            "WITH w AS (INSERT INTO {} (id, n) VALUES ({id}, 0) RETURNING _ts) SELECT {} FROM w",
            self.table,
            Client::result()
        ));
        let mut row = Row {
            id,
            written: String::new(),
            n: 0,
            expires: Instant::now(),
        };
        Client::note(&mut row, &rows[0][0], &rows[0][1]);
        row
    }

    fn look(&mut self, row: &Row) {
        let rows = self.session.rows(&format!(
            "SELECT c.n, {} FROM (SELECT count(*) AS n FROM {} WHERE id = {} AND n = {} OFFSET 0) AS c",
            Client::in_time(row),
            self.table,
            row.id,
            row.n
        ));
        self.judge(row, rows[0][0] == "1", &rows[0][1], "SELECT");
        self.tally.looks += 1;
    }

    /// UPDATE, or an upsert, which inserts if the row is expired. C6: the key of an expired row is
    /// free, deleted or not.
    fn write(&mut self, row: &mut Row, upsert: bool) {
        let table = self.table;
        let statement = match upsert {
            true => format!(
                "INSERT INTO {table} AS r (id, n) VALUES ({}, 0) ON CONFLICT (id) DO UPDATE SET n = r.n + 1",
                row.id
            ),
            false => format!("UPDATE {table} SET n = n + 1 WHERE id = {}", row.id),
        };
        let rows = self.session.rows(&format!(
            "WITH w AS ({statement} RETURNING _ts, n) SELECT w.n, {}, {}
               FROM (SELECT max(n) AS n, max(_ts) AS _ts FROM w OFFSET 0) AS w",
            Client::in_time(row),
            Client::result()
        ));
        let [n, in_time, written, left] = &rows[0][..] else {
            panic!("{rows:?}");
        };
        let reached = *n == (row.n + 1).to_string();
        self.judge(
            row,
            reached,
            in_time,
            if upsert { "upsert" } else { "UPDATE" },
        );
        match n.parse() {
            Ok(n) => {
                row.n = n;
                Client::note(row, written, left);
            }
            Err(_) => *row = self.insert_with(row.id),
        }
        // The new row has no value of the expired one.
        assert!(!upsert || reached || *n == "0", "{rows:?}");
        self.tally.expired += u32::from(!reached);
        *if upsert {
            &mut self.tally.upserts
        } else {
            &mut self.tally.updates
        } += 1;
    }

    /// DELETE and INSERT of the same key in one transaction.
    fn replace(&mut self, row: &mut Row) {
        let rows = self.session.rows(&format!(
            "BEGIN;
             WITH w AS (DELETE FROM {} WHERE id = {} RETURNING n)
             SELECT c.n, {} FROM (SELECT count(*) AS n FROM w OFFSET 0) AS c",
            self.table,
            row.id,
            Client::in_time(row)
        ));
        let reached = rows[0][0] == "1";
        self.judge(row, reached, &rows[0][1], "DELETE");
        *row = self.insert_with(row.id);
        self.session.run("COMMIT");
        self.tally.expired += u32::from(!reached);
        self.tally.replacements += 1;
    }

    /// Refresh rows at the last moment, or slightly too late.
    fn run(mut self, until: Instant) -> Tally {
        let mut rows: Vec<Row> = (0..ROWS).map(|_| self.insert()).collect();
        while Instant::now() < until {
            let due = |row: &Row| row.expires;
            let n = (0..rows.len())
                .min_by_key(|n| due(&rows[*n]))
                .expect("rows");
            let early = Duration::from_millis(self.random.random_range(0..500));
            let at = rows[n].expires + Duration::from_millis(30);
            // This moment is what the race is about; a slow machine comes later, and that counts.
            std::thread::sleep(at.saturating_duration_since(Instant::now() + early));
            if self.random.random_range(0..3) == 0 {
                self.look(&rows[n]);
            }
            match self.random.random_range(0..3) {
                0 => self.write(&mut rows[n], false),
                1 => self.write(&mut rows[n], true),
                _ => self.replace(&mut rows[n]),
            }
            if self.random.random_range(0..10) == 0 {
                // Nobody refreshes these rows.
                self.session.run(&format!(
                    "INSERT INTO {} (id, n) SELECT nextval('abandoned'), 0 FROM generate_series(1, 50)",
                    self.table
                ));
            }
        }
        self.tally
    }
}

fn race(database: &Database<'_>) -> Vec<Tally> {
    let until = Instant::now() + Duration::from_secs(race_seconds(10));
    std::thread::scope(|scope| {
        let start = |number: u64| {
            let client = Client {
                session: database.connect(),
                table: ["direct", "by_sql"][number as usize % 2],
                random: ChaCha8Rng::seed_from_u64(number),
                tally: Tally::default(),
                last: number as i64 * 1_000_000,
            };
            scope.spawn(move || client.run(until))
        };
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        let join =
            |client: std::thread::ScopedJoinHandle<'_, Tally>| client.join().expect("a client");
        clients.into_iter().map(join).collect()
    })
}

#[test]
fn no_refreshed_row_is_lost() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("race");
    let mut disk = database.disk();
    disk.run("CREATE SEQUENCE abandoned START 100000001");
    for table in ["direct", "by_sql"] {
        disk.run(&format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, n integer); SELECT ttl.enable('{table}', {TTL})"
        ));
    }
    disk.run(
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
         CREATE TRIGGER nothing BEFORE DELETE ON by_sql FOR EACH ROW EXECUTE FUNCTION nothing()",
    );
    for tally in race(&database) {
        println!("{tally:?}");
        let Tally {
            updates,
            upserts,
            replacements,
            looks,
            ..
        } = tally;
        assert!(
            [updates, upserts, replacements, looks]
                .iter()
                .all(|n| *n > 0),
            "{tally:?}"
        );
    }
    for table in ["direct", "by_sql"] {
        disk.wait_for_none(table);
        disk.wait_until(
            &format!("SELECT rows_deleted > 0 AND blocked_rows = 0 AND last_error IS NULL FROM ttl.stats WHERE relation = '{table}'::regclass"),
            "t",
            PATIENCE,
        );
    }
}
