//! Code of a table's owner that runs when rows of the table are deleted or changed.
//!
//! Read from the catalogs, as stored: nothing of it runs.

use super::functions_used::{self, untrusted};
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

/// The code of a table, its partitions included if it is partitioned.
pub(crate) fn of(relid: Oid, change: Change<'_>) -> Code {
    let mut found = Code {
        planning: at_planning(relid),
        ..Code::default()
    };
    for table in with_partitions(relid) {
        pgrx::check_for_interrupts!();
        let triggers = triggers::of(table);
        let trigger = |for_row| {
            let mut all = triggers.iter();
            let fires = |trigger: &&Trigger| trigger.runs_code(change == Change::Deletion, for_row);
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
/// PostgreSQL computes of expressions beforehand.
pub(crate) fn at_planning(relid: Oid) -> Option<String> {
    let mut found = None;
    for table in with_partitions(relid) {
        pgrx::check_for_interrupts!();
        if catalog::class(table).is_some_and(|class| class.has_rules) {
            return Some("a rule".to_owned());
        }
        index_entry::each_of(table, &mut |entry| {
            let trees = [entry.predicate(), entry.expressions()];
            if let Some(function) = trees.into_iter().flatten().find_map(untrusted) {
                let index = catalog::relation_name(entry.indexrelid);
                found = Some(format!("function {function}, in index {index},"));
            }
            found.is_some()
        });
        if found.is_some() {
            return found;
        }
    }
    let query = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext WHERE stxrelid OPERATOR(pg_catalog.=) {0} AND stxexprs IS NOT NULL) \
             OR EXISTS (SELECT FROM pg_catalog.pg_partitioned_table WHERE partrelid OPERATOR(pg_catalog.=) {0} AND partexprs IS NOT NULL)",
        relid.to_u32()
    );
    let computes = encoding::first_bool(&query).ok().flatten();
    computes
        .unwrap_or(true)
        .then(|| "an expression of statistics or of a partition key".to_owned())
}

/// What runs for a row that gets new values: constraints, generated columns, domains, defaults.
fn of_new_rows(table: Oid, columns: &[i16]) -> Option<String> {
    for constraint in constraints::of(table) {
        if constraint.tree(calls_code) == Some(true) {
            return Some(format!("constraint {}", constraint.name));
        }
    }
    let mut found = None;
    defaults::each_of(table, &mut |attno, generated, tree| {
        if (generated || columns.contains(&attno)) && calls_code(tree) {
            found = Some(format!(
                "the expression of column {}",
                catalog::column_name(table, attno)
            ));
        }
        found.is_some()
    });
    let is_domain = |&&attno: &&i16| {
        // SAFETY: syscache look-ups of a column that exists.
        unsafe {
            let of_column = pg_sys::get_atttype(table, attno);
            pg_sys::get_typtype(of_column) as u8 == pg_sys::TYPTYPE_DOMAIN
        }
    };
    let domain = || {
        let attno = *columns.iter().find(is_domain)?;
        Some(format!(
            "the domain of column {}",
            catalog::column_name(table, attno)
        ))
    };
    found.or_else(domain)
}

/// Whether an expression calls a function that a user may have made, or one of PostgreSQL's that
/// can run a query.
fn calls_code(tree: Node<'_>) -> bool {
    let immutable = pg_sys::PROVOLATILE_IMMUTABLE.cast_signed();
    untrusted(tree).is_some()
        || tree.any(&mut |part| match part {
            ExpressionPart::Node(_) => false,
            ExpressionPart::Function(function) => {
                rows::FUNCTION.get(function, |row| row.provolatile) != Some(immutable)
            }
        })
}

fn with_partitions(relid: Oid) -> Vec<Oid> {
    let partitioned = pg_sys::RELKIND_PARTITIONED_TABLE;
    if catalog::class(relid).is_some_and(|class| class.relkind == partitioned) {
        catalog::all_inheritors(relid)
    } else {
        vec![relid]
    }
}

impl Trigger {
    /// Whether it is a user's, and runs code of theirs.
    fn runs_code(&self, deletion: bool, for_row: bool) -> bool {
        let event = if deletion {
            pg_sys::TRIGGER_TYPE_DELETE
        } else {
            pg_sys::TRIGGER_TYPE_UPDATE
        };
        self.fires_at(event)
            && self.is_for_row() == for_row
            && !(self.is_unconditional() && functions_used::is_trusted(self.function))
    }

    fn shown(&self) -> String {
        let name = encoding::from_bytes(self.name.clone());
        format!("trigger {}", catalog::quote_identifier(&name))
    }
}
