//! Which queries enforce referential integrity.
//!
//! PostgreSQL writes these queries itself (ri_triggers.c) and plans them like a user's. If a
//! cascade, a SET NULL or a NO ACTION check did not see expired rows, it would leave orphans: so
//! they see every row, and the expired ones that do not count are removed before they run
//! (`deletion/referring.rs`). They are recognised: by who runs them, where, and what they ask, which is
//! compared with the foreign keys of the table; anything else is a user's statement
//! (`docs/decisions/0022-foreign-key-queries-by-who-runs-them.md`). The look-up of the
//! referenced row hides expired rows like a user's, so that a new child of an expired parent is
//! refused.

use crate::pg::abi::variable::ByOid;
use crate::pg::catalog::foreign_key::{self, ForeignKey};
use crate::pg::catalog::{self, roles};
use crate::pg::plan::foreign_key_query::{self, Selects, TableQuery, Work};
use crate::pg::plan::planner_input::QueryTree;
use crate::pg::session::scoped::Scoped;
use crate::store::extension;
use pgrx::pg_sys;
use rustc_hash::FxHashMap;

/// What a query is to referential integrity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Referential {
    /// None of PostgreSQL's own queries, or one that expired rows are hidden from.
    No,
    /// A query that keeps tables consistent on disk: a check or action on the referencing side,
    /// validation in ALTER TABLE. It sees every row of these tables, and not of others that a
    /// rule may bring into it.
    Physical([pg_sys::Oid; 2]),
}

impl Referential {
    pub(crate) fn sees_every_row_of(self, relid: pg_sys::Oid) -> bool {
        matches!(self, Self::Physical(tables) if tables.contains(&relid))
    }
}

/// The circumstances in which a query is planned.
#[derive(Clone, Copy)]
pub(crate) struct Circumstances {
    /// In the security context of referential triggers; users' triggers inside a cascade share
    /// it.
    pub(crate) enforcing: bool,
    /// The ALTER TABLE that is running; functions in its expressions share it.
    pub(crate) ddl: Option<ConstraintDdl>,
}

/// What such a query does with the rows that refer to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Looks whether there is one: NO ACTION and RESTRICT.
    Check,
    /// Deletes them: the cascade of a DELETE.
    Delete,
    /// Changes them: SET NULL, SET DEFAULT, the cascade of an UPDATE.
    Update,
}

/// An action or check, as it has been recognised.
#[derive(Debug, Clone, Copy)]
struct Recognised {
    constraint: pg_sys::Oid,
    action: Action,
    /// How many parameters come before the referenced key.
    first: usize,
}

/// What has been recognised, by referencing table and text. A query that runs is known by that: its plan does not
/// tell what it was made of. Kept as long as PostgreSQL keeps the plans, for the session; only the tables' owners
/// get here.
static RECOGNISED: ByOid<FxHashMap<Vec<u8>, Recognised>> = ByOid::empty();

/// A query by which PostgreSQL enforces a foreign key on its referencing table, for one
/// referenced row that goes or gets another key.
#[derive(Debug)]
pub(crate) struct Enforced {
    pub(crate) action: Action,
    pub(crate) referenced: pg_sys::Oid,
    /// How many parameters come before the referenced key.
    pub(crate) first: usize,
    pub(crate) referencing: Vec<i16>,
    /// The referencing table, in FROM.
    from: Vec<u8>,
    /// "The row refers to the key `$1, …`", in SQL.
    refers: Vec<u8>,
}

impl Enforced {
    /// How many columns the key has.
    pub(crate) fn columns(&self) -> usize {
        self.referencing.len()
    }

    /// Deletes the rows of the referencing table, or of a partition of it, that refer to the key `$1, …` and
    /// meet the condition.
    pub(crate) fn deletion(&self, partition: Option<pg_sys::Oid>, condition: &str) -> Vec<u8> {
        [b"DELETE FROM ", &self.rows(partition, condition)[..]].concat()
    }

    /// Selects one of these rows.
    pub(crate) fn search(&self, partition: Option<pg_sys::Oid>, condition: &str) -> Vec<u8> {
        one_of(&self.rows(partition, condition))
    }

    fn rows(&self, partition: Option<pg_sys::Oid>, condition: &str) -> Vec<u8> {
        let partition = partition.map(foreign_key::from);
        let from = partition.as_ref().unwrap_or(&self.from);
        rows(from, &self.refers, condition)
    }
}

fn rows(from: &[u8], refers: &[u8], condition: &str) -> Vec<u8> {
    [from, b" WHERE ", refers, b" AND ", condition.as_bytes()].concat()
}

