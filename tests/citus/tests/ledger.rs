//! A ledger of every row, while nodes are killed, shards moved and policies changed in transactions: no row is lost
//! that must live, and none comes back that has expired.
//!
//! `TTL_MINUTES` is how long (1). Every statement is repeated until it has succeeded, and does the same when it is
//! repeated: of one whose connection has ended nobody knows whether it was committed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ttl_ext_citus::{Cluster, Session, Stop, until};

const DATABASE: &str = "ledger";

/// Rows that a statement writes.
const BATCH: u64 = 20;

fn minutes() -> u64 {
    std::env::var("TTL_MINUTES").map_or(1, |text| text.parse().expect("TTL_MINUTES"))
}

/// A small generator of numbers, so that a run can be repeated but for its timing.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

/// A session that is opened again where the node has died.
struct Client<'a> {
    cluster: &'a Cluster,
    node: usize,
    session: Option<Session>,
}

impl<'a> Client<'a> {
    fn new(cluster: &'a Cluster, node: usize) -> Client<'a> {
        Client {
            cluster,
            node,
            session: None,
        }
    }

    /// Whether the statements succeeded; after an error nothing of them is open any more.
    fn tries(&mut self, sql: &str) -> bool {
        if self.session.is_none() {
            let server = &self.cluster.nodes()[self.node];
            self.session = server.try_connect(DATABASE, "postgres", "").ok();
        }
        let Some(session) = &mut self.session else {
            std::thread::sleep(Duration::from_millis(100)); // the node is starting
            return false;
        };
        let is_done = session.try_run(sql).is_ok();
        if !is_done && session.try_run("ROLLBACK").is_err() {
            self.session = None;
        }
        is_done
    }

    /// Again and again.
    fn runs(&mut self, sql: &str) {
        while !self.tries(sql) {
            std::thread::sleep(Duration::from_millis(50)); // until the node is there
        }
    }
}

/// What has happened.
#[derive(Default)]
struct Counts {
    policies: AtomicU64,
    refused: AtomicU64,
    moves: AtomicU64,
    kills: AtomicU64,
}

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

/// Writes rows that live, with numbers from `part`, and rows that expire after a second, whose keys it takes again two
/// seconds later: returns how many of each it has written.
fn write(cluster: &Cluster, part: u64, done: &AtomicBool) -> u64 {
    let mut client = Client::new(cluster, usize::try_from(part).expect("a node"));
    let mut written = 0;
    let mut waiting: Vec<(u64, Instant)> = Vec::new();
    let range = |from: u64| format!("generate_series({from}::bigint, {})", from + BATCH - 1);
    let is_over = || done.load(Ordering::Relaxed);
    while !is_over() || !waiting.is_empty() {
        if !is_over() {
            let first = part * 1_000_000_000 + written;
            // Live.
            client.runs(&format!(
                "INSERT INTO o (id, v) SELECT n * 2, 'kept' FROM {} AS n ON CONFLICT (id) DO UPDATE SET v = 'kept'",
                range(first)
            ));
            // Will have expired; a repetition that comes late finds its own rows expired, and writes them once more.
            client.runs(&format!(
                "INSERT INTO o (id, v, ttl) SELECT n * 2 + 1, 'old', 1 FROM {} AS n ON CONFLICT (id) DO NOTHING",
                range(first)
            ));
            waiting.push((first, Instant::now() + Duration::from_millis(2100)));
            written += BATCH;
        }
        let now = Instant::now();
        while let Some(&(first, _)) = waiting.first().filter(|&&(_, at)| at <= now) {
            client.runs(&format!(
                "INSERT INTO o (id, v, ttl) SELECT n * 2 + 1, 'new', NULL FROM {} AS n
                     ON CONFLICT (id) DO UPDATE SET v = o.v || ' again', ttl = NULL",
                range(first)
            ));
            waiting.remove(0);
        }
        std::thread::sleep(Duration::from_millis(20)); // so that others get their turn
    }
    written
}

/// Changes policies in transactions, some of which are refused as they have several sessions on a node.
fn change(cluster: &Cluster, counts: &Counts, done: &AtomicBool) {
    let mut dice = Dice(7);
    while !done.load(Ordering::Relaxed) {
        let node = usize::try_from(dice.throw(3)).expect("a node");
        let mut client = Client::new(cluster, node);
        let sequential = match dice.throw(3) {
            0 => "",
            _ => "SET LOCAL citus.multi_shard_modify_mode TO 'sequential';",
        };
        let before = match dice.throw(4) {
            0 => "UPDATE o SET v = v WHERE id % 97 = 0;",
            1 => "UPDATE o SET v = v WHERE id = 2;",
            2 => "SELECT count(*) FROM o;",
            _ => "",
        };
        // Longer than the test, so that rows without an override live.
        let policy = match dice.throw(5) {
            0 => "SELECT ttl.set_default('o', 86400, revive_expired => true);",
            1 => "SELECT ttl.set_default('o', 90000, revive_expired => true);",
            2 => "SELECT ttl.pause('o', interval '2 seconds');",
            3 => "SELECT ttl.set_option('o', 'ts_granularity', '0');",
            _ => "SELECT ttl.resume('o');",
        };
        let after = match dice.throw(2) {
            0 => {
                "INSERT INTO o (id, v, ttl) SELECT n, 'x', 1 FROM generate_series(-60, -1) AS n ON CONFLICT (id) DO UPDATE SET v = 'y';"
            }
            _ => "",
        };
        let end = if dice.throw(4) == 0 {
            "ROLLBACK"
        } else {
            "COMMIT"
        };
        let all = format!(
            "SET statement_timeout = '20s'; BEGIN; {sequential}{before}{policy}{after}{end}"
        );
        if client.tries(&all) {
            count(&counts.policies);
        } else {
            count(&counts.refused);
        }
        std::thread::sleep(Duration::from_millis(500)); // between two changes
    }
}

/// Moves shards between the workers.
fn rebalance(cluster: &Cluster, counts: &Counts, done: &AtomicBool) {
    let mut dice = Dice(11);
    let mut client = Client::new(cluster, 0);
    while !done.load(Ordering::Relaxed) {
        let mode =
            ["force_logical", "block_writes"][usize::try_from(dice.throw(2)).expect("a mode")];
        let moved = client.tries(&format!(
            "SET statement_timeout = '60s';
             SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, d.nodename, d.nodeport, '{mode}')
               FROM (SELECT shardid, nodename, nodeport FROM citus_shards
                      WHERE table_name = 'o'::regclass ORDER BY random() LIMIT 1) AS s
               JOIN (SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0) AS d ON d.nodename <> s.nodename"
        ));
        if moved {
            count(&counts.moves);
        }
        std::thread::sleep(Duration::from_secs(3)); // between two moves
    }
}

