//! Items of FROM: relations, joins, sub-queries, functions.

use super::generator::{Column, Generator, Scope, scope_of};
use super::schema::{FUNCTIONS, PARENTS, RELATIONS, Type};

impl Generator {
    /// A relation by its name (or a function's rows) with an alias.
    pub(super) fn relation(&mut self) -> (String, Scope) {
        let alias = self.alias('t');
        if !self.named.is_empty() && self.random.chance(0.4) {
            let index = self.random.between(0, self.named.len() as i64 - 1) as usize;
            let named = self.named[index].clone();
            let scope = scope_of(&alias, &named.columns);
            return (format!("{} AS {alias}", named.name), scope);
        }
        let (sql, name) = match self.random.weighted(&[30, 3, 2, 3]) {
            0 => {
                let name = self.random.pick(RELATIONS);
                (format!("{name} AS {alias}"), name)
            }
            1 => {
                let name = self.random.pick(PARENTS);
                (format!("ONLY {name} AS {alias}"), name)
            }
            2 => {
                let name = self.random.pick(&["d", "o", "p", "h", "w"]);
                let method = self.random.pick(&["SYSTEM", "BERNOULLI"]);
                (
                    format!("{name} AS {alias} TABLESAMPLE {method} (100)"),
                    name,
                )
            }
            _ => {
                let name = self.random.pick(FUNCTIONS);
                let group = self.random.between(0, 9);
                (format!("{name}({group}) AS {alias}"), name)
            }
        };
        (sql, self.columns_of(name, &alias))
    }

    /// A relation, or a sub-query in its place.
    pub(super) fn source(&mut self, depth: u32) -> (String, Scope) {
        if depth >= 2 || self.random.chance(0.75) {
            return self.relation();
        }
        let alias = self.alias('s');
        if self.random.chance(0.06) {
            let rows: Vec<String> = (1..=4)
                .map(|n| {
                    format!(
                        "({n}, {}, {})",
                        self.random.between(0, 99),
                        self.literal(Type::Text)
                    )
                })
                .collect();
            let columns = [("c1", Type::Int), ("c2", Type::Int), ("c3", Type::Text)];
            let sql = format!("(VALUES {}) AS {alias} (c1, c2, c3)", rows.join(", "));
            return (sql, scope_of(&alias, &columns));
        }
        let (sql, columns) = self.sub_select(depth + 1, &[]);
        (format!("({sql}) AS {alias}"), scope_of(&alias, &columns))
    }

    /// A query of some columns named c1, c2, ...; the first is an integer.
    pub(super) fn sub_select(
        &mut self,
        depth: u32,
        outer: &[Column],
    ) -> (String, Vec<(String, Type)>) {
        let more = self.random.between(1, 3);
        let mut types = vec![Type::Int];
        types.extend((0..more).map(|_| self.any_type()));
        let sql = self.query(&types, depth, outer);
        let columns = (1..).map(|n| format!("c{n}")).zip(types).collect();
        (sql, columns)
    }

    /// FROM with one to three items, the columns in sight, and conditions that
    /// belong into WHERE.
    pub(super) fn from(&mut self, depth: u32) -> (String, Scope, Vec<String>) {
        let (mut sql, mut scope) = self.source(depth);
        let joins = match depth {
            0 => self.random.weighted(&[35, 45, 20]),
            1 => self.random.weighted(&[60, 40]),
            _ => 0,
        };
        let mut conditions = Vec::new();
        for _ in 0..joins {
            if depth < 2 && self.random.chance(0.12) {
                let (item, columns) = self.lateral(depth, &scope);
                sql.push_str(&item);
                scope.extend(columns);
                continue;
            }
            let (item, columns) = self.source(depth + 1);
            let Some(link) = self.link(&scope, &columns) else {
                continue;
            };
            if self.random.chance(0.2) {
                // An item of a list binds less tightly than a join.
                sql = format!("{sql} CROSS JOIN {item}");
                conditions.push(link);
            } else if self.random.chance(0.15) {
                // Nested on the right-hand side.
                let (third, more) = self.source(2);
                let inner = self.link(&columns, &more).unwrap_or("false".to_owned());
                let (outer_join, inner_join) = (self.join_kind(), self.join_kind());
                sql = format!(
                    "{sql} {outer_join} ({item} {inner_join} {third} ON {inner}) ON {link}"
                );
                scope.extend(more);
            } else {
                let kind = self.join_kind();
                let id = |scope: &[Column]| scope.iter().filter(|c| c.name == "id").count();
                if id(&scope) == 1 && id(&columns) == 1 && self.random.chance(0.15) {
                    sql = format!("{sql} {kind} {item} USING (id)");
                    scope.extend(columns);
                    continue;
                }
                let mut on = link;
                if kind != "FULL JOIN" && self.random.chance(0.4) {
                    let both: Scope = scope.iter().chain(&columns).cloned().collect();
                    on = format!("{on} AND {}", self.condition(&both, 1));
                }
                sql = format!("{sql} {kind} {item} ON {on}");
            }
            scope.extend(columns);
        }
        (sql, scope, conditions)
    }

