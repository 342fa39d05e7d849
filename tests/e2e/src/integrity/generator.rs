//! Random steps of a sequence.

use super::schema::{Schema, Table};
use crate::diff::Random;

/// How a statement is sent, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By the simple protocol.
    Simple,
    /// By the extended protocol.
    Extended,
    /// With `ttl.preserve_ts`, so that rows become as old as it says.
    Preserving,
    /// COPY FROM; the rows come after the first line.
    Copy,
    /// To the tables with TTL only: they have nothing to do on the others.
    Policy,
}

/// One statement.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) way: Way,
    pub(super) sql: String,
    /// Left out while a transaction is open.
    pub(super) alone: bool,
}

impl Step {
    pub(super) fn new(way: Way, sql: impl Into<String>) -> Step {
        let (sql, alone) = (sql.into(), false);
        Step { way, sql, alone }
    }
}

/// What the sequence being generated is about.
pub(super) struct Generator<'a> {
    pub(super) random: &'a mut Random,
    pub(super) schema: &'a Schema,
    /// Wild: not restricted to statements that can be compared.
    pub(super) wild: bool,
    open: bool,
    saved: bool,
    /// The step of those that fill the tables.
    filling: Option<usize>,
}

/// The first steps fill the tables, the referenced ones first.
const FILLING: usize = 8;

impl<'a> Generator<'a> {
    pub(super) fn new(random: &'a mut Random, schema: &'a Schema, wild: bool) -> Generator<'a> {
        Generator {
            random,
            schema,
            wild,
            open: false,
            saved: false,
            filling: None,
        }
    }

    /// A whole sequence.
    pub(super) fn sequence(mut self) -> Vec<Step> {
        let length = self.random.between(14, 30) as usize;
        let mut steps: Vec<Step> = Vec::new();
        for number in 0..length {
            self.filling = (number < FILLING).then_some(number);
            steps.extend(self.next());
        }
        steps.push(Step::new(Way::Simple, "COMMIT"));
        steps
    }

    fn next(&mut self) -> Vec<Step> {
        let weights: &[u32] = if self.filling.is_some() {
            &[0, 50, 10, 5, 0, 0, 0, 15, 20, 25, 0]
        } else {
            &[20, 20, 16, 22, 9, 7, 4, 4, 16, 10, 4]
        };
        let sql = match self.random.weighted(weights) {
            0 => return vec![Step::new(Way::Simple, self.control())],
            1 => self.insert(),
            2 => self.upsert(),
            3 => self.update(),
            4 => self.delete(),
            5 => self.merge(),
            6 => self.replace_in_with(),
            7 => return vec![Step::new(Way::Copy, self.copy())],
            8 => return self.expire(),
            9 => return self.insert_expired(),
            _ => return self.policy(),
        };
        let extended = self.random.chance(0.25);
        let way = if extended { Way::Extended } else { Way::Simple };
        vec![Step::new(way, sql)]
    }

    fn control(&mut self) -> String {
        if !self.open {
            self.open = true;
            let level = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
                [self.random.weighted(&[4, 1, u32::from(self.wild)])];
            return format!("BEGIN ISOLATION LEVEL {level}");
        }
        let choice = self
            .random
            .weighted(&[7, 2, 4, if self.saved { 3 } else { 0 }, 3]);
        self.open = choice > 1;
        self.saved = self.open && (self.saved || choice == 2);
        match choice {
            0 => "COMMIT".to_owned(),
            1 => "ROLLBACK".to_owned(),
            2 => "SAVEPOINT s".to_owned(),
            3 => "ROLLBACK TO s".to_owned(),
            _ => format!(
                "SET CONSTRAINTS ALL {}",
                self.random.pick(&["DEFERRED", "IMMEDIATE", "IMMEDIATE"])
            ),
        }
    }

    /// One of the tables, by its number.
    pub(super) fn table(&mut self) -> usize {
        let count = self.schema.tables.len();
        match self.filling {
            Some(step) => step * count / FILLING,
            None => self.random.between(0, count as i64 - 1) as usize,
        }
    }

    /// The table as a statement names it: now and then one of its partitions.
    pub(super) fn name(&mut self, table: usize) -> String {
        let Table {
            name, partitioned, ..
        } = self.schema.tables[table];
        if partitioned && self.random.chance(0.15) {
            return format!("{name}_{}", self.random.between(1, 3));
        }
        name.to_owned()
    }

    /// Changes of policy. Expired rows stay hidden, whatever they do (C10); compared sequences have
    /// them in pairs, which change nothing.
    fn policy(&mut self) -> Vec<Step> {
        let expiring: Vec<_> = self.schema.expiring().collect();
        let table = self.random.pick(&expiring);
        let name = table.name;
        let step = |sql: String| Step {
            way: Way::Policy,
            sql,
            alone: true,
        };
        let enable = table.enable().trim_end_matches(';').to_owned();
        match self.random.weighted(&[4, 2, 2, 1]) {
            0 => vec![step(format!("SELECT ttl.purge('{name}')"))],
            _ if self.wild => {
                let number = self.random.pick(&["NULL", "-1", "60", "3600", "200000"]);
                let mut change = step(match self.random.chance(0.2) {
                    true => format!("SELECT ttl.disable('{name}')"),
                    false => table.set_default(number),
                });
                change.alone = self.random.chance(0.8);
                vec![change]
            }
            1 => vec![step(table.set_default("200000")), step(enable)],
            2 => vec![step(table.set_default("NULL")), step(enable)],
            _ => vec![step(format!("SELECT ttl.disable('{name}')")), step(enable)],
        }
    }
}