fn one_of(rows: &[u8]) -> Vec<u8> {
    [b"SELECT 1 FROM ", rows, b" LIMIT 1"].concat()
}

/// "The row refers to the key `$1, …`", in SQL.
fn refers(key: &ForeignKey) -> Vec<u8> {
    key.refers(b"", |at, _| format!("${}", at + 1).into_bytes())
}

/// Selects one row that refers by this foreign key to the key `$1, …` and meets the condition.
pub(crate) fn search(key: &ForeignKey, condition: &str) -> Vec<u8> {
    let from = foreign_key::from(key.referencing);
    one_of(&rows(&from, &refers(key), condition))
}

/// "A row refers by this foreign key to the one of the table that is called `outer`", in SQL.
pub(crate) fn referring(key: &ForeignKey, outer: &[u8]) -> Vec<u8> {
    let inner: &[u8] = if outer == b"x" { b"y" } else { b"x" };
    let from = foreign_key::from(key.referencing);
    let refers = key.refers(&[inner, b"."].concat(), |_, column| {
        [outer, b".", column].concat()
    });
    [
        b"EXISTS (SELECT 1 FROM ",
        &from[..],
        b" ",
        inner,
        b" WHERE ",
        &refers,
        b")",
    ]
    .concat()
}

/// Whether a row cannot be deleted while another refers to it by this foreign key.
pub(crate) fn keeps_referenced(key: &ForeignKey) -> bool {
    matches!(key.on_delete, b'a' | b'r') && !key.has_period
}

/// What a query that is about to run on this table, its first, enforces; within the security
/// context of referential triggers.
pub(crate) fn running(query: &[u8], relid: pg_sys::Oid) -> Option<Enforced> {
    let found = RECOGNISED.with_borrow(|all| all.get(&relid)?.get(query).copied())?;
    let is_of = |key: &ForeignKey| key.referencing == relid && is_run_by_owner_of(relid);
    let key = foreign_key::get(found.constraint).filter(is_of)?;
    Some(Enforced {
        action: found.action,
        referenced: key.referenced,
        first: found.first,
        referencing: key.referencing_columns().collect(),
        from: foreign_key::from(relid),
        refers: refers(&key),
    })
}

/// Classifies a query by its tree; the text is what it is known by when it runs.
pub(crate) fn classify(
    tree: QueryTree<'_>,
    query: &[u8],
    circumstances: Circumstances,
) -> Referential {
    let Circumstances { enforcing, ddl } = circumstances;
    if !extension::is_present() {
        return Referential::No;
    }
    if let Some(table) = enforcing.then(|| TableQuery::of(tree)).flatten() {
        let relid = table.relid;
        let recognised = is_run_by_owner_of(relid)
            && (acts_or_checks(&table, query) || ddl.is_some_and(|ddl| looks_up(&table, ddl)));
        if recognised {
            return Referential::Physical([relid; 2]);
        }
    } else if let Some(ddl) = ddl.filter(|ddl| ddl.user == roles::current_user())
        && let Some(tables) = foreign_key_query::two_tables(tree)
        && validates(tree, tables, ddl)
    {
        return Referential::Physical(tables);
    }
    Referential::No
}

/// PostgreSQL runs its query as the owner of the table.
fn is_run_by_owner_of(relid: pg_sys::Oid) -> bool {
    catalog::class(relid).is_some_and(|class| class.owner == roles::current_user())
}

/// Whether the query, run by the owner of its table, is the action or check of one of that table's foreign keys, or looks for a row that
/// one refers to.
pub(crate) fn is_of_foreign_key(tree: QueryTree<'_>, text: &[u8]) -> bool {
    TableQuery::of(tree).is_some_and(|table| {
        is_run_by_owner_of(table.relid) && (acts_or_checks(&table, text) || looks_for(&table))
    })
}

/// Whether it looks for a row that a foreign key refers to: by the foreign key's operators, or, where PostgreSQL looks whether another row has
/// taken the key, by those of the referenced columns' types, and with PERIOD by more; then it may call no function that a user has made.
fn looks_for(query: &TableQuery) -> bool {
    matches!(query.work, Work::Lock)
        && foreign_keys(&foreign_key::of_referenced(query.relid))
            .any(|key| query.looks_up(&key) || !query.calls_users_code())
}

