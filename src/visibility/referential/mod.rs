//! Which queries enforce referential integrity.
//!
//! PostgreSQL writes these queries itself (ri_triggers.c) and plans them like a user's. If a
//! cascade, a SET NULL or a NO ACTION check did not see expired rows, it would leave orphans: so
//! they see every row, and the expired ones that do not count are removed before they run
//! (`deletion/referring.rs`). They are recognised: by who runs them, for which table, and their exact text, which is
//! written again from the foreign key; anything else is a user's statement
//! (`docs/decisions/0022-foreign-key-queries-by-who-runs-them.md`). The look-up of the
//! referenced row hides expired rows like a user's, so that a new child of an expired parent is
//! refused.

mod text;

use crate::pg::catalog::foreign_key::{self, ForeignKey};
use crate::pg::catalog::{self, roles};
use crate::pg::plan::planner_input::QueryTree;
use crate::store::extension;
#[cfg(since19)]
use crate::visibility::constraint_ddl;
use crate::visibility::constraint_ddl::ConstraintDdl;
use pgrx::pg_sys;

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
    /// Whether it sees every row of the table.
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

/// The kind of query, by its first words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Delete,
    Update,
    Select,
    Join,
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

/// A query by which PostgreSQL enforces a foreign key on its referencing table, for one
/// referenced row that goes or gets another key.
#[derive(Debug)]
pub(crate) struct Enforced {
    pub(crate) action: Action,
    pub(crate) referenced: pg_sys::Oid,
    /// How many parameters come before the referenced key.
    pub(crate) first: usize,
    /// The referencing columns.
    pub(crate) referencing: Vec<i16>,
    key: ForeignKey,
}

impl Enforced {
    /// How many columns the key has.
    pub(crate) fn columns(&self) -> usize {
        self.key.pairs.len()
    }

    /// `DELETE FROM …` of the rows of the referencing table, or of a partition of it, that refer
    /// to the key `$1, …` and meet the condition.
    pub(crate) fn deletion(&self, partition: Option<pg_sys::Oid>, condition: &str) -> Vec<u8> {
        let table = partition.and_then(foreign_key::table);
        let table = table.as_ref().unwrap_or(&self.key.referencing);
        text::deletion(&self.key, table, condition.as_bytes())
    }

    /// Selects one of these rows.
    pub(crate) fn search(&self, partition: Option<pg_sys::Oid>, condition: &str) -> Vec<u8> {
        let table = partition.and_then(foreign_key::table);
        let table = table.as_ref().unwrap_or(&self.key.referencing);
        text::search(&self.key, table, condition.as_bytes())
    }
}

/// Whether a row cannot be deleted while another refers to it by this foreign key.
pub(crate) fn keeps_referenced(key: &ForeignKey) -> bool {
    matches!(key.on_delete, b'a' | b'r') && key.period.is_none()
}

/// "A row refers by this foreign key to the one of the table that is called `outer`", in SQL.
pub(crate) fn referring(key: &ForeignKey, outer: &[u8]) -> Vec<u8> {
    text::referring(key, outer)
}

/// Selects one row that refers by this foreign key to the key `$1, …` and meets the condition.
pub(crate) fn search(key: &ForeignKey, condition: &str) -> Vec<u8> {
    text::search(key, &key.referencing, condition.as_bytes())
}

/// What a query that is about to run on this table, its first, enforces; within the security
/// context of referential triggers.
pub(crate) fn running(query: &[u8], relid: pg_sys::Oid) -> Option<Enforced> {
    let form = form(query, true, false)?;
    (is_run_by_owner_of(relid) && extension::is_present())
        .then(|| enforced(query, form, relid))
        .flatten()
}

/// The form, if PostgreSQL can have written the query in these circumstances; `None` for most
/// queries.
fn form(query: &[u8], enforcing: bool, in_ddl: bool) -> Option<Form> {
    let forms = [
        (&b"DELETE FROM "[..], Form::Delete, enforcing),
        (b"UPDATE ", Form::Update, enforcing),
        (b"SELECT 1 FROM ", Form::Select, enforcing),
        (b"SELECT fk.\"", Form::Join, in_ddl),
    ];
    let mut possible = forms.into_iter().filter(|&(.., possible)| possible);
    possible
        .find(|(words, ..)| query.starts_with(words))
        .map(|(_, form, _)| form)
}

/// Classifies a query by its tree and text.
pub(crate) fn classify(
    tree: QueryTree<'_>,
    query: &[u8],
    circumstances: Circumstances,
) -> Referential {
    let Circumstances { enforcing, ddl } = circumstances;
    let Some(form) = form(query, enforcing, ddl.is_some()) else {
        return Referential::No;
    };
    if !extension::is_present() {
        return Referential::No;
    }
    let Some((first, second)) = tree.first_tables() else {
        return Referential::No;
    };
    let recognised = match form {
        Form::Join => ddl
            .zip(second)
            .filter(|&(ddl, second)| validates(query, first, second, ddl))
            .map(|(_, second)| Referential::Physical([first, second])),
        _ if !is_run_by_owner_of(first) => None,
        Form::Delete | Form::Update => {
            enforced(query, form, first).map(|_| Referential::Physical([first; 2]))
        }
        Form::Select if enforced(query, form, first).is_some() => {
            Some(Referential::Physical([first; 2]))
        }
        Form::Select => ddl
            .filter(|&ddl| looks_up(query, first, ddl))
            .map(|_| Referential::Physical([first; 2])),
    };
    recognised.unwrap_or(Referential::No)
}

