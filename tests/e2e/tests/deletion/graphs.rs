//! C7: random rows that refer to each other by foreign keys of every action, in chains and circles, within
//! a table and between tables. What the worker deletes is what can go: an expired row stays if a live one
//! refers to it, at whatever distance, and nothing else does. PostgreSQL's own DELETE of the same rows, on
//! tables without TTL, leaves the same.

use std::collections::BTreeSet;
use std::env;

use ttl_ext_e2e::diff::Random;
use ttl_ext_e2e::{Server, Session};

/// On a busy machine a batch may end by its time limit, and rows that could go are set aside for one
/// minute, two, four.
const SET_ASIDE: u64 = 600;

/// The foreign keys of each table.
const KEYS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    No,
    Deferred,
    Restrict,
    Cascade,
    SetNull,
}

impl Action {
    fn sql(self) -> &'static str {
        match self {
            Self::No => "",
            Self::Deferred => "DEFERRABLE INITIALLY DEFERRED",
            Self::Restrict => "ON DELETE RESTRICT",
            Self::Cascade => "ON DELETE CASCADE",
            Self::SetNull => "ON DELETE SET NULL",
        }
    }
}

#[derive(Debug, Clone)]
struct Row {
    table: usize,
    id: i64,
    /// The rows that it refers to, by their numbers.
    refers: [Option<usize>; KEYS],
    expired: bool,
}

#[derive(Debug)]
struct Graph {
    /// Each key of each table: the table that it refers to, and its action.
    keys: Vec<[(usize, Action); KEYS]>,
    rows: Vec<Row>,
}

impl Graph {
    fn random(random: &mut Random) -> Self {
        let tables = random.between(1, 4) as usize;
        let key = |random: &mut Random| {
            let actions = [
                Action::No,
                Action::No,
                Action::Deferred,
                Action::Restrict,
                Action::Cascade,
                Action::SetNull,
            ];
            (
                random.between(0, tables as i64 - 1) as usize,
                random.pick(&actions),
            )
        };
        let keys: Vec<_> = (0..tables).map(|_| [key(random), key(random)]).collect();
        let size = random.between(4, 40);
        let live = random.pick(&[0.0, 0.02, 0.1, 0.3]);
        let mut rows: Vec<Row> = (0..size)
            .map(|id| Row {
                table: random.between(0, tables as i64 - 1) as usize,
                id,
                refers: [None; KEYS],
                expired: !random.chance(live),
            })
            .collect();
        for at in 0..rows.len() {
            for (key, &(table, _)) in keys[rows[at].table].iter().enumerate() {
                let candidates: Vec<usize> = (0..rows.len())
                    .filter(|&to| rows[to].table == table)
                    .collect();
                if candidates.is_empty() || random.chance(0.3) {
                    continue;
                }
                // Mostly the one before: chains.
                let before = candidates.iter().copied().filter(|&to| to < at).max();
                let any = random.pick(&candidates);
                rows[at].refers[key] = if random.chance(0.8) {
                    before
                } else {
                    Some(any)
                };
            }
        }
        Self { keys, rows }
    }

    /// Those that refer to the row, each with its action.
    fn referring(&self, to: usize) -> impl Iterator<Item = (usize, Action)> {
        self.rows.iter().enumerate().flat_map(move |(at, row)| {
            (0..KEYS)
                .filter(move |&key| row.refers[key] == Some(to))
                .map(move |key| (at, self.keys[row.table][key].1))
        })
    }

    /// The rows that go with this one: by ON DELETE CASCADE, or expired.
    fn with_referring(&self, first: usize) -> BTreeSet<usize> {
        let (mut all, mut open) = (BTreeSet::from([first]), vec![first]);
        while let Some(at) = open.pop() {
            for (from, action) in self.referring(at) {
                let goes = action == Action::Cascade || self.rows[from].expired;
                if goes && all.insert(from) {
                    open.push(from);
                }
            }
        }
        all
    }

