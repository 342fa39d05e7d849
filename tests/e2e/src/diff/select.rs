//! Random queries.

use super::generator::{Column, Generator, Named, Scope};
use super::schema::Type;

impl Generator {
    /// A query whose columns have these types and are called c1, c2, ...
    pub(super) fn query(&mut self, types: &[Type], depth: u32, outer: &[Column]) -> String {
        if depth <= 1 && self.random.chance(if depth == 0 { 0.18 } else { 0.05 }) {
            return self.with(types, depth, outer);
        }
        let set_operation = match depth {
            0 => 0.15,
            1 => 0.3,
            2 => 0.1,
            _ => 0.0,
        };
        let sql = if self.random.chance(set_operation) {
            self.set_operation(types, depth, outer)
        } else {
            self.select(types, depth, outer)
        };
        self.limited(sql, types.len())
    }

    /// Sometimes ordered by all columns, which makes a LIMIT deterministic.
    fn limited(&mut self, sql: String, columns: usize) -> String {
        let all: Vec<String> = (1..=columns).map(|n| n.to_string()).collect();
        let all = all.join(", ");
        match self.random.weighted(&[70, 12, 5, 5, 3]) {
            1 => format!("{sql} ORDER BY {all} LIMIT {}", self.random.between(1, 200)),
            2 => format!("{sql} ORDER BY {all} OFFSET {}", self.random.between(1, 20)),
            3 => format!("{sql} ORDER BY {all} DESC"),
            // Only in a query of its own: PostgreSQL's index plan for min and max keeps WITH TIES
            // for its LIMIT 1 and fails with 21000.
            4 => format!(
                "SELECT * FROM ({sql}) AS ties ORDER BY 1 DESC NULLS LAST FETCH FIRST {} ROWS WITH TIES",
                self.random.between(1, 20)
            ),
            _ => sql,
        }
    }

    fn set_operation(&mut self, types: &[Type], depth: u32, outer: &[Column]) -> String {
        let mut arms = vec![self.select(types, depth + 1, outer)];
        let mut sql = arms.remove(0);
        for _ in 0..self.random.weighted(&[0, 60, 30, 10]) {
            let kind = self.random.pick(&[
                "UNION ALL",
                "UNION ALL",
                "UNION ALL",
                "UNION",
                "INTERSECT",
                "EXCEPT",
                "EXCEPT ALL",
                "INTERSECT ALL",
            ]);
            let arm = if depth < 2 && self.random.chance(0.2) {
                format!("({})", self.query(types, depth + 1, outer))
            } else {
                self.select(types, depth + 1, outer)
            };
            sql = format!("{sql} {kind} {arm}");
        }
        sql
    }

    fn with(&mut self, types: &[Type], depth: u32, outer: &[Column]) -> String {
        let known = self.named.len();
        let name = self.alias('w');
        let (definition, columns, recursive) = if self.random.chance(0.3) {
            (
                self.recursion(&name),
                vec![("c1".to_owned(), Type::Int), ("c2".to_owned(), Type::Int)],
                " RECURSIVE",
            )
        } else {
            let (query, columns) = self.sub_select(depth + 1, &[]);
            let how = self
                .random
                .pick(&["", "MATERIALIZED ", "NOT MATERIALIZED "]);
            let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
            (
                format!("{name} ({}) AS {how}({query})", names.join(", ")),
                columns,
                "",
            )
        };
        self.named.push(Named { name, columns });
        let mut body = self.query(types, depth + 1, outer);
        self.named.truncate(known);
        if body.starts_with("WITH") {
            body = format!("SELECT * FROM ({body}) AS body");
        }
        format!("WITH{recursive} {definition} {body}")
    }

    fn recursion(&mut self, name: &str) -> String {
        let (start, first) = self.relation();
        let (step, second) = self.relation();
        let of = |scope: &Scope, name: &str| {
            scope
                .iter()
                .find(|c| c.name == name)
                .map_or("1".to_owned(), |c| c.sql.clone())
        };
        let filter = self.condition(&first, 1);
        let union = self.random.pick(&["UNION", "UNION ALL"]);
        let cycle = if self.random.chance(0.2) {
            " CYCLE c1 SET again USING path"
        } else {
            ""
        };
        format!(
            "{name} (c1, c2, level) AS (SELECT {}, {}, 0 FROM {start} WHERE {filter} {union} \
             SELECT {}, {}, {name}.level + 1 FROM {name} JOIN {step} ON {} = {name}.c1 WHERE {name}.level < 2){cycle}",
            of(&first, "id"),
            of(&first, "ref"),
            of(&second, "id"),
            of(&second, "ref"),
            of(&second, "ref"),
        )
    }

    fn select(&mut self, types: &[Type], depth: u32, outer: &[Column]) -> String {
        let (from, scope, mut conditions) = self.from(depth);
        if self.random.chance(0.55) {
            conditions.push(self.condition(&scope, depth.min(1)));
        }
        if !outer.is_empty() {
            conditions.extend(self.correlation(&scope, outer));
        }
        let clause = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let tail = format!(" FROM {from}{clause}");
        // A join may return very many rows: count them instead.
        let wide = scope.len() > 18;
        let weights = if wide {
            [20, 8, 65, 7]
        } else {
            [60, 8, 22, 10]
        };
        match self.random.weighted(&weights) {
            0 => {
                let list = self.outputs(types, |this, ty| this.expr(ty, &scope, 1));
                format!("SELECT {list}{tail}")
            }
            1 => {
                let list = self.outputs(types, |this, ty| this.expr(ty, &scope, 1));
                format!("SELECT DISTINCT {list}{tail}")
            }
            2 => self.grouped(types, &scope, &tail),
            _ => {
                let list = self.outputs(types, |this, ty| this.window(ty, &scope));
                format!("SELECT {list}{tail}")
            }
        }
    }

    pub(super) fn outputs(
        &mut self,
        types: &[Type],
        mut one: impl FnMut(&mut Self, Type) -> String,
    ) -> String {
        let mut list = Vec::new();
        for (n, ty) in types.iter().enumerate() {
            list.push(format!("{} AS c{}", one(self, *ty), n + 1));
        }
        list.join(", ")
    }
}
