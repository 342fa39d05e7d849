//! Random statements that change rows, all inside a transaction that is rolled
//! back. Nothing they return depends on `_ts`, which a write sets (C1), nor on
//! which of several matching rows is taken.

use super::generator::{Generator, Scope};
use super::schema::{COLUMNS, KEYED, TARGETS, Type, UPDATABLE, has_override};

/// The columns that a write neither sets by itself nor takes from a parent.
const STEADY: &str = "id, ref, grp, val, txt, doc, flag";

impl Generator {
    /// Statements that change rows and look at them afterwards.
    pub(super) fn changes(&mut self) -> Vec<String> {
        let mut script = vec!["BEGIN".to_owned()];
        for _ in 0..self.random.weighted(&[0, 70, 30]) {
            let (statement, target) = self.change();
            script.push(statement);
            self.changed = true;
            script.push(format!("SELECT {STEADY} FROM {target}"));
        }
        if self.random.chance(0.3) {
            let name = self
                .random
                .pick(&["v_union", "v_join", "v_mixed", "p", "h", "n"]);
            script.push(format!(
                "SELECT grp, count(*), sum(val), min(txt) FROM {name} GROUP BY grp"
            ));
        }
        script.push("ROLLBACK".to_owned());
        script
    }

    fn change(&mut self) -> (String, &'static str) {
        let target = self.target();
        let statement = match self.random.weighted(&[30, 22, 16, 16, 10, 6]) {
            0 => self.update(target),
            1 => self.delete(target),
            2 => return self.insert(),
            3 => return self.merge(),
            4 => return self.changes_in_with(),
            _ => {
                let (query, columns) = self.sub_select(1, &[]);
                let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
                let name = self.alias('m');
                return (
                    format!(
                        "CREATE TEMP TABLE {name} AS {query}; SELECT {} FROM {name}",
                        names.join(", ")
                    ),
                    "o",
                );
            }
        };
        (statement, target)
    }

