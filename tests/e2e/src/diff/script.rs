//! A script: a query, or a few statements around one.

use super::generator::Generator;
use super::schema::{KEYED, RELATIONS};

/// How a script is run, and how its result is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// One query.
    Query,
    /// COPY ... TO STDOUT, of a query or a table.
    Copy,
    /// PREPARE and EXECUTE.
    Prepared,
    /// DECLARE CURSOR and FETCH.
    Cursor,
    /// SELECT ... FOR UPDATE and the like.
    Locking,
    /// Statements that change rows, rolled back.
    Changes,
}

/// Statements to run in both schemas.
#[derive(Debug, Clone)]
pub struct Script {
    /// How to run them.
    pub way: Way,
    /// The statements.
    pub statements: Vec<String>,
}

impl Script {
    /// All statements, for the simple protocol.
    pub fn sql(&self) -> String {
        self.statements.join(";\n")
    }
}

impl Generator {
    /// The next script.
    pub fn script(&mut self) -> Script {
        self.begin();
        let (way, statements) = match self.random.weighted(&[600, 40, 40, 80, 40, 40, 160]) {
            0 => (Way::Query, vec![self.top()]),
            1 => (Way::Copy, vec![format!("COPY ({}) TO STDOUT", self.top())]),
            2 => (Way::Copy, vec![self.copy_relation()]),
            3 => (Way::Prepared, self.prepared()),
            4 => (Way::Cursor, self.cursor()),
            5 => (Way::Locking, vec![self.locking()]),
            _ => (Way::Changes, self.changes()),
        };
        Script { way, statements }
    }

    fn top(&mut self) -> String {
        self.sub_select(0, &[]).0
    }

    /// COPY of a table by name, which does not use the planner.
    fn copy_relation(&mut self) -> String {
        let name = self.random.pick(RELATIONS);
        let columns = self
            .random
            .pick(&["", "", " (id, val)", " (txt, _ts, flag)"]);
        let format = self.random.pick(&[
            "",
            " (FORMAT csv)",
            " (FORMAT csv, HEADER, FORCE_QUOTE *)",
            " (NULL 'none')",
        ]);
        format!("COPY {name}{columns} TO STDOUT{format}")
    }

    fn prepared(&mut self) -> Vec<String> {
        self.parameters = true;
        let query = self.top();
        self.parameters = false;
        let mut script = vec![format!(
            "PREPARE prepared (integer, integer, integer) AS {query}"
        )];
        for _ in 0..self.random.weighted(&[0, 1, 1]) {
            let numbers: Vec<String> = (0..3)
                .map(|_| self.random.between(-2, 70).to_string())
                .collect();
            script.push(format!("EXECUTE prepared ({})", numbers.join(", ")));
        }
        script.push("DEALLOCATE prepared".to_owned());
        script
    }

    fn cursor(&mut self) -> Vec<String> {
        if self.random.chance(0.3) {
            return self.current_of();
        }
        let query = self.top();
        let scroll = self.random.pick(&["SCROLL", "NO SCROLL", ""]);
        let mut script = vec![
            "BEGIN".to_owned(),
            format!("DECLARE cur {scroll} CURSOR FOR {query}"),
            format!("FETCH {} FROM cur", self.random.between(1, 20)),
            "FETCH ALL FROM cur".to_owned(),
        ];
        if scroll == "SCROLL" {
            script.push("FETCH BACKWARD ALL FROM cur".to_owned());
        }
        script.push("COMMIT".to_owned());
        script
    }

    fn current_of(&mut self) -> Vec<String> {
        let name = self.random.pick(KEYED);
        let change = self
            .random
            .pick(&["UPDATE {t} SET val = 7777", "DELETE FROM {t}"])
            .replace("{t}", name);
        vec![
            "BEGIN".to_owned(),
            format!("DECLARE cur CURSOR FOR SELECT id FROM {name} ORDER BY id FOR UPDATE"),
            format!("FETCH {} FROM cur", self.random.between(1, 9)),
            format!("{change} WHERE CURRENT OF cur RETURNING id"),
            "FETCH ALL FROM cur".to_owned(),
            // Delete the rows that the change made expire.
            "SELECT sweep()".to_owned(),
            format!("SELECT id, val FROM {name}"),
            "ROLLBACK".to_owned(),
        ]
    }

    fn locking(&mut self) -> String {
        let (from, scope, mut conditions) = self.from(1);
        conditions.push(self.condition(&scope, 1));
        let list: Vec<&str> = scope.iter().take(6).map(|c| c.sql.as_str()).collect();
        let lock = self
            .random
            .pick(&["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"]);
        let wait = self.random.pick(&["", " NOWAIT", " SKIP LOCKED"]);
        format!(
            "SELECT {} FROM {from} WHERE {} FOR {lock}{wait}",
            list.join(", "),
            conditions.join(" AND ")
        )
    }
}
