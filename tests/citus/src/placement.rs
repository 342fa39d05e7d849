//! Where a table's rows are, and which are on disk there.

use std::time::{Duration, Instant};

use ttl_ext_e2e::PATIENCE;

use crate::application::Application;

/// A shard's table on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// The node's number.
    pub node: usize,
    /// The shard's number.
    pub shard: i64,
    /// Its qualified name.
    pub relation: String,
}

/// The numbers from one to another, as [`Application::on_disk`] has them.
pub fn ids(range: std::ops::RangeInclusive<i32>) -> String {
    let numbers: Vec<_> = range.map(|n| n.to_string()).collect();
    numbers.join(" ")
}

impl Application<'_> {
    /// The shards of a table, copies and their nodes.
    #[track_caller]
    pub fn placements(&self, table: &str) -> Vec<Placement> {
        let mut found = Vec::new();
        for node in 0..self.size() {
            let rows = self.node(node).rows(&format!(
                "SELECT shardid, shard_name(logicalrelid, shardid)
                   FROM pg_dist_shard JOIN pg_dist_placement USING (shardid)
                   JOIN pg_dist_local_group USING (groupid)
                  WHERE logicalrelid = '{table}'::regclass AND shardstate = 1 ORDER BY shardid"
            ));
            found.extend(rows.into_iter().map(|row| Placement {
                node,
                shard: row[0].parse().expect("a shard's number"),
                relation: row[1].clone(),
            }));
        }
        found
    }

    /// What a query says of each placement on disk, expired rows included; `{}` in it is the shard.
    #[track_caller]
    pub fn of_placements(&self, table: &str, query: &str) -> Vec<(Placement, Vec<Vec<String>>)> {
        let mut answers = Vec::new();
        let placements = self.placements(table);
        assert!(!placements.is_empty(), "{table} has no shards");
        for placement in placements {
            let mut session = self.database(placement.node).disk();
            let rows = session.rows(&query.replace("{}", &placement.relation));
            answers.push((placement, rows));
        }
        answers
    }

    /// The numbers (`id`) of all rows on disk, in their order; those of copies repeatedly.
    #[track_caller]
    pub fn on_disk(&self, table: &str) -> String {
        let answers = self.of_placements(table, "SELECT id FROM {}");
        let rows = answers.into_iter().flat_map(|(_, rows)| rows);
        let mut ids: Vec<i64> = rows.map(|row| row[0].parse().expect("a number")).collect();
        ids.sort_unstable();
        let ids: Vec<_> = ids.iter().map(i64::to_string).collect();
        ids.join(" ")
    }

    /// Wait until just these rows are on disk.
    #[track_caller]
    pub fn wait_for_disk(&self, table: &str, expected: &str) {
        let deadline = Instant::now() + Duration::from_secs(PATIENCE);
        loop {
            let found = self.on_disk(table);
            if found == expected {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "waited {PATIENCE} s for only {expected:?} of {table} on disk: there are {found:?}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// All copies of all shards have the same rows, column by column.
    #[track_caller]
    pub fn assert_copies_equal(&self, table: &str) {
        let query = "SELECT t::text FROM {} AS t ORDER BY 1";
        let answers = self.of_placements(table, query);
        for (placement, rows) in &answers {
            let (first, expected) = answers
                .iter()
                .find(|(other, _)| other.shard == placement.shard)
                .expect("at least itself");
            assert_eq!(rows, expected, "{placement:?} against {first:?}");
        }
    }
}