    /// Whether the row may go: no live row stays that refers to one of those that go with it. `lax`:
    /// nor does one that goes by a cascade, which may come before the check or after it.
    fn may_go(&self, first: usize, lax: bool) -> bool {
        let all = self.with_referring(first);
        all.iter().all(|&at| {
            self.referring(at).all(|(from, action)| match action {
                Action::Cascade | Action::SetNull => true,
                Action::No | Action::Restrict => {
                    self.rows[from].expired || lax && all.contains(&from)
                }
                Action::Deferred => all.contains(&from),
            })
        })
    }

    /// The expired rows that go, by themselves or with others; `None` if that depends on the order.
    fn going(&self) -> Option<BTreeSet<usize>> {
        let is_expired = |&at: &usize| self.rows[at].expired;
        let going = |lax| {
            let may_go = (0..self.rows.len()).filter(|&at| is_expired(&at) && self.may_go(at, lax));
            // One that goes only with another is of the set: by itself a live row may keep it that
            // goes with the other one.
            may_go
                .flat_map(|at| self.with_referring(at))
                .filter(is_expired)
                .collect::<BTreeSet<usize>>()
        };
        let strict = going(false);
        let is_certain = strict == going(true) && strict == self.going_in_one_transaction();
        is_certain.then_some(strict)
    }

    /// The expired rows that go if one transaction deletes all that can: a live row may go by the cascade of another
    /// one of them before a deferred check finds it.
    fn going_in_one_transaction(&self) -> BTreeSet<usize> {
        let expired = (0..self.rows.len()).filter(|&at| self.rows[at].expired);
        let mut each: Vec<BTreeSet<usize>> = expired.map(|at| self.with_referring(at)).collect();
        loop {
            let all: BTreeSet<usize> = each.iter().flatten().copied().collect();
            let is_kept = |&at: &usize| {
                self.referring(at).any(|(from, action)| match action {
                    Action::Cascade | Action::SetNull => false,
                    Action::No | Action::Restrict => {
                        !self.rows[from].expired && !all.contains(&from)
                    }
                    Action::Deferred => !all.contains(&from),
                })
            };
            let kept: BTreeSet<usize> = all.iter().copied().filter(is_kept).collect();
            if kept.is_empty() {
                return all
                    .into_iter()
                    .filter(|&at| self.rows[at].expired)
                    .collect();
            }
            each.retain(|rows| rows.is_disjoint(&kept));
        }
    }

    fn create(&self, session: &mut Session, schema: &str) {
        session.run(&format!(
            "CREATE SCHEMA {schema}; SET search_path = {schema}"
        ));
        for table in 0..self.keys.len() {
            session.run(&format!("CREATE TABLE t{table} (id int PRIMARY KEY, f0 int, f1 int, _ts timestamptz NOT NULL DEFAULT now())"));
        }
        for (table, keys) in self.keys.iter().enumerate() {
            for (key, (to, action)) in keys.iter().enumerate() {
                session.run(&format!(
                    "ALTER TABLE t{table} ADD FOREIGN KEY (f{key}) REFERENCES t{to} {}; CREATE INDEX ON t{table} (f{key})",
                    action.sql()
                ));
            }
        }
    }

    fn fill(&self, session: &mut Session) {
        let mut script = "SET ttl.preserve_ts = on; BEGIN;".to_owned();
        for row in &self.rows {
            script += &format!("INSERT INTO t{} (id) VALUES ({});", row.table, row.id);
        }
        for row in &self.rows {
            let of = |key: usize| {
                row.refers[key].map_or("NULL".to_owned(), |to| self.rows[to].id.to_string())
            };
            let time = if row.expired { "'2000-01-01'" } else { "now()" };
            script += &format!(
                "UPDATE t{} SET f0 = {}, f1 = {}, _ts = {time} WHERE id = {};",
                row.table,
                of(0),
                of(1),
                row.id
            );
        }
        session.run(&(script + "COMMIT; RESET ttl.preserve_ts"));
    }

