//! Random expressions and conditions.

use super::generator::{Column, Generator};
use super::schema::Type;

/// How deep sub-queries nest inside expressions.
const MAX_DEPTH: u32 = 2;

impl Generator {
    /// A visible column of this type, if there is one.
    pub(super) fn column<'s>(&mut self, scope: &'s [Column], ty: Type) -> Option<&'s Column> {
        let fitting: Vec<&Column> = scope.iter().filter(|c| c.ty == ty).collect();
        (!fitting.is_empty()).then(|| self.random.pick(&fitting))
    }

    /// An expression of this type.
    pub(super) fn expr(&mut self, ty: Type, scope: &[Column], depth: u32) -> String {
        if self.random.chance(0.6)
            && let Some(column) = self.column(scope, ty)
        {
            return column.sql.clone();
        }
        if depth >= MAX_DEPTH {
            return self.literal(ty);
        }
        let deeper = depth + 1;
        if self.random.chance(0.15) {
            let condition = self.condition(scope, deeper);
            let (yes, no) = (self.expr(ty, scope, deeper), self.expr(ty, scope, deeper));
            return format!("CASE WHEN {condition} THEN {yes} ELSE {no} END");
        }
        if self.random.chance(0.1) {
            let (one, two) = (self.expr(ty, scope, deeper), self.expr(ty, scope, deeper));
            return format!("coalesce({one}, {two})");
        }
        match ty {
            Type::Int => self.int(scope, deeper),
            Type::Text => self.text(scope, deeper),
            Type::Time => {
                let time = self.expr(Type::Time, scope, deeper);
                let unit = self.random.pick(&["hour", "day", "month"]);
                format!("date_trunc('{unit}', {time})")
            }
            // A date is not changed by arithmetic: it may be the last one of the type.
            Type::Day => {
                let (one, two) = (self.expr(Type::Day, scope, deeper), self.literal(Type::Day));
                format!("greatest({one}, {two})")
            }
            Type::Bool => format!("({})", self.condition(scope, deeper)),
            Type::Json => {
                let value = self.expr(Type::Int, scope, deeper);
                format!("to_jsonb({value})")
            }
        }
    }

    fn int(&mut self, scope: &[Column], depth: u32) -> String {
        match self.random.weighted(&[4, 2, 2, 2, 2, 3, 1]) {
            0 => {
                // A remainder keeps numbers small, so that nothing overflows.
                let (one, two) = (self.expr(Type::Int, scope, depth), self.literal(Type::Int));
                let operator = self.random.pick(&["+", "-", "*"]);
                format!("(({one}) % 1000 {operator} ({two}))")
            }
            1 => format!("length({})", self.expr(Type::Text, scope, depth)),
            2 => format!("abs({})", self.expr(Type::Int, scope, depth)),
            3 => match self.column(scope, Type::Json) {
                Some(doc) => format!("({} ->> 'k')::integer", doc.sql),
                None => self.literal(Type::Int),
            },
            4 => {
                let function = self.random.pick(&["f_max", "f_count"]);
                // Applied to each row, not to the result of a big join.
                let key = if scope.len() > 9 {
                    self.literal(Type::Int)
                } else {
                    self.expr(Type::Int, scope, MAX_DEPTH)
                };
                format!("{function}({key})")
            }
            5 => self.scalar_query(scope, depth),
            _ => format!(
                "nullif({}, {})",
                self.expr(Type::Int, scope, depth),
                self.literal(Type::Int)
            ),
        }
    }

    fn text(&mut self, scope: &[Column], depth: u32) -> String {
        match self.random.weighted(&[2, 2, 1]) {
            0 => format!("upper({})", self.expr(Type::Text, scope, depth)),
            1 => format!("({} || '.')", self.expr(Type::Text, scope, depth)),
            _ => format!("({})::text", self.expr(Type::Int, scope, depth)),
        }
    }

    pub(super) fn literal(&mut self, ty: Type) -> String {
        match ty {
            Type::Int if self.parameters && self.random.chance(0.5) => {
                self.random.pick(&["$1", "$2", "$3"]).to_owned()
            }
            Type::Int => self.random.between(-2, 60).to_string(),
            Type::Text => {
                let tree = self.random.pick(&["ash", "birch", "elm", "oak"]);
                format!("'{tree}{}'", self.random.between(0, 9))
            }
            // Far from any row's expiry, and constant during the run.
            Type::Time => "timestamptz '2020-01-01'".to_owned(),
            Type::Day => "date '2020-01-01'".to_owned(),
            Type::Bool => self.random.pick(&["true", "false"]).to_owned(),
            Type::Json => format!("'{{\"k\": {}}}'::jsonb", self.random.between(0, 7)),
        }
    }

    /// A condition on the visible columns.
    pub(super) fn condition(&mut self, scope: &[Column], depth: u32) -> String {
        if depth < MAX_DEPTH {
            let deeper = depth + 1;
            match self.random.weighted(&[10, 2, 2, 1, 4]) {
                1 => {
                    return format!(
                        "({} AND {})",
                        self.condition(scope, deeper),
                        self.condition(scope, deeper)
                    );
                }
                2 => {
                    return format!(
                        "({} OR {})",
                        self.condition(scope, deeper),
                        self.condition(scope, deeper)
                    );
                }
                3 => return format!("NOT ({})", self.condition(scope, deeper)),
                4 => return self.sub_query(scope, deeper),
                _ => (),
            }
        }
        let ty = self.any_type();
        let Some(column) = self.column(scope, ty).map(|c| c.sql.clone()) else {
            return self.random.pick(&["true", "1 = 1", "2 > 1"]).to_owned();
        };
        if self.random.chance(0.08) {
            let null = self.random.pick(&["IS NULL", "IS NOT NULL"]);
            return format!("{column} {null}");
        }
        match ty {
            Type::Int => self.int_condition(&column, scope),
            Type::Text => match self.random.weighted(&[3, 1, 2, 1]) {
                0 => format!(
                    "{column} LIKE '{}%'",
                    self.random.pick(&["a", "b", "be", "e", "l", "oak"])
                ),
                1 => format!("lower({column}) = {}", self.literal(Type::Text)),
                2 => format!("{column} >= '{}'", self.random.pick(&["b", "c", "f", "k"])),
                _ => format!("{column} <> {}", self.expr(Type::Text, scope, MAX_DEPTH)),
            },
            Type::Time => {
                let operator = self.random.pick(&["<", ">", "<=", ">=", "<>"]);
                let days = self.random.pick(&[1, 3, 10, 30]);
                format!("{column} {operator} (SELECT base FROM src.base) - interval '{days} days'")
            }
            Type::Day => {
                let operator = self.random.pick(&["<", ">", "<=", ">=", "<>"]);
                let days = self.random.pick(&[-5, 1, 3, 10, 30]);
                format!("{column} {operator} (SELECT base::date FROM src.base) - {days}")
            }
            Type::Bool => self
                .random
                .pick(&["{}", "{} IS NOT TRUE", "NOT {}", "{} IS FALSE"])
                .replace("{}", &column),
            Type::Json => match self.random.weighted(&[3, 2, 1]) {
                0 => format!("{column} @> {}", self.literal(Type::Json)),
                1 => format!(
                    "{column} @> '{{\"tags\": [\"t{}\"]}}'",
                    self.random.between(0, 4)
                ),
                _ => format!("{column} ? '{}'", self.random.pick(&["k", "tags", "none"])),
            },
        }
    }

    fn int_condition(&mut self, column: &str, scope: &[Column]) -> String {
        match self.random.weighted(&[4, 2, 2, 1, 1]) {
            0 => {
                let operator = self.random.pick(&["<", ">", ">=", "<=", "<>", "<", ">"]);
                format!("{column} {operator} {}", self.literal(Type::Int))
            }
            1 => {
                let low = self.random.between(0, 30);
                format!(
                    "{column} BETWEEN {low} AND {}",
                    low + self.random.between(5, 90)
                )
            }
            2 => {
                let list: Vec<String> = (0..6).map(|_| self.literal(Type::Int)).collect();
                format!("{column} IN ({})", list.join(", "))
            }
            3 => format!("{column} % {} = 0", self.random.between(2, 4)),
            _ => format!("{column} <= {}", self.expr(Type::Int, scope, MAX_DEPTH)),
        }
    }

    /// A sub-query that has exactly one row.
    fn scalar_query(&mut self, scope: &[Column], depth: u32) -> String {
        let (from, inner) = self.relation();
        let what = match self.column(&inner, Type::Int) {
            Some(column) => {
                let sql = column.sql.clone();
                self.random
                    .pick(&[
                        "max({})",
                        "min({})",
                        "count({})::integer",
                        "(sum({}) % 1000)::integer",
                    ])
                    .replace("{}", &sql)
            }
            None => "count(*)::integer".to_owned(),
        };
        let mut conditions = vec![self.condition(&inner, depth + 1)];
        if scope.len() <= 9 && self.random.chance(0.4) {
            conditions.extend(self.correlation(&inner, scope));
        }
        format!(
            "(SELECT {what} FROM {from} WHERE {})",
            conditions.join(" AND ")
        )
    }

    /// An equality between an inner and an outer column.
    pub(super) fn correlation(&mut self, inner: &[Column], outer: &[Column]) -> Option<String> {
        let inner = self.join_column(inner)?;
        let outer = self.join_column(outer)?;
        Some(format!("{inner} = {outer}"))
    }

    /// EXISTS, IN, ANY, ALL and their negations: semi-joins, anti-joins, sub-plans.
    fn sub_query(&mut self, scope: &[Column], depth: u32) -> String {
        let (from, inner) = self.relation();
        let filter = self.condition(&inner, depth);
        let not = self.random.pick(&["", "NOT "]);
        if self.random.chance(0.5)
            && let Some(link) = self.correlation(&inner, scope)
        {
            return format!("{not}EXISTS (SELECT 1 FROM {from} WHERE {link} AND {filter})");
        }
        let ty = self.random.pick(&[Type::Int, Type::Int, Type::Text]);
        let (Some(outer), Some(value)) = (
            self.column(scope, ty).map(|c| c.sql.clone()),
            self.column(&inner, ty).map(|c| c.sql.clone()),
        ) else {
            return format!("{not}EXISTS (SELECT 1 FROM {from} WHERE {filter})");
        };
        let query = format!("(SELECT {value} FROM {from} WHERE {filter})");
        match self.random.weighted(&[5, 2, 1, 1]) {
            0 => format!("{outer} {not}IN {query}"),
            1 => format!("{outer} = ANY (ARRAY{query})"),
            2 => format!("{outer} > ALL {query}"),
            _ => format!("{outer} <= ANY {query}"),
        }
    }
}