/// Kills a node, and starts it again.
fn kill(cluster: &Cluster, counts: &Counts, end: Instant) {
    let mut dice = Dice(13);
    while Instant::now() + Duration::from_secs(20) < end {
        std::thread::sleep(Duration::from_secs(8 + dice.throw(12))); // time to work
        let node = usize::try_from(dice.throw(3)).expect("a node");
        let server = &cluster.nodes()[node];
        server.stop(Stop::Immediate);
        server.launch();
        count(&counts.kills);
    }
    std::thread::sleep(end.saturating_duration_since(Instant::now())); // the rest of the time
}

#[test]
fn ledger_of_every_row() {
    let cluster = Cluster::start_sweeping(&[
        ("ttl.naptime", "1s"),
        ("citus.max_adaptive_executor_pool_size", "4"),
        ("citus.executor_slow_start_interval", "0"),
        ("citus.shard_count", "8"),
    ]);
    for node in cluster.nodes() {
        node.allow_crash();
    }
    let app = cluster.application(DATABASE);
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id bigint PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 86400)");
    drop(session);
    let (counts, done) = (Counts::default(), AtomicBool::new(false));
    let end = Instant::now() + Duration::from_secs(60 * minutes());
    let written = std::thread::scope(|scope| {
        let (cluster, counts, done) = (&cluster, &counts, &done);
        let writers = [0, 1, 2].map(|part| scope.spawn(move || write(cluster, part, done)));
        scope.spawn(move || change(cluster, counts, done));
        scope.spawn(move || rebalance(cluster, counts, done));
        kill(cluster, counts, end);
        done.store(true, Ordering::Relaxed);
        writers.map(|writer| writer.join().expect("a writer"))
    });
    // Transactions that were left prepared are ended by Citus.
    until("no prepared transaction is left", 120, || {
        let left = (0..3).map(|node| {
            let mut session = cluster.existing(DATABASE, node);
            session
                .value("SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()")
        });
        left.into_iter().all(|count| count == "0").then_some(())
    });
    let mut session = cluster.existing(DATABASE, 0);
    let rows = |session: &mut Session, parity: u64, condition: &str| {
        session.value(&format!(
            "SELECT count(*) FROM o WHERE id >= 0 AND id % 2 = {parity} AND {condition}"
        ))
    };
    let expected: u64 = written.iter().sum();
    let kept = rows(&mut session, 0, "v = 'kept'");
    let renewed = rows(&mut session, 1, "true");
    let revived = rows(&mut session, 1, "v LIKE 'old%'");
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{} min: {} rows that live, of which {kept} are there; {} that expired and whose keys were taken, of which {renewed} are there; \
         revived {revived}; {} policy changes, {} refused or interrupted; {} moves; {} kills",
        minutes(),
        expected,
        expected,
        of(&counts.policies),
        of(&counts.refused),
        of(&counts.moves),
        of(&counts.kills)
    );
    assert_eq!(kept, expected.to_string(), "rows lost");
    assert_eq!(renewed, expected.to_string(), "rows lost");
    assert_eq!(revived, "0", "rows revived");
}
