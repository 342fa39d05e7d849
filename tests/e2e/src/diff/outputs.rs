//! Select lists with aggregates, grouping sets and window functions.

use super::generator::{Column, Generator};
use super::schema::Type;

impl Generator {
    pub(super) fn grouped(&mut self, types: &[Type], scope: &[Column], tail: &str) -> String {
        let mut keys: Vec<Column> = Vec::new();
        for _ in 0..self.random.weighted(&[35, 40, 20, 10]) {
            let ty = self.any_type();
            keys.extend(self.column(scope, ty).cloned());
        }
        let list = self.outputs(types, |this, ty| {
            if this.random.chance(0.5)
                && let Some(key) = this.column(&keys, ty)
            {
                return key.sql.clone();
            }
            this.aggregate(ty, scope)
        });
        let names: Vec<String> = keys.iter().map(|key| key.sql.clone()).collect();
        let names = names.join(", ");
        let first = keys.first().map(|key| key.sql.clone()).unwrap_or_default();
        let group = match self.random.weighted(&[60, 12, 12, 12]) {
            _ if keys.is_empty() => String::new(),
            1 => format!(" GROUP BY ROLLUP ({names})"),
            2 => format!(" GROUP BY CUBE ({names})"),
            3 => format!(" GROUP BY GROUPING SETS (({names}), ({first}), ())"),
            _ => format!(" GROUP BY {names}"),
        };
        let having = match self.random.chance(0.2) {
            true => format!(" HAVING count(*) > {}", self.random.between(0, 3)),
            false => String::new(),
        };
        format!("SELECT {list}{tail}{group}{having}")
    }

    /// An aggregate that does not depend on the order of its input.
    fn aggregate(&mut self, ty: Type, scope: &[Column]) -> String {
        let filter = match self.random.chance(0.15) {
            true => format!(" FILTER (WHERE {})", self.condition(scope, 2)),
            false => String::new(),
        };
        let Some(column) = self.column(scope, ty).map(|c| c.sql.clone()) else {
            return match ty {
                Type::Int => format!("count(*){filter}::integer"),
                other => self.literal(other),
            };
        };
        match ty {
            Type::Int => {
                let form = self.random.pick(&[
                    "count(*){f}::integer",
                    "max({}){f}",
                    "min({}){f}",
                    "(sum({}){f} % 100000)::integer",
                    "count(DISTINCT {}){f}::integer",
                    "(percentile_disc(0.5) WITHIN GROUP (ORDER BY {}){f})",
                ]);
                form.replace("{}", &column).replace("{f}", &filter)
            }
            Type::Text => {
                let form = self.random.pick(&[
                    "max({}){f}",
                    "min({}){f}",
                    "md5(string_agg({}, ',' ORDER BY {}){f})",
                ]);
                form.replace("{}", &column).replace("{f}", &filter)
            }
            Type::Time | Type::Day => {
                format!("{}({column}){filter}", self.random.pick(&["min", "max"]))
            }
            Type::Bool => format!(
                "{}({column}){filter}",
                self.random.pick(&["bool_or", "bool_and"])
            ),
            Type::Json => {
                format!("to_jsonb(md5(jsonb_agg({column} ORDER BY {column}){filter}::text))")
            }
        }
    }

    /// A window function whose value does not depend on the order of peers.
    pub(super) fn window(&mut self, ty: Type, scope: &[Column]) -> String {
        if self.random.chance(0.4) {
            return self.expr(ty, scope, 1);
        }
        let by_type = self.any_type();
        let by = self
            .column(scope, by_type)
            .map_or("1".to_owned(), |c| c.sql.clone());
        let order_type = self.any_type();
        let order = self
            .column(scope, order_type)
            .map_or("2".to_owned(), |c| c.sql.clone());
        let partition = self
            .random
            .pick(&["", "PARTITION BY {by} "])
            .replace("{by}", &by);
        let over = format!("OVER ({partition}ORDER BY {order})");
        match (ty, self.column(scope, ty).map(|c| c.sql.clone())) {
            (Type::Int, Some(column)) => {
                let form = self.random.pick(&[
                    "rank()",
                    "dense_rank()",
                    "count(*)",
                    "sum({})",
                    "max({})",
                    "count({})",
                ]);
                format!("({} {over} % 100000)::integer", form.replace("{}", &column))
            }
            (Type::Text | Type::Time | Type::Day, Some(column)) => {
                format!("{}({column}) {over}", self.random.pick(&["min", "max"]))
            }
            (Type::Bool, Some(column)) => format!("bool_or({column}) {over}"),
            (Type::Json, _) => format!("to_jsonb(rank() {over})"),
            (_, None) => self.expr(ty, scope, 1),
        }
    }
}
