//! Code of a table's owner that runs when rows of the table are deleted or changed.
//!
//! Read from the catalogs, as stored: nothing of it runs. What is not known to be harmless counts as code
//! (`docs/decisions/0096-owners-code-in-owners-sessions.md`).

use super::functions_used::{self, unknown};
use super::syntax::{ExpressionPart, Node};
use super::triggers::{self, Trigger};
use super::{constraints, defaults, index_entry, rows};
use crate::pg::abi::encoding;
use crate::pg::catalog;
use pgrx::pg_sys::{self, Oid};

/// What happens to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Deletion,
    /// These columns get other values, perhaps their defaults.
    Update(&'a [i16]),
}

/// What runs, each as it is called in a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    /// As soon as a query on the table is planned.
    pub(crate) planning: Option<String>,
    /// With each statement that changes rows, even if it meets none.
    pub(crate) statements: Option<String>,
    /// With each row.
    pub(crate) rows: Option<String>,
}

impl Code {
    /// Whether anything runs.
    pub(crate) fn is_any(&self) -> bool {
        [&self.planning, &self.statements, &self.rows]
            .into_iter()
            .any(Option::is_some)
    }
}

/// The code of a table, its partitions included if it is partitioned.
pub(crate) fn of(relid: Oid, change: Change<'_>) -> Code {
    let mut found = Code {
        planning: at_planning(relid),
        ..Code::default()
    };
    let events = match change {
        Change::Deletion => pg_sys::TRIGGER_TYPE_DELETE,
        Change::Update(_) if is_partitioned(relid) => {
            // A row may move to another partition, which deletes and inserts it.
            pg_sys::TRIGGER_TYPE_UPDATE | pg_sys::TRIGGER_TYPE_DELETE | pg_sys::TRIGGER_TYPE_INSERT
        }
        Change::Update(_) => pg_sys::TRIGGER_TYPE_UPDATE,
    };
    for table in with_partitions(relid) {
        pgrx::check_for_interrupts!();
        let triggers = triggers::of(table);
        let trigger = |for_row| {
            let mut all = triggers.iter();
            let fires = |trigger: &&Trigger| trigger.runs_code(events, for_row);
            all.find(fires).map(|trigger| trigger.shown())
        };
        found.statements = found.statements.or_else(|| trigger(false));
        found.rows = found.rows.or_else(|| trigger(true));
        if let Change::Update(columns) = change {
            found.rows = found.rows.or_else(|| of_new_rows(table, columns));
        }
    }
    found
}

/// What runs as soon as a query on the table is planned: a rule that comes into it, and what
/// PostgreSQL computes beforehand of expressions in indexes, statistics, partition keys and constraints (constraint
/// exclusion), those of partitions and of ancestors included; and the cast of a foreign key's column to the
/// type of the referenced one.
pub(crate) fn at_planning(relid: Oid) -> Option<String> {
    let tables = with_partitions(relid);
    for &table in &tables {
        pgrx::check_for_interrupts!();
        if catalog::has_rules(table) {
            return Some("a rule".to_owned());
        }
        let of_index = index_entry::find(table, |entry| {
            let trees = [entry.predicate(), entry.expressions()];
            let function = trees.into_iter().flatten().find_map(unknown)?;
            let index = catalog::relation_name(entry.indexrelid);
            Some(format!("{function}, in index {index},"))
        });
        let of_constraint = || {
            let all = constraints::of(table);
            let calls = all
                .iter()
                .find(|it| it.tree(|tree| unknown(tree).is_some()) == Some(true));
            calls.map(|it| format!("constraint {}", it.name))
        };
        // SET DEFAULT, and generated columns that are computed when they are read.
        let of_default = || {
            defaults::find(table, |attno, _, tree| {
                unknown(tree).map(|_| of_column(table, attno))
            })
        };
        let found = of_index.or_else(of_constraint).or_else(of_default);
        if found.is_some() {
            return found;
        }
    }
    let below = tables.iter().copied();
    let all = below.chain(catalog::ancestors(relid));
    let all: Vec<String> = all.map(|table| table.to_u32().to_string()).collect();
    let query = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext \
                         WHERE stxrelid OPERATOR(pg_catalog.=) ANY ('{{{0}}}'::pg_catalog.oid[]) AND stxexprs IS NOT NULL) \
             OR EXISTS (SELECT FROM pg_catalog.pg_partitioned_table \
                         WHERE partrelid OPERATOR(pg_catalog.=) ANY ('{{{0}}}'::pg_catalog.oid[]) AND partexprs IS NOT NULL)",
        all.join(",")
    );
    let computes = encoding::first_bool(&query).ok().flatten();
    if computes.unwrap_or(true) {
        return Some("an expression of statistics or of a partition key".to_owned());
    }
    // A cast to the referenced column's type may be any function of the type's owner.
    let query = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint AS c \
           JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) c.conrelid \
            AND a.attnum OPERATOR(pg_catalog.=) ANY (c.conkey) \
           JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) a.atttypid \
          WHERE c.conrelid OPERATOR(pg_catalog.=) ANY ('{{{}}}'::pg_catalog.oid[]) \
            AND c.contype OPERATOR(pg_catalog.=) 'f' AND t.oid OPERATOR(pg_catalog.>=) {}::pg_catalog.oid \
            AND (t.typtype OPERATOR(pg_catalog.<>) 'b' OR t.typelem OPERATOR(pg_catalog.<>) 0::pg_catalog.oid))",
        all.join(","),
        pg_sys::FirstNormalObjectId
    );
    let casts = encoding::first_bool(&query).ok().flatten();
    casts
        .unwrap_or(true)
        .then(|| "the cast of a foreign key's column".to_owned())
}

