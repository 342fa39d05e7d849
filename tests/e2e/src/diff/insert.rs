//! Random INSERT and MERGE.

use super::generator::Generator;
use super::schema::{KEYED, TARGETS, Type};

impl Generator {
    /// Keys that are new, or those of live rows: an expired row's key is a
    /// matter for tests of its own.
    pub(super) fn insert(&mut self) -> (String, &'static str) {
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

    pub(super) fn merge(&mut self) -> (String, &'static str) {
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
}