    fn target(&mut self) -> &'static str {
        if self.random.chance(0.15) {
            self.random.pick(UPDATABLE)
        } else {
            self.random.pick(TARGETS)
        }
    }

    fn update(&mut self, target: &'static str) -> String {
        let alias = self.alias('u');
        let scope = self.columns_of(target, &alias);
        let only = if target.starts_with(['h', 'd']) && self.random.chance(0.2) {
            "ONLY "
        } else {
            ""
        };
        let set = self.assignments(target, &scope);
        let mut sql = format!("UPDATE {only}{target} AS {alias} SET {set}");
        let mut conditions = vec![self.condition(&scope, 0)];
        if self.random.chance(0.35) {
            let (from, inner, more) = self.from(1);
            sql.push_str(&format!(" FROM {from}"));
            conditions.extend(more);
            conditions.push(
                self.correlation(&inner, &scope)
                    .unwrap_or("true".to_owned()),
            );
        }
        let returning = self.returning(&alias, "UPDATE");
        format!("{sql} WHERE {} {returning}", conditions.join(" AND "))
    }

    fn assignments(&mut self, target: &str, scope: &Scope) -> String {
        let mut set = Vec::new();
        let (first, second) = self.random.pick(&[
            ("val", "txt"),
            ("txt", "flag"),
            ("doc", "val"),
            ("grp", "val"),
            ("ref", "txt"),
        ]);
        for name in [first, second] {
            let ty = COLUMNS
                .iter()
                .find(|(n, _)| *n == name)
                .map_or(Type::Int, |(_, ty)| *ty);
            let value = match name {
                // Moves rows between partitions.
                "grp" => format!("({} + {}) % 10", scope[2].sql, self.random.between(0, 9)),
                _ => self.expr(ty, scope, 1),
            };
            set.push(format!("{name} = {value}"));
            if self.random.chance(0.5) {
                break;
            }
        }
        if has_override(target) && self.random.chance(0.15) {
            set.push(format!(
                "ttl = {}",
                self.random.pick(&["NULL", "-1", "7200000"])
            ));
        }
        set.join(", ")
    }

    fn returning(&mut self, alias: &str, action: &str) -> String {
        let columns: Vec<String> = STEADY
            .split(", ")
            .map(|name| format!("{alias}.{name}"))
            .collect();
        let columns = columns.join(", ");
        if self.major >= 18 && self.random.chance(0.3) {
            return match action {
                "UPDATE" => format!("RETURNING old.val, old.id, new.txt, {columns}"),
                _ => format!("RETURNING old.id, new.id, {columns}"),
            };
        }
        match self.random.weighted(&[6, 1, 2]) {
            0 => format!("RETURNING {columns}"),
            1 => String::new(),
            _ => {
                format!("RETURNING {alias}.id, (SELECT count(*) FROM o WHERE o.ref = {alias}.ref)")
            }
        }
    }

    fn delete(&mut self, target: &'static str) -> String {
        let alias = self.alias('u');
        let scope = self.columns_of(target, &alias);
        let mut sql = format!("DELETE FROM {target} AS {alias}");
        let mut conditions = vec![self.condition(&scope, 0)];
        if self.random.chance(0.35) {
            let (from, inner, more) = self.from(1);
            sql.push_str(&format!(" USING {from}"));
            conditions.extend(more);
            conditions.push(
                self.correlation(&inner, &scope)
                    .unwrap_or("true".to_owned()),
            );
        }
        let returning = self.returning(&alias, "DELETE");
        format!("{sql} WHERE {} {returning}", conditions.join(" AND "))
    }

    /// Keys that are new, or those of live rows: an expired row's key is a
    /// matter for tests of its own.
    fn insert(&mut self) -> (String, &'static str) {
        let source = self.random.pick(KEYED);
        let conflict = self.random.chance(0.5);
        let target = if conflict {
            source
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
            "p2a" => "7".to_owned(),
            "p2b" => "61".to_owned(),
            _ => format!("{alias}.ref"),
        };
        let clause = match (conflict, self.random.chance(0.6)) {
            (false, _) => String::new(),
            (true, true) => {
                let number = self.random.between(1, 50);
                format!(
                    " ON CONFLICT (id) DO UPDATE SET val = i.val + excluded.val, txt = 'again' WHERE i.grp <> {}",
                    number % 10
                )
            }
            (true, false) => " ON CONFLICT DO NOTHING".to_owned(),
        };
        let returning = self.returning("i", "INSERT");
        let sql = format!(
            "INSERT INTO {target} AS i (id, ref, grp, val, txt) SELECT {id}, {reference}, {group}, {alias}.val, {text} \
             FROM {source} AS {alias} WHERE {filter}{clause} {returning}"
        );
        (sql, target)
    }

    /// A value for `grp` that this partition takes.
    fn fitting_group(&mut self, target: &str) -> String {
        match target {
            "p1" => "1",
            "p2" | "p2a" | "p2b" => "4",
            "p3" => "8",
            _ => "5",
        }
        .to_owned()
    }

    fn merge(&mut self) -> (String, &'static str) {
        let target = self.random.pick(&["d", "o", "n", "w", "r", "p", "p2", "z"]);
        let source = self.random.pick(&["x", "o", "n", "w", "d"]);
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
        let mut sql = format!(
            "MERGE INTO {target} AS {t} USING (SELECT * FROM {source} AS {s} WHERE {filter}) AS {s} ON {t}.id = {s}.id \
             WHEN MATCHED AND {extra} THEN {matched}"
        );
        if self.random.chance(0.4) {
            sql.push_str(" WHEN MATCHED THEN DO NOTHING");
        }
        if self.random.chance(0.6) {
            let group = self.fitting_group(target);
            sql.push_str(" WHEN NOT MATCHED AND {s}.val > 3 THEN INSERT (id, ref, grp, val, txt) VALUES ({s}.id + 100000, 61, {g}, {s}.val, 'new')");
            sql = sql.replace("{g}", &group);
        }
        if self.major >= 17 && self.random.chance(0.3) {
            sql.push_str(" WHEN NOT MATCHED BY SOURCE AND {t}.val < 20 THEN DELETE");
        }
        if self.major >= 17 && self.random.chance(0.6) {
            sql.push_str(" RETURNING merge_action(), {t}.id, {t}.val, {s}.id");
        }
        (sql.replace("{s}", &s).replace("{t}", &t), target)
    }

    /// WITH: the parts see the rows as they were, and each other's RETURNING.
    fn changes_in_with(&mut self) -> (String, &'static str) {
        let target = self.random.pick(TARGETS);
        let scope = self.columns_of(target, "u");
        let (one, two) = (self.condition(&scope, 1), self.condition(&scope, 1));
        let set = self.assignments(target, &scope);
        let other = self.random.pick(&["o", "n", "d", "v_union", "p", "h"]);
        let first = match self.random.chance(0.6) {
            true => format!("UPDATE {target} AS u SET {set} WHERE {one} RETURNING u.id, u.ref"),
            false => format!("DELETE FROM {target} AS u WHERE {one} RETURNING u.id, u.ref"),
        };
        let sql = format!(
            "WITH changed AS ({first}), before AS (SELECT u.id FROM {target} AS u WHERE {two}) \
             SELECT (SELECT count(*) FROM changed), (SELECT count(*) FROM before), \
             count(*), sum(e.val) FROM {other} AS e WHERE e.ref IN (SELECT ref FROM changed)"
        );
        (sql, target)
    }
}
