//! A random schema: one to three tables, each with TTL or not, partitioned or
//! not, and foreign keys between them of every kind.

use crate::diff::Random;

/// The unique or exclusion constraint on the column `k`, beside the primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unique {
    None,
    Plain,
    Include,
    NullsNotDistinct,
    Deferrable,
    Deferred,
    Partial,
    Expression,
    Exclusion,
    DeferredExclusion,
    /// Of a partitioned table: with the partition key, or on one partition only.
    WithId,
    Leaf,
}

impl Unique {
    /// Can a foreign key refer to `k` alone?
    fn is_key(self) -> bool {
        matches!(
            self,
            Unique::Plain | Unique::Include | Unique::NullsNotDistinct
        )
    }

    /// Is it checked when the transaction ends, or can it be?
    pub(super) fn can_wait(self) -> bool {
        matches!(
            self,
            Unique::Deferrable | Unique::Deferred | Unique::DeferredExclusion
        )
    }

    fn sql(self, table: &str) -> Option<String> {
        let constraint = |what: &str| {
            Some(format!(
                "ALTER TABLE {table} ADD CONSTRAINT {table}_k_key {what}"
            ))
        };
        let index = |what: &str| Some(format!("CREATE UNIQUE INDEX {table}_k_key ON {what}"));
        match self {
            Unique::None => None,
            Unique::Plain => constraint("UNIQUE (k)"),
            Unique::Include => constraint("UNIQUE (k) INCLUDE (val)"),
            Unique::NullsNotDistinct => constraint("UNIQUE NULLS NOT DISTINCT (k)"),
            Unique::Deferrable => constraint("UNIQUE (k) DEFERRABLE"),
            Unique::Deferred => constraint("UNIQUE (k) DEFERRABLE INITIALLY DEFERRED"),
            Unique::Partial => index(&format!("{table} (k) WHERE val > 2")),
            Unique::Expression => index(&format!("{table} ((k % 4))")),
            Unique::Exclusion => constraint("EXCLUDE USING gist (int4range(k, k + 2) WITH &&)"),
            Unique::DeferredExclusion => {
                constraint("EXCLUDE (k WITH =) DEFERRABLE INITIALLY DEFERRED")
            }
            Unique::WithId => constraint("UNIQUE (k, id)"),
            Unique::Leaf => index(&format!("{table}_1 (k)")),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The default, if the table has TTL.
    pub(super) ttl: Option<i32>,
    /// Its rows expire by partial TTL indexes on `_ts`, which is an ordinary column
    /// then; to the same effect as by the default and overrides.
    pub(super) by_index: bool,
    /// Its updates leave a recent `_ts` (C16).
    pub(super) granular: bool,
    /// It has an index for deletion, small as it is.
    indexed: bool,
    /// Workers leave its expired rows on disk (C23), which no statement may notice.
    pub(super) kept: bool,
    /// What is deleted goes to a table beside it (C26).
    archived: bool,
    pub(super) partitioned: bool,
    pub(super) unique: Unique,
}

/// The columns of every table that statements write, beside `_ts` and `ttl`.
pub(super) const COLUMNS: &str = "id, k, val, pid, up";

impl Table {
    /// What turns its TTL on, or sets it as it was.
    pub(super) fn enable(&self) -> String {
        let (name, ttl) = (self.name, self.ttl.unwrap_or(-1));
        let options = self.options();
        if !self.by_index {
            // Half of the shortest default and override that a sequence sets.
            let granularity = if self.granular { 30 } else { 0 };
            let index = if self.indexed { "btree" } else { "auto" };
            return format!(
                "SELECT ttl.enable('{name}', {ttl}, ts_granularity => {granularity}, index => '{index}'); {options}"
            );
        }
        format!(
            "SELECT ttl.expire_index('{name}_by_default', {ttl}), ttl.expire_index('{name}_by_override', 60); {options}"
        )
    }

    fn options(&self) -> String {
        let name = self.name;
        let mut options = String::new();
        if self.kept {
            options += &format!("SELECT ttl.set_option('{name}', 'keep_expired', '1 day');");
        }
        if self.archived {
            options += &format!(
                "CREATE TABLE IF NOT EXISTS {name}_gone (LIKE {name}); \
                 SELECT ttl.archive_to('{name}', '{name}_gone');"
            );
        }
        options
    }

    /// What TTL indexes need beforehand: C1 is the application's own business.
    pub(super) fn prepare(&self) -> String {
        if !self.by_index {
            return String::new();
        }
        let name = self.name;
        format!(
            "CREATE INDEX {name}_by_default ON {name} (_ts) WHERE ttl IS NULL;
             CREATE INDEX {name}_by_override ON {name} (_ts DESC) WHERE ttl = 60 OR ttl = 61;
             CREATE TRIGGER stamp BEFORE UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION public.stamp();\n"
        )
    }

    /// What changes its default to so many seconds.
    pub(super) fn set_default(&self, seconds: &str) -> String {
        let name = self.name;
        match seconds {
            "-1" if self.by_index => {
                format!("SELECT ttl.expire_index('{name}_by_override', 200000)")
            }
            "NULL" => format!("SELECT ttl.set_default('{name}', NULL)"),
            _ if self.by_index => {
                format!("SELECT ttl.expire_index('{name}_by_default', {seconds})")
            }
            _ => format!("SELECT ttl.set_default('{name}', {seconds})"),
        }
    }

    fn sql(&self) -> String {
        let name = self.name;
        let columns = "id integer PRIMARY KEY, k integer, val integer, pid integer DEFAULT 1, \
                       up integer DEFAULT 2, _ts timestamptz NOT NULL DEFAULT now(), ttl integer";
        if !self.partitioned {
            return format!("CREATE TABLE {name} ({columns});");
        }
        // One partition has its columns in another order, and has lost one.
        format!(
            "CREATE TABLE {name} ({columns}) PARTITION BY RANGE (id);
             CREATE TABLE {name}_1 (gone text, ttl integer, up integer DEFAULT 2, id integer NOT NULL,
                 _ts timestamptz NOT NULL DEFAULT now(), val integer, pid integer DEFAULT 1, k integer);
             ALTER TABLE {name}_1 DROP COLUMN gone;
             ALTER TABLE {name} ATTACH PARTITION {name}_1 FOR VALUES FROM (MINVALUE) TO (4);
             CREATE TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM (4) TO (7);
             CREATE TABLE {name}_3 PARTITION OF {name} DEFAULT;"
        )
    }
}

/// `child.column` refers to `parent.target`.
#[derive(Debug, Clone)]
pub(super) struct ForeignKey {
    pub(super) child: usize,
    pub(super) column: &'static str,
    pub(super) parent: usize,
    pub(super) target: &'static str,
    pub(super) deferrable: bool,
    clauses: String,
}

impl ForeignKey {
    /// Whether an action of the foreign key makes rows refer to the column's default.
    pub(super) fn sets_default(&self) -> bool {
        self.clauses.contains("SET DEFAULT")
    }
}

#[derive(Debug, Clone)]
pub(super) struct Schema {
    pub(super) tables: Vec<Table>,
    pub(super) keys: Vec<ForeignKey>,
    /// TTL is turned on after the constraints are there, or before.
    late: bool,
}

const ACTIONS: &[&str] = &[
    "NO ACTION",
    "RESTRICT",
    "CASCADE",
    "SET NULL",
    "SET DEFAULT",
];

impl Schema {
    pub(super) fn random(random: &mut Random) -> Schema {
        let count = [1, 2, 2, 3][random.weighted(&[1, 1, 1, 1])];
        let mut tables: Vec<Table> = ["p", "c", "g"][..count]
            .iter()
            .map(|name| Schema::table(name, random))
            .collect();
        if tables.iter().all(|table| table.ttl.is_none()) {
            let at = random.between(0, count as i64 - 1) as usize;
            tables[at].ttl = Some(3600);
        }
        for table in &mut tables {
            table.by_index = table.ttl == Some(3600) && random.chance(0.4);
        }
        let mut schema = Schema {
            tables,
            keys: Vec::new(),
            late: random.chance(0.5),
        };
        for child in 1..count {
            schema.refer(child, "pid", child - 1, random);
            if random.chance(0.3) {
                let parent = random.between(0, child as i64 - 1) as usize;
                schema.refer(child, "up", parent, random);
            }
        }
        let at = random.between(0, count as i64 - 1) as usize;
        let is_free = !schema
            .keys
            .iter()
            .any(|k| k.child == at && k.column == "up");
        if is_free && random.chance(if count == 1 { 0.6 } else { 0.3 }) {
            schema.refer(at, "up", at, random);
        }
        schema
    }

    fn table(name: &'static str, random: &mut Random) -> Table {
        use Unique::{
            Deferrable, Deferred, DeferredExclusion, Exclusion, Expression, Include, Leaf,
            NullsNotDistinct, Partial, Plain, WithId,
        };
        let partitioned = random.chance(0.3);
        Table {
            name,
            ttl: random.pick(&[Some(3600), Some(3600), Some(3600), Some(-1), None]),
            by_index: false,
            granular: random.chance(0.3),
            indexed: random.chance(0.5),
            kept: random.chance(0.2),
            archived: random.chance(0.2),
            partitioned,
            unique: if partitioned {
                random.pick(&[Unique::None, Unique::None, WithId, Leaf])
            } else {
                random.pick(&[
                    Unique::None,
                    Plain,
                    Plain,
                    Plain,
                    Include,
                    NullsNotDistinct,
                    Deferrable,
                    Deferred,
                    Partial,
                    Expression,
                    Exclusion,
                    DeferredExclusion,
                ])
            },
        }
    }

    fn refer(&mut self, child: usize, column: &'static str, parent: usize, random: &mut Random) {
        let target = match self.tables[parent].unique.is_key() && random.chance(0.35) {
            true => "k",
            false => "id",
        };
        let deferral = random.pick(&[
            "",
            "",
            "",
            " DEFERRABLE",
            " DEFERRABLE INITIALLY DEFERRED",
            " DEFERRABLE INITIALLY DEFERRED",
        ]);
        self.keys.push(ForeignKey {
            child,
            column,
            parent,
            target,
            deferrable: !deferral.is_empty(),
            clauses: format!(
                "ON DELETE {} ON UPDATE {}{deferral}",
                random.pick(ACTIONS),
                random.pick(ACTIONS)
            ),
        });
    }

    /// Can a constraint be checked after the statement that writes the rows, be it
    /// that of a later statement which does not touch the key?
    pub(super) fn can_wait(&self, table: usize) -> bool {
        let waits = |key: &ForeignKey| key.deferrable || key.parent == table;
        self.tables[table].unique.can_wait()
            || self.keys.iter().any(|k| k.child == table && waits(k))
    }

    /// The foreign key of this name, or whose part on a partition has it, such as
    /// `c_pid_2` or `c_pid_fkey`.
    pub(super) fn key(&self, constraint: &str) -> Option<&ForeignKey> {
        let is_it = |key: &&ForeignKey| {
            let rest = constraint.strip_prefix(&self.name_of(key));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        self.keys.iter().find(is_it)
    }

    fn name_of(&self, key: &ForeignKey) -> String {
        format!("{}_{}", self.tables[key.child].name, key.column)
    }

    /// The tables that have TTL.
    pub(super) fn expiring(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| table.ttl.is_some())
    }

    /// What makes the tables, in the schema that comes first in `search_path`.
    /// `on` turns their TTL on; constraints come before or after it.
    pub(super) fn sql(&self, on: impl Fn(&Table) -> String) -> String {
        let mut script: Vec<String> = self.tables.iter().map(Table::sql).collect();
        let enable: Vec<_> = self.expiring().map(on).collect();
        if !self.late {
            script.extend(enable.iter().cloned());
        }
        let unique = |table: &Table| table.unique.sql(table.name);
        script.extend(self.tables.iter().filter_map(unique).map(|sql| sql + ";"));
        script.extend(self.keys.iter().map(|key| {
            format!(
                "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}) {};",
                self.tables[key.child].name,
                self.name_of(key),
                key.column,
                self.tables[key.parent].name,
                key.target,
                key.clauses
            )
        }));
        if self.late {
            script.extend(enable);
        }
        script.join("\n")
    }
}