/// Whether it is the action or check of one of the table's foreign keys, which is noted.
fn acts_or_checks(query: &TableQuery, text: &[u8]) -> bool {
    let mut constraints = foreign_key::of_referencing(query.relid).into_iter();
    let recognised = constraints.find_map(|constraint| {
        let key = foreign_key::get(constraint)?;
        Some(Recognised {
            constraint,
            action: action(&query.work, &key)?,
            first: query.key_referred_to(&key)?,
        })
    });
    let Some(recognised) = recognised else {
        return false;
    };
    RECOGNISED.with_borrow_mut(|all| {
        let of_table = all.entry(query.relid).or_default();
        of_table.insert(text.to_vec(), recognised);
    });
    true
}

/// What work of this kind is to the foreign key, if it is its action or check.
fn action(work: &Work, key: &ForeignKey) -> Option<Action> {
    match work {
        Work::Delete => (key.on_delete == b'c').then_some(Action::Delete),
        Work::Update(columns) => {
            let is_key = |column| key.referencing_columns().any(|own| own == column);
            let changes =
                matches!(key.on_delete, b'n' | b'd') || matches!(key.on_update, b'c' | b'n' | b'd');
            let are_keys = columns.iter().copied().all(is_key);
            (changes && are_keys).then_some(Action::Update)
        }
        Work::Lock => Some(Action::Check),
    }
}

/// Whether it looks up, one by one, rows that a table of the ALTER TABLE references: validation
/// where its user may not read both tables.
fn looks_up(query: &TableQuery, ddl: ConstraintDdl) -> bool {
    matches!(query.work, Work::Lock)
        && foreign_keys(&foreign_key::of_referenced(query.relid))
            .any(|key| query.looks_up(&key) && concerns(ddl, &key))
}

/// Whether an ALTER TABLE is running that may look up rows of the table, one by one, to validate a
/// foreign key; it must see all of them.
#[cfg(since19)]
pub(crate) fn is_validated_by_ddl(relid: pg_sys::Oid) -> bool {
    CONSTRAINT_DDL.current().is_some_and(|ddl| {
        foreign_keys(&foreign_key::of_referenced(relid)).any(|key| concerns(ddl, &key))
    })
}

/// Whether it validates a foreign key of the ALTER TABLE's table, or looks whether a partition may leave. It is run
/// by the user of that statement, and one of the tables may be another's: so it must ask nothing else. What validation
/// selects, rows that refer to none, is only for the owner of the referencing table.
fn validates(query: QueryTree<'_>, tables: [pg_sys::Oid; 2], ddl: ConstraintDdl) -> bool {
    let [referencing, referenced] = tables;
    let leaves = ddl.tables[1] == Some(referenced);
    let is_owner = roles::owns_relation(referencing, roles::current_user());
    foreign_keys(&foreign_key::of_referencing(referencing)).any(|key| {
        let selects = |what| foreign_key_query::selects(query, &key, what);
        key.referenced == referenced
            && concerns(ddl, &key)
            && (is_owner && selects(Selects::Violations) || leaves && selects(Selects::References))
    })
}

fn foreign_keys(constraints: &[pg_sys::Oid]) -> impl Iterator<Item = ForeignKey> {
    constraints.iter().copied().filter_map(foreign_key::get)
}

/// Whether the ALTER TABLE concerns one of the foreign key's tables: the table itself, an
/// ancestor or descendant, or its type.
fn concerns(ddl: ConstraintDdl, key: &ForeignKey) -> bool {
    let altered = || ddl.tables.into_iter().flatten();
    let is_one_of = |relid| altered().any(|table| table == relid);
    [key.referencing, key.referenced].into_iter().any(|relid| {
        is_one_of(relid)
            || catalog::ancestors(relid).into_iter().any(is_one_of)
            || foreign_key::type_of_table(relid).is_some_and(is_one_of)
            || altered().any(|table| catalog::ancestors(table).contains(&relid))
    })
}

/// A running ALTER TABLE that may validate foreign keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintDdl {
    /// Who runs it.
    pub(crate) user: pg_sys::Oid,
    /// The table, and the partition that is attached or detached.
    pub(crate) tables: [Option<pg_sys::Oid>; 2],
}

/// Those that are running.
pub(crate) static CONSTRAINT_DDL: Scoped<ConstraintDdl> = Scoped::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_of_the_foreign_key_are_seen_whole() {
        let [child, parent, other] = [1, 2, 3].map(pg_sys::Oid::from);
        let validation = Referential::Physical([child, parent]);
        assert!(validation.sees_every_row_of(child) && validation.sees_every_row_of(parent));
        assert!(!validation.sees_every_row_of(other));
        let check = Referential::Physical([child; 2]);
        assert!(check.sees_every_row_of(child) && !check.sees_every_row_of(parent));
    }
}
