//! Values from a small set, so that keys collide; rows that are expired from the start, and rows
//! that expire later.

use super::generator::{Generator, Step, Way};
use super::schema::{COLUMNS, ForeignKey};

/// Younger and older than what the tables' defaults and the overrides allow.
const DAY_AGO: &str = "now() - interval '1 day'";
/// With a row of a day ago: inherits, expired, never expires, lives for another day.
const OVERRIDES: &[&str] = &["NULL", "NULL", "60", "60", "-1", "172800"];

impl Generator<'_> {
    pub(super) fn id(&mut self) -> i64 {
        self.random.between(1, 7)
    }

    fn nullable(&mut self, nulls: f64, most: i64) -> String {
        if self.random.chance(nulls) {
            "NULL".to_owned()
        } else {
            self.random.between(1, most).to_string()
        }
    }

    /// A value for this column.
    pub(super) fn value(&mut self, column: &str) -> String {
        match column {
            "id" => self.id().to_string(),
            "k" => self.nullable(0.15, 7),
            "val" => self.random.between(0, 5).to_string(),
            "pid" => self.nullable(0.1, 7),
            _ => self.nullable(0.5, 7),
        }
    }

    /// The values of a whole row, as in `COLUMNS`.
    pub(super) fn values(&mut self) -> Vec<String> {
        let columns = COLUMNS.split(", ");
        columns.map(|column| self.value(column)).collect()
    }

    /// Rows that are expired when they are written.
    pub(super) fn insert_expired(&mut self) -> Vec<Step> {
        let table = self.table();
        let name = self.name(table);
        let mut values = self.values();
        // Not to its own table: a row that refers to itself, or to the expired one
        // whose place it takes, goes with it before its own check.
        let own = |key: &ForeignKey| key.child == table && key.parent == table;
        if !self.wild && self.schema.keys.iter().any(own) {
            values[4] = "NULL".to_owned();
        }
        let ttl = self.random.pick(OVERRIDES);
        let values = values.join(", ");
        let sql =
            format!("INSERT INTO {name} ({COLUMNS}, _ts, ttl) VALUES ({values}, {DAY_AGO}, {ttl})");
        vec![self.aging(table, sql)]
    }

    /// Live rows that expire now; in compared sequences only rows that no live row refers to.
    pub(super) fn expire(&mut self) -> Vec<Step> {
        let table = self.table();
        let name = self.schema.tables[table].name;
        let id = self.id();
        let which = match self.random.chance(0.7) {
            true => format!("t.id = {id}"),
            false => format!("t.id >= {id}"),
        };
        let set = self.random.pick(&["", ", ttl = 60", ", ttl = NULL"]);
        let mut sql = format!("UPDATE {name} AS t SET _ts = {DAY_AGO}{set} WHERE {which}");
        if !self.wild {
            for key in self.schema.keys.iter().filter(|key| key.parent == table) {
                let child = self.schema.tables[key.child].name;
                let others = if key.child == table {
                    " AND x.id <> t.id"
                } else {
                    ""
                };
                sql += &format!(
                    " AND NOT EXISTS (SELECT FROM {child} AS x WHERE x.{} = t.{}{others})",
                    key.column, key.target
                );
            }
        }
        vec![self.aging(table, sql)]
    }

    /// PostgreSQL checks a constraint that waits for the end of the transaction if
    /// the row is on disk then, expired or not; and that of a row which refers to
    /// itself, if the same transaction has written it. Nothing can be compared.
    fn aging(&mut self, table: usize, sql: String) -> Step {
        Step {
            way: Way::Preserving,
            sql,
            alone: !self.wild && self.schema.can_wait(table),
        }
    }
}
