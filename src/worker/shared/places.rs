//! Places in shared memory for tables that get a time to live.
//!
//! The transaction by which rows of a table come to expire takes the table's place, so that
//! `ttl.max_tables` is exact. A worker makes it a table to delete from once that has committed; if
//! it has not, the place is given back.

use super::deletion_state;
use super::state::{self, Entering, TableKey, TableState};
use crate::error::{Error, Result};
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{self, roles};
use crate::pg::server::background;
use crate::store::{cache, written};
use crate::worker::queue::quota::{Claimant, Refusal};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::RefCell;
use std::collections::HashSet;

/// The places that this transaction holds; true: it has taken them itself.
static RESERVED: Variable<RefCell<Vec<(TableKey, bool)>>> = Variable::new(RefCell::new(Vec::new()));

/// For whom a table takes a place.
pub(crate) fn claimant(relid: pg_sys::Oid) -> Option<Claimant> {
    let owner = catalog::class(relid)?.owner;
    Some(Claimant {
        owner: owner.to_u32(),
        unlimited: roles::is_superuser(owner),
    })
}

/// Takes the places of the tables whose rows expire by this table's policy, all or none; 53400 if
/// there is no room for one of them. The policy is visible to the current command.
pub(crate) fn reserve(labelled_table: pg_sys::Oid) -> Result<()> {
    take(&deletion_state::expiring(labelled_table)).map_err(|refused| {
        let table = catalog::qualified_name(refused.table);
        let message = format!("no room for a time to live of table {table}");
        refused.error(message)
    })
}

/// As [`reserve`], for a table that has become a partition or child of one with a time to live, and
/// what is below it. The statement is none of the extension's: it is told what follows. At commit workers learn of the tables,
/// whose rows may have expired.
pub(crate) fn reserve_or_warn(relid: pg_sys::Oid) {
    let inherits = |table: &pg_sys::Oid| {
        cache::policy(*table)
            .is_some_and(|policy| policy.labelled_table != *table && policy.expires())
    };
    if !inherits(&relid) {
        return;
    }
    written::note_policy_change();
    let mut tables = catalog::all_inheritors(relid);
    tables.retain(|table| inherits(table) && catalog::has_rows(*table));
    for table in tables {
        if let Err(refused) = take(&[table]) {
            let name = catalog::qualified_name(table);
            refused
                .error(format!("expired rows of table {name} stay on disk"))
                .warn();
        }
    }
}

/// Why there is no place for a table, whose error it makes.
struct NoPlace {
    table: pg_sys::Oid,
    owner: u32,
    refusal: Refusal,
}

impl NoPlace {
    fn error(&self, message: String) -> Error {
        Error::new(
            PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            message,
        )
        .detail(sentence(&reason(self.owner, self.refusal)))
        .hint("Raise \"ttl.max_tables\" and restart the server, or turn off the time to live of other tables.")
    }
}

fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).chain(['.']).collect()
    })
}

/// Why there is no place, as a clause.
fn reason(owner: u32, refusal: Refusal) -> String {
    match refusal {
        Refusal::Full { total } => {
            format!("all {total} places for tables and partitions of all databases are taken")
        }
        Refusal::Quota { has, free, total } => format!(
            "role {} has {has} of {total} places for tables and partitions of all databases, \
             and the {free} that are free are left to other owners",
            roles::name(owner.into())
        ),
    }
}

/// Why the table, which has no place, would not get one now.
pub(crate) fn refusal(relid: pg_sys::Oid) -> Option<String> {
    let claimant = claimant(relid)?;
    let refusal = state::admits(claimant).err()?;
    Some(reason(claimant.owner, refusal))
}

fn take(tables: &[pg_sys::Oid]) -> std::result::Result<(), NoPlace> {
    let mut wanted = Vec::new();
    for &table in tables {
        let is_swept = |class: &catalog::Class| class.persistence != pg_sys::RELPERSISTENCE_TEMP;
        let policy = cache::policy(table).filter(|policy| !policy.is_shell());
        let (Some(_), Some(policy)) = (catalog::class(table).filter(is_swept), policy) else {
            continue;
        };
        let Some(claimant) = claimant(table) else {
            continue;
        };
        let labelled_table = policy.labelled_table.to_u32();
        wanted.push(TableState::new(
            TableKey::here(table),
            labelled_table,
            claimant,
        ));
    }
    if take_all(&wanted).is_err() {
        forget_gone(background::my_database().to_u32());
        take_all(&wanted)?;
    }
    Ok(())
}

fn take_all(wanted: &[TableState]) -> std::result::Result<(), NoPlace> {
    let me = background::my_pid();
    let mut taken = Vec::with_capacity(wanted.len());
    let mut entering = Entering::begin();
    for wanted in wanted {
        match entering.ensure(wanted) {
            Ok(is_new) => {
                let Some(state) = entering.state(&wanted.key) else {
                    continue;
                };
                if is_new {
                    // Until a worker has found its policy.
                    state.schedule.never();
                }
                if !state.is_target() && state.reserved_by == 0 {
                    state.reserved_by = me;
                    taken.push((wanted.key, is_new));
                }
            }
            Err(refusal) => {
                give_back(&mut entering, taken, true);
                return Err(NoPlace {
                    table: wanted.key.relid.into(),
                    owner: wanted.owner,
                    refusal,
                });
            }
        }
    }
    drop(entering);
    RESERVED.with_borrow_mut(|all| all.extend(taken));
    Ok(())
}

/// Ends reservations; those that were made for nothing leave no place taken.
fn give_back(entering: &mut Entering, places: Vec<(TableKey, bool)>, in_vain: bool) {
    for (key, own) in places {
        let Some(state) = entering.state(&key) else {
            continue;
        };
        state.reserved_by = 0;
        if own && in_vain && !state.is_target() {
            entering.remove(&key);
        }
    }
}

/// At the end of a transaction, after the workers were notified: raises no error.
pub(crate) fn at_end(has_committed: bool) {
    if RESERVED.with_borrow(|places| !places.is_empty()) {
        give_back(&mut Entering::begin(), RESERVED.take(), !has_committed);
    }
}

/// Forgets tables of this database that were dropped, or whose time to live was turned off, before a
/// worker saw them.
fn forget_gone(database: u32) {
    let known = state::tables_of(database).into_iter();
    let unseen = known
        .filter(|state| !state.is_target())
        .map(|state| state.key.relid);
    let gone: HashSet<u32> = unseen
        .filter(|&relid| !cache::policy(relid.into()).is_some_and(|policy| policy.expires()))
        .collect();
    state::remove_tables(|state| {
        let unused = !state.is_target() && !state.is_in_turn() && state.reserved_by == 0;
        state.key.database == database && unused && gone.contains(&state.key.relid)
    });
}
