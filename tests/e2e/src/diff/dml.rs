//! Random statements that change rows, all inside a transaction that is rolled
//! back. Nothing they return depends on `_ts`, which a write sets (C1), nor on
//! which of several matching rows is taken.

use super::generator::{Generator, Scope};
use super::schema::{COLUMNS, TARGETS, Type, UPDATABLE, has_dates, takes_override};

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
            script.extend(self.sweep(target));
            let dates = if has_dates(target) {
                ", at, moment, day, dates, moments, days"
            } else {
                ""
            };
            script.push(format!("SELECT {STEADY}{dates} FROM {target}"));
        }
        if self.random.chance(0.3) {
            let name = self.random.pick(&[
                "v_union", "v_join", "v_mixed", "p", "h", "n", "v_dates", "i_parts",
            ]);
            script.push(format!(
                "SELECT grp, count(*), sum(val), min(txt) FROM {name} GROUP BY grp"
            ));
        }
        script.push("ROLLBACK".to_owned());
        script
    }

    fn change(&mut self) -> (String, &'static str) {
        let target = self.target();
        let statement = match self.random.weighted(&[30, 22, 20, 16, 10, 8, 6]) {
            0 => self.update(target),
            1 => self.delete(target),
            2 => return self.insert(),
            3 => return self.merge(),
            4 => return self.changes_in_with(),
            5 => return self.change_key(),
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
        let only =
            if (target.starts_with(['h', 'd']) || target == "i_heirs") && self.random.chance(0.2) {
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
        if takes_override(target) && self.random.chance(0.15) {
            set.push(format!(
                "ttl = {}",
                self.random.pick(&["NULL", "-1", "7200000"])
            ));
        }
        if has_dates(target) && self.random.chance(0.6) {
            let (column, value) = self.date();
            set.push(format!("{column} = {value}"));
        }
        set.join(", ")
    }

    pub(super) fn returning(&mut self, alias: &str, action: &str) -> String {
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

    /// WITH queries: all see the table as it was before, and each other's RETURNING.
    fn changes_in_with(&mut self) -> (String, &'static str) {
        let target = self.random.pick(TARGETS);
        let scope = self.columns_of(target, "u");
        let (one, two) = (self.condition(&scope, 1), self.condition(&scope, 1));
        let set = self.assignments(target, &scope);
        let other = self
            .random
            .pick(&["o", "n", "d", "v_union", "p", "h", "v_dates", "i_at"]);
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
