//! Statements that change and delete rows.

use super::generator::Generator;
use super::schema::COLUMNS;

impl Generator<'_> {
    /// One row or a range. In compared sequences ranges are met in key order, because the sessions
    /// do not use sequential scans.
    fn which(&mut self) -> String {
        let id = self.id();
        match self.random.weighted(&[6, 2, 1]) {
            0 => format!("id = {id}"),
            1 => format!("id >= {id}"),
            _ => format!("id BETWEEN {id} AND {}", id + 2),
        }
    }

    pub(super) fn update(&mut self) -> String {
        let table = self.table();
        let name = self.name(table);
        let set = match self.random.weighted(&[5, 5, 4, 3, 4, 1, 1, 1]) {
            0 => format!("id = {}", self.id()),
            1 => format!("k = {}", self.value("k")),
            2 => format!("pid = {}", self.value("pid")),
            3 => format!("up = {}", self.value("up")),
            4 => format!("val = {}", self.value("val")),
            5 => "k = 7 - k".to_owned(),
            6 => format!(
                "id = {}, k = {}, pid = {}",
                self.id(),
                self.value("k"),
                self.value("pid")
            ),
            _ => "id = id + 1, pid = pid + 1".to_owned(),
        };
        let which = self.which();
        format!("UPDATE {name} SET {set} WHERE {which}{}", self.returning())
    }

    pub(super) fn delete(&mut self) -> String {
        let table = self.table();
        let name = self.name(table);
        let which = self.which();
        format!("DELETE FROM {name} WHERE {which}{}", self.returning())
    }

    /// A row that takes another's key in one statement.
    pub(super) fn replace_in_with(&mut self) -> String {
        let table = self.table();
        let name = self.schema.tables[table].name;
        let (id, more) = (self.id(), self.random.between(0, 2));
        format!(
            "WITH gone AS (DELETE FROM {name} WHERE id = {id} RETURNING {COLUMNS}) \
             INSERT INTO {name} ({COLUMNS}) SELECT id + {more}, k, val, pid, up FROM gone"
        )
    }
}
