//! Expired rows of a test, and whether they are still on disk.

use crate::session::Session;
use crate::wait::PATIENCE;

impl Session {
    /// Run statements whose rows keep the `_ts` that they give.
    #[track_caller]
    pub fn run_preserving(&mut self, sql: &str) {
        self.run(&format!(
            "BEGIN; SET LOCAL ttl.preserve_ts = on; {sql}; COMMIT"
        ));
    }

    /// Rows with the `id`s of this range that were written a day ago.
    #[track_caller]
    pub fn insert_expired(&mut self, table: &str, from: i32, to: i32) {
        self.run_preserving(&format!(
            "INSERT INTO {table} (id, _ts)
                SELECT n, now() - interval '1 day' FROM generate_series({from}, {to}) AS n"
        ));
    }

    /// How many rows are on disk.
    #[track_caller]
    pub fn count(&mut self, table: &str) -> i64 {
        self.sees_the_disk();
        let count = self.value(&format!("SELECT count(*) FROM {table}"));
        count.parse().expect("a count")
    }

    /// Wait until just these rows are on disk, by their `id`s.
    #[track_caller]
    pub fn wait_for_ids(&mut self, table: &str, expected: &str) {
        self.sees_the_disk();
        let query = format!(
            "SELECT count(*) || ': ' || COALESCE(string_agg(id::text, ' ' ORDER BY id) FILTER (WHERE n <= 30), '')
               FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM {table}) AS t"
        );
        let count = expected.split_whitespace().count();
        self.wait_until(&query, &format!("{count}: {expected}"), PATIENCE);
    }

    /// Wait until no row is on disk.
    #[track_caller]
    pub fn wait_for_none(&mut self, table: &str) {
        self.wait_for_ids(table, "");
    }

    /// Wait until deletion has visited this table twice from now on: rows that should stay were
    /// then found and kept. Uses rows with the `id` -1.
    #[track_caller]
    pub fn look_again(&mut self, table: &str) {
        self.sees_the_disk();
        for _ in 0..2 {
            self.run_preserving(&format!(
                "INSERT INTO {table} (id, _ts, ttl) VALUES (-1, now() - interval '1 day', 1)"
            ));
            let query = format!("SELECT count(*) FROM {table} WHERE id = -1");
            self.wait_until(&query, "0", PATIENCE);
        }
    }

    /// A superuser does by the setting, the table's owner with row_security off.
    #[track_caller]
    fn sees_the_disk(&mut self) {
        let settings = self.value(
            "SELECT current_setting('ttl.show_expired') || ' ' || current_setting('row_security')",
        );
        assert_ne!(settings, "off on", "this session does not see expired rows");
    }
}