fn column_type(relid: Oid, attno: i16) -> Oid {
    // SAFETY: looks the column up in the syscache; a missing one is no fault.
    unsafe { pg_sys::get_atttype(relid, attno) }
}

/// Whether rows may move between partitions, or are checked against a partition's bounds.
fn is_partitioned(relid: Oid) -> bool {
    catalog::class(relid).is_some_and(|class| {
        class.is_partition || class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE
    })
}

/// What runs for a row that gets new values: constraints, generated columns, domains, defaults.
fn of_new_rows(table: Oid, columns: &[i16]) -> Option<String> {
    for constraint in constraints::of(table) {
        if constraint.tree(calls_code) == Some(true) {
            return Some(format!("constraint {}", constraint.name));
        }
    }
    let found = defaults::find(table, |attno, generated, tree| {
        let is_computed = generated || columns.contains(&attno);
        (is_computed && calls_code(tree)).then(|| of_column(table, attno))
    });
    // Domains, and types whose functions an index calls, such as ranges.
    let indexed = indexed_columns(table);
    let made = |&&(relid, attno): &&(Oid, i16)| {
        !functions_used::is_type_of_superusers(column_type(relid, attno))
    };
    let written = columns.iter().map(|&attno| (table, attno));
    let all: Vec<(Oid, i16)> = written.chain(indexed).collect();
    found.or_else(|| {
        let &(relid, attno) = all.iter().find(made)?;
        let (table, column) = (
            catalog::relation_name(relid),
            catalog::column_name(relid, attno),
        );
        Some(format!("the type of column {column} of {table}"))
    })
}

fn of_column(table: Oid, attno: i16) -> String {
    format!(
        "the expression of column {}",
        catalog::column_name(table, attno)
    )
}

/// The columns of the table's indexes, each with its index.
fn indexed_columns(table: Oid) -> Vec<(Oid, i16)> {
    let indexes = index_entry::collect(table, |entry| Some((entry.indexrelid, entry.indnkeyatts)));
    let columns = |(index, count)| (1..=count).map(move |attno| (index, attno));
    indexes.into_iter().flat_map(columns).collect()
}

/// Whether an expression calls a function that a user may have made, or one of PostgreSQL's that
/// can run a query.
fn calls_code(tree: Node<'_>) -> bool {
    let immutable = pg_sys::PROVOLATILE_IMMUTABLE.cast_signed();
    unknown(tree).is_some()
        || tree.any(&mut |part| match part {
            ExpressionPart::Node(_) => false,
            ExpressionPart::Function(function) => {
                rows::FUNCTION.get(function, |row| row.provolatile) != Some(immutable)
            }
        })
}

/// The tables on which code can be made that runs for rows of this one, or of its partitions: it, these, and those of which
/// it is a partition.
pub(crate) fn places(relid: Oid) -> Vec<Oid> {
    let mut tables = with_partitions(relid);
    tables.extend(catalog::partitioned_ancestors(relid));
    tables
}

/// The table, and its partitions if it is partitioned.
pub(crate) fn with_partitions(relid: Oid) -> Vec<Oid> {
    match catalog::is_partitioned(relid) {
        true => catalog::all_inheritors(relid),
        false => vec![relid],
    }
}

impl Trigger {
    /// Whether it is a user's, fires at one of the events, and runs code of theirs.
    fn runs_code(&self, events: u32, for_row: bool) -> bool {
        self.fires_at(events)
            && self.is_for_row() == for_row
            && !(self.is_unconditional() && functions_used::is_harmless_trigger(self.function))
    }

    fn shown(&self) -> String {
        let name = encoding::from_bytes(self.name.clone());
        format!("trigger {}", catalog::quote_identifier(&name))
    }
}
