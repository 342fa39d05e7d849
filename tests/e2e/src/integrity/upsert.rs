//! Statements that insert: INSERT, upserts in every form, MERGE, COPY.

use super::generator::Generator;
use super::schema::{COLUMNS, Unique};

impl Generator<'_> {
    pub(super) fn insert(&mut self) -> String {
        let table = self.table();
        let insert = self.insert_into(table, "");
        insert + self.returning()
    }

    pub(super) fn returning(&mut self) -> &'static str {
        self.random.pick(&["", " RETURNING id, k, val, pid, up"])
    }

    /// One row, or several, or those of another table.
    fn insert_into(&mut self, table: usize, alias: &str) -> String {
        let name = self.name(table);
        let into = format!("INSERT INTO {name}{alias}");
        match self.random.weighted(&[6, 3, 2, 1]) {
            0 => format!("{into} ({COLUMNS}) VALUES ({})", self.values().join(", ")),
            1 => {
                let count = self.random.between(2, 3);
                let row = |_| format!("({})", self.values().join(", "));
                let rows: Vec<_> = (0..count).map(row).collect();
                format!("{into} ({COLUMNS}) VALUES {}", rows.join(", "))
            }
            2 => {
                let from = self.table();
                let from = self.schema.tables[from].name;
                let (least, more) = (self.id(), self.random.between(0, 3));
                format!(
                    "{into} ({COLUMNS}) SELECT id + {more}, k + {more}, val, pid, up FROM {from} WHERE id >= {least} ORDER BY id"
                )
            }
            // Defaults, one of which is a key of the parent.
            _ => {
                let (id, k) = (self.value("id"), self.value("k"));
                format!("{into} (id, k, val) VALUES ({id}, {k}, 3)")
            }
        }
    }

    pub(super) fn upsert(&mut self) -> String {
        let table = self.table();
        let insert = self.insert_into(table, " AS t");
        let (target, updates) = self.arbiter(table);
        let action = match updates && self.random.chance(0.7) {
            false => "DO NOTHING".to_owned(),
            true => {
                let set = self.random.pick(&[
                    "val = excluded.val",
                    "val = t.val + excluded.val",
                    "k = excluded.k",
                    "pid = excluded.pid",
                    "up = excluded.up, val = 1",
                    "id = excluded.id + 1",
                    "k = excluded.k, id = excluded.id, ttl = NULL",
                ]);
                let filter =
                    self.random
                        .pick(&["", "", " WHERE t.val < 4", " WHERE excluded.val > 2"]);
                format!("DO UPDATE SET {set}{filter}")
            }
        };
        format!("{insert} ON CONFLICT{target} {action}{}", self.returning())
    }

    /// What stands after ON CONFLICT, and whether DO UPDATE can follow.
    fn arbiter(&mut self, table: usize) -> (String, bool) {
        let table = &self.schema.tables[table];
        let second = match table.unique {
            Unique::Plain | Unique::Include | Unique::NullsNotDistinct => " (k)",
            Unique::Partial => " (k) WHERE val > 2",
            Unique::Expression => " ((k % 4))",
            Unique::WithId => " (id, k)",
            Unique::Exclusion => " ON CONSTRAINT {t}_k_key",
            _ => "",
        };
        let target = self.random.pick(&[
            "",
            " (id)",
            " (id)",
            " ON CONSTRAINT {t}_pkey",
            second,
            second,
        ]);
        let excludes = target == second && table.unique == Unique::Exclusion;
        let updates = !target.is_empty() && !excludes;
        (target.replace("{t}", table.name), updates)
    }

    pub(super) fn merge(&mut self) -> String {
        let table = self.table();
        let name = self.name(table);
        // Several rows are joined in an order that is the plan's choice.
        let count = if self.wild {
            self.random.between(1, 3)
        } else {
            1
        };
        let row = |_| {
            let values: Vec<_> = self.values();
            let cast = values.iter().map(|value| format!("{value}::integer"));
            format!("({})", cast.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<_> = (0..count).map(row).collect();
        let matched = self.random.pick(&[
            "UPDATE SET val = s.val",
            "UPDATE SET k = s.k",
            "UPDATE SET pid = s.pid, up = s.up",
            "UPDATE SET id = s.id + 1",
            "DELETE",
            "DO NOTHING",
        ]);
        let (on, also) = (
            self.random
                .pick(&["t.id = s.id", "t.id = s.id", "t.k = s.k"]),
            self.random.pick(&["", "", " AND t.val > 2"]),
        );
        let on = if on == "t.k = s.k" && !self.wild {
            "t.id = s.id AND t.k = s.k"
        } else {
            on
        };
        format!(
            "MERGE INTO {name} AS t USING (VALUES {}) AS s ({COLUMNS}) ON {on} \
             WHEN MATCHED{also} THEN {matched} \
             WHEN NOT MATCHED THEN INSERT ({COLUMNS}) VALUES (s.id, s.k, s.val, s.pid, s.up)",
            rows.join(", ")
        )
    }

    /// COPY FROM: the statement, and below it the rows.
    pub(super) fn copy(&mut self) -> String {
        let table = self.table();
        let name = self.name(table);
        let mut text = format!("COPY {name} ({COLUMNS}) FROM STDIN");
        for _ in 0..self.random.between(1, 4) {
            let row = self.values().join("\t").replace("NULL", "\\N");
            text += &format!("\n{row}");
        }
        text
    }
}