    pub(super) fn join_kind(&mut self) -> &'static str {
        self.random.pick(&[
            "JOIN",
            "JOIN",
            "LEFT JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
        ])
    }

    /// A sub-query that sees the columns to its left.
    fn lateral(&mut self, depth: u32, outer: &[Column]) -> (String, Scope) {
        let alias = self.alias('l');
        if self.random.chance(0.3) {
            let (query, columns) = self.sub_select(2, outer);
            return (
                format!(" CROSS JOIN LATERAL ({query}) AS {alias}"),
                scope_of(&alias, &columns),
            );
        }
        let (from, inner) = self.relation();
        let id = self.expr(Type::Int, &inner, 2);
        let link = self
            .correlation(&inner, outer)
            .unwrap_or("false".to_owned());
        let filter = self.condition(&inner, depth + 1);
        let (query, columns) = if self.random.chance(0.3) {
            let query = format!(
                "SELECT count(*)::integer, max({id}) FROM {from} WHERE {link} AND {filter}"
            );
            (query, [("c1", Type::Int), ("c2", Type::Int)])
        } else {
            let other = self.expr(Type::Int, outer, 2);
            let limit = self.random.between(1, 3);
            let query = format!(
                "SELECT {id}, {other} FROM {from} WHERE {link} AND {filter} ORDER BY 1, 2 LIMIT {limit}"
            );
            (query, [("c1", Type::Int), ("c2", Type::Int)])
        };
        let item = format!("LATERAL ({query}) AS {alias} (c1, c2)");
        let sql = match self.random.weighted(&[1, 1]) {
            0 => format!(" CROSS JOIN {item}"),
            _ => format!(" LEFT JOIN {item} ON true"),
        };
        (sql, scope_of(&alias, &columns))
    }

    /// An equality on which two relations are joined without exploding.
    fn link(&mut self, left: &[Column], right: &[Column]) -> Option<String> {
        let pair = |left: &[Column], right: &[Column], name: &str| {
            let of = |scope: &[Column]| {
                scope
                    .iter()
                    .rfind(|c| c.name == name)
                    .map(|c| c.sql.clone())
            };
            Some(format!("{} = {}", of(left)?, of(right)?))
        };
        // The partition keys of both levels: partitionwise joins.
        if self.random.chance(0.12)
            && let (Some(grp), Some(key)) = (pair(left, right, "grp"), pair(left, right, "ref"))
        {
            return Some(format!("{grp} AND {key}"));
        }
        let (one, two) = (self.join_column(left)?, self.join_column(right)?);
        Some(format!("{one} = {two}"))
    }

    /// An integer column with many different values.
    pub(super) fn join_column(&mut self, scope: &[Column]) -> Option<String> {
        let good: Vec<&Column> = scope
            .iter()
            .filter(|c| c.ty == Type::Int && !matches!(c.name.as_str(), "grp" | "ttl"))
            .collect();
        let best: Vec<&Column> = good
            .iter()
            .filter(|c| matches!(c.name.as_str(), "id" | "ref"))
            .copied()
            .collect();
        let from = if !best.is_empty() && self.random.chance(0.85) {
            best
        } else {
            good
        };
        (!from.is_empty()).then(|| self.random.pick(&from).sql.clone())
    }
}
