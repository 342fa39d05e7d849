//! Random INSERT and MERGE, and the keys that they meet.

use super::generator::Generator;
use super::schema::{KEYED, SALTED, TARGETS, Type, has_dates};

impl Generator {
    /// New keys, keys of live rows, and keys of expired rows, which must act like new ones.
    pub(super) fn insert(&mut self) -> (String, &'static str) {
        if self.random.chance(0.25) {
            return self.insert_again();
        }
        let source = self.random.pick(KEYED);
        let conflict = self.random.chance(0.6);
        let target = if conflict {
            // The keys of another table meet all kinds of rows here.
            let other = self.random.pick(KEYED);
            self.random.pick(&[source, other])
        } else {
            self.random.pick(TARGETS)
        };
        let alias = self.alias('t');
        let scope = self.columns_of(source, &alias);
        let filter = self.condition(&scope, 0);
        let id = if conflict {
            format!("{alias}.id + 100000 * ({alias}.grp % 2)")
        } else {
            format!("{alias}.id + 100000")
        };
        let text = self.expr(Type::Text, &scope, 1);
        let group = if conflict {
            format!("{alias}.grp")
        } else {
            self.fitting_group(target)
        };
        let reference = match target {
            "p2a" | "i_p2a" => "7".to_owned(),
            "p2b" | "i_p2b" => "61".to_owned(),
            _ => format!("{alias}.ref"),
        };
        let clause = if conflict {
            self.on_conflict(target)
        } else {
            String::new()
        };
        let returning = self.returning("i", "INSERT");
        let (column, value) = self.new_date(target);
        let sql = format!(
            "INSERT INTO {target} AS i (id, ref, grp, val, txt{column}) SELECT {id}, {reference}, {group}, {alias}.val, {text}{value} \
             FROM {source} AS {alias} WHERE {filter}{clause} {returning}"
        );
        (sql, target)
    }

    fn on_conflict(&mut self, target: &str) -> String {
        if self.random.chance(0.4) {
            return " ON CONFLICT DO NOTHING".to_owned();
        }
        let number = self.random.between(1, 50);
        let date = match has_dates(target) && self.random.chance(0.4) {
            true => {
                let (column, value) = self.date();
                format!(" {column} = {value},")
            }
            false => String::new(),
        };
        format!(
            " ON CONFLICT (id) DO UPDATE SET{date} val = i.val + excluded.val, txt = 'again' WHERE i.grp <> {}",
            number % 10
        )
    }

    /// Rows of the source inserted again: those whose key no live row has, or all.
    fn insert_again(&mut self) -> (String, &'static str) {
        let (target, salt) = self.random.pick(SALTED);
        let (alias, other) = (self.alias('t'), self.alias('u'));
        let (from, number) = (self.random.between(1, 320), self.random.between(1, 60));
        let which = match self.random.chance(0.3) {
            true => format!("{alias}.val < {number}"),
            false => format!("{alias}.id BETWEEN {from} AND {}", from + number),
        };
        let rest = match self.random.weighted(&[5, 4, 1]) {
            0 => format!(
                " AND NOT EXISTS (SELECT FROM {target} AS {other} WHERE {other}.id = {alias}.id)"
            ),
            1 => self.on_conflict(target),
            // Conflicts with a live row, or with none.
            _ => format!(" AND {alias}.id = {from}"),
        };
        let returning = self.returning("i", "INSERT");
        let (column, value) = match has_dates(target) && self.random.chance(0.5) {
            // The row as in the source, expired or not.
            true => (
                ", at, moment, day, dates".to_owned(),
                format!(", {alias}.at, {alias}.moment, {alias}.day, {alias}.dates"),
            ),
            false => self.new_date(target),
        };
        let sql = format!(
            "INSERT INTO {target} AS i (id, ref, grp, val, txt{column}) SELECT {alias}.id, {alias}.ref, {alias}.grp, {alias}.val, 'once more'{value} \
             FROM src.rows AS {alias} WHERE {alias}.salt = {salt} AND {which}{rest} {returning}"
        );
        (sql, target)
    }

    /// An UPDATE of a key to that of a live row, of an expired row, or of no row.
    pub(super) fn change_key(&mut self) -> (String, &'static str) {
        let (target, _) = self.random.pick(SALTED);
        let alias = self.alias('u');
        let (old, new) = (self.random.between(1, 320), self.random.between(1, 330));
        let returning = self.returning(&alias, "UPDATE");
        let set = self
            .random
            .pick(&["", ", val = 5", ", txt = 'moved', flag = NULL"]);
        let sql = format!(
            "UPDATE {target} AS {alias} SET id = {new}{set} WHERE {alias}.id = {old} {returning}"
        );
        (sql, target)
    }

    /// A value for `grp` that this partition takes.
    fn fitting_group(&mut self, target: &str) -> String {
        match target {
            "p1" | "i_p1" => "1",
            "p2" | "p2a" | "p2b" | "i_p2" | "i_p2a" | "i_p2b" => "4",
            "p3" | "i_p3" => "8",
            _ => "5",
        }
        .to_owned()
    }

    pub(super) fn merge(&mut self) -> (String, &'static str) {
        let target = self.random.pick(&[
            "d", "o", "n", "w", "r", "p", "p2", "z", "i_at", "i_moment", "i_day", "i_array",
            "i_clock", "i_parts",
        ]);
        let source = self
            .random
            .pick(&["x", "o", "n", "w", "d", "i_at", "i_day"]);
        let (t, s) = (self.alias('u'), self.alias('t'));
        let scope = self.columns_of(target, &t);
        let rows = self.columns_of(source, &s);
        let filter = self.condition(&rows, 1);
        let extra = self.condition(&scope, 1);
        let matched = self.random.pick(&[
            "UPDATE SET val = {s}.val, txt = {s}.txt",
            "UPDATE SET flag = NOT {t}.flag",
            "DELETE",
        ]);
        let matched = match has_dates(target) && self.random.chance(0.5) {
            true => {
                let (column, value) = self.date();
                format!("UPDATE SET {column} = {value}")
            }
            false => matched.to_owned(),
        };
        let (date_column, date_value) = self.new_date(target);
        let mut sql = format!(
            "MERGE INTO {target} AS {t} USING (SELECT * FROM {source} AS {s} WHERE {filter}) AS {s} ON {t}.id = {s}.id \
             WHEN MATCHED AND {extra} THEN {matched}"
        );
        if self.random.chance(0.4) {
            sql.push_str(" WHEN MATCHED THEN DO NOTHING");
        }
        if self.random.chance(0.6) {
            let group = self.fitting_group(target);
            sql.push_str(" WHEN NOT MATCHED AND {s}.val > 3 THEN INSERT (id, ref, grp, val, txt{c}) VALUES ({s}.id{new}, 61, {g}, {s}.val, 'new'{v})");
            // No live row has this key; an expired one may.
            let new = self.random.pick(&["", "", " + 100000"]);
            sql = sql
                .replace("{g}", &group)
                .replace("{new}", new)
                .replace("{c}", &date_column)
                .replace("{v}", &date_value);
        }
        if self.major >= 17 && self.random.chance(0.3) {
            sql.push_str(" WHEN NOT MATCHED BY SOURCE AND {t}.val < 20 THEN DELETE");
        }
        if self.major >= 17 && self.random.chance(0.6) {
            sql.push_str(" RETURNING merge_action(), {t}.id, {t}.val, {s}.id");
        }
        (sql.replace("{s}", &s).replace("{t}", &t), target)
    }
}