/// PostgreSQL runs its query as the owner of the table.
fn is_run_by_owner_of(relid: pg_sys::Oid) -> bool {
    catalog::class(relid).is_some_and(|class| class.owner == roles::current_user())
}

/// The action or check that one of the table's foreign keys runs on the table, if it is one.
fn enforced(query: &[u8], form: Form, relid: pg_sys::Oid) -> Option<Enforced> {
    let written: fn(&ForeignKey) -> Vec<Vec<u8>> = match form {
        Form::Delete => |key| match key.on_delete {
            b'c' => vec![text::cascaded_delete(key)],
            _ => vec![],
        },
        Form::Update => text::updates,
        Form::Select => text::checks,
        Form::Join => return None,
    };
    let begin: fn(&foreign_key::ForeignKeyTable) -> Vec<u8> = match form {
        Form::Delete => text::delete_from,
        Form::Update => text::update,
        _ => text::select_from,
    };
    // Most users' statements end here, without a comparison with every foreign key.
    let begins = foreign_key::table(relid).is_some_and(|table| query.starts_with(&begin(&table)));
    let all = foreign_key::of_referencing(relid);
    let (row, key) = foreign_keys(if begins { &all } else { &[] })
        .find(|(_, key)| written(key).iter().any(|text| text == query))?;
    let cascades = key.on_update == b'c' && text::cascaded_update(&key) == query;
    Some(Enforced {
        action: match form {
            Form::Delete => Action::Delete,
            Form::Update => Action::Update,
            _ => Action::Check,
        },
        referenced: row.referenced,
        // The new values come first.
        first: if cascades { key.pairs.len() } else { 0 },
        referencing: row.referencing_columns(),
        key,
    })
}

/// Whether it looks up, one by one, rows that a table of the ALTER TABLE references: validation
/// where its user may not read both tables.
fn looks_up(query: &[u8], relid: pg_sys::Oid, ddl: ConstraintDdl) -> bool {
    foreign_keys(&foreign_key::of_referenced(relid))
        .any(|(row, key)| text::lookup(&key) == query && concerns(ddl, &row))
}

/// Whether an ALTER TABLE is running that may look up rows of the table, one by one, to validate a
/// foreign key; it must see all of them.
#[cfg(since19)]
pub(crate) fn is_validated_by_ddl(relid: pg_sys::Oid) -> bool {
    constraint_ddl::RUNNING.current().is_some_and(|ddl| {
        foreign_keys(&foreign_key::of_referenced(relid)).any(|(row, _)| concerns(ddl, &row))
    })
}

/// Whether it validates a foreign key of the ALTER TABLE's table, and the user of that statement
/// runs it.
fn validates(
    query: &[u8],
    referencing: pg_sys::Oid,
    referenced: pg_sys::Oid,
    ddl: ConstraintDdl,
) -> bool {
    ddl.user == roles::current_user()
        && foreign_keys(&foreign_key::of_referencing(referencing)).any(|(row, key)| {
            row.referenced == referenced
                && (text::validation(&key) == query || detaches(query, &key, referenced))
                && concerns(ddl, &row)
        })
}

fn detaches(query: &[u8], key: &ForeignKey, referenced: pg_sys::Oid) -> bool {
    // The condition is expensive to write, and the same for the whole partition.
    text::is_detachment(query, key)
        && text::detachment(key, &foreign_key::partition_constraint(referenced)) == query
}

fn foreign_keys(
    constraints: &[pg_sys::Oid],
) -> impl Iterator<Item = (foreign_key::ForeignKeyRow, ForeignKey)> {
    constraints.iter().filter_map(|&constraint| {
        let row = foreign_key::row(constraint)?;
        let key = row.named()?;
        Some((row, key))
    })
}

/// Whether the ALTER TABLE concerns one of the foreign key's tables: the table itself, an
/// ancestor or descendant, or its type.
fn concerns(ddl: ConstraintDdl, row: &foreign_key::ForeignKeyRow) -> bool {
    let altered = || ddl.tables.into_iter().flatten();
    let is_one_of = |relid| altered().any(|table| table == relid);
    [row.referencing, row.referenced].into_iter().any(|relid| {
        is_one_of(relid)
            || catalog::ancestors(relid).into_iter().any(is_one_of)
            || foreign_key::type_of_table(relid).is_some_and(is_one_of)
            || altered().any(|table| catalog::ancestors(table).contains(&relid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_queries_are_told_by_their_first_words() {
        for query in [
            "SELECT 1",
            "SELECT fk.a FROM fk",
            "WITH x AS (SELECT 1) SELECT 1",
        ] {
            assert_eq!(form(query.as_bytes(), true, true), None, "{query}");
        }
    }

    #[test]
    fn actions_only_in_their_context() {
        let query = br#"DELETE FROM ONLY "public"."c" WHERE $1 OPERATOR(pg_catalog.=) "fk""#;
        assert_eq!(form(query, true, false), Some(Form::Delete));
        assert_eq!(form(query, false, true), None);
    }

    #[test]
    fn validation_only_inside_alter_table() {
        let query = br#"SELECT fk."a" FROM ONLY "public"."c" fk"#;
        assert_eq!(form(query, false, true), Some(Form::Join));
        assert_eq!(form(query, true, false), None);
    }

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