    /// Deletes what can go, in several statements: a live row that goes with one by ON DELETE
    /// CASCADE is no longer in the way of others. `None`: the outcome depends on the order.
    fn delete_all(&self, session: &mut Session, schema: &str) -> Option<()> {
        let mut now = Self {
            keys: self.keys.clone(),
            rows: self.rows.clone(),
        };
        loop {
            let going = now.going()?;
            if going.is_empty() {
                return Some(());
            }
            let deletes = (0..now.keys.len()).map(|table| {
                let ids = going.iter().filter(|&&at| now.rows[at].table == table);
                let ids: Vec<String> = ids.map(|&at| now.rows[at].id.to_string()).collect();
                format!(
                    "d{table} AS (DELETE FROM {schema}.t{table} WHERE id = ANY ('{{{}}}'))",
                    ids.join(",")
                )
            });
            let all = deletes.collect::<Vec<_>>().join(", ");
            session.run(&format!("WITH {all} SELECT 1"));
            now = self.after(&now.left(session, schema));
        }
    }

    /// What is left of it.
    fn after(&self, left: &[Vec<String>]) -> Self {
        let ids: Vec<i64> = left.iter().map(|row| row[1].parse().unwrap()).collect();
        let rows = left.iter().map(|row| {
            let id: i64 = row[1].parse().unwrap();
            let refers = [2, 3].map(|at| {
                let to: i64 = row[at].parse().ok()?;
                ids.iter().position(|&id| id == to)
            });
            let was = self.rows.iter().find(|was| was.id == id).unwrap();
            Row {
                refers,
                ..was.clone()
            }
        });
        Self {
            keys: self.keys.clone(),
            rows: rows.collect(),
        }
    }

    fn left(&self, session: &mut Session, schema: &str) -> Vec<Vec<String>> {
        let tables = (0..self.keys.len())
            .map(|table| format!("SELECT {table}, id, f0, f1 FROM {schema}.t{table}"));
        session.rows(&format!(
            "{} ORDER BY 1, 2",
            tables.collect::<Vec<_>>().join(" UNION ALL ")
        ))
    }
}

#[test]
fn what_can_go_goes() {
    let graphs = env::var("TTL_GRAPHS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(20);
    let mut random = Random::from_environment();
    let server = Server::start_sweeping(&[]);
    let database = server.database("graphs");
    let mut disk = database.disk();
    for number in 0..graphs {
        let graph = Graph::random(&mut random);
        let (ours, theirs) = (format!("g{number}"), format!("plain{number}"));
        graph.create(&mut disk, &theirs);
        graph.fill(&mut disk);
        if graph.delete_all(&mut disk, &theirs).is_none() {
            disk.run(&format!(
                "SET client_min_messages = error; DROP SCHEMA {theirs} CASCADE; RESET client_min_messages"
            ));
            continue;
        }
        let expected = graph.left(&mut disk, &theirs);

        graph.create(&mut disk, &ours);
        for table in 0..graph.keys.len() {
            disk.run(&format!(
                "SELECT ttl.enable('t{table}', 3600, ttl_column => NULL), ttl.pause('t{table}')"
            ));
        }
        graph.fill(&mut disk);
        for table in 0..graph.keys.len() {
            disk.run(&format!("SELECT ttl.resume('t{table}')"));
        }
        let count = (0..graph.keys.len()).map(|table| format!("(SELECT count(*) FROM t{table})"));
        let count = format!("SELECT {}", count.collect::<Vec<_>>().join(" + "));
        disk.wait_until(&count, &expected.len().to_string(), SET_ASIDE);
        assert_eq!(
            graph.left(&mut disk, &ours),
            expected,
            "graph {number}: {graph:?}"
        );
        disk.run(&format!("SET client_min_messages = error; DROP SCHEMA {ours} CASCADE; DROP SCHEMA {theirs} CASCADE; RESET client_min_messages"));
    }
}
