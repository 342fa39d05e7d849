//! What is to be deleted before a query of a foreign key, kept for the session: each run of such a query is asked
//! about, and PostgreSQL keeps its plan.

use super::archive_check::ArchiveTable;
use super::archiving::Locks;
use super::replanned;
use crate::error::Result;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::code::{self, Change, Code};
use crate::pg::catalog::{self, invalidation, roles};
use crate::pg::exec::executor::ExecutorQuery;
use crate::pg::exec::kept_query::{KeptQuery, Parameters};
use crate::store::{TablePolicy, cache, live_condition};
use crate::visibility::referential::{self, Enforced};
use pgrx::pg_sys::Oid;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// A foreign key's query, and what is to be run before it.
pub(super) struct KnownQuery {
    pub(super) enforced: Enforced,
    /// The referencing table's owner, as whom PostgreSQL runs the query.
    owner: Oid,
    pub(super) removals: Vec<TableRemoval>,
    /// The code that the query itself sets off, where that has been asked.
    pub(super) code: OnceCell<Code>,
    /// The removals lead back to it ([`replanned::leads_back`]).
    pub(super) leads_back: bool,
    /// Invalidations before it was read.
    invalidations: u64,
}

impl KnownQuery {
    /// The code that a deletion of this table's rows sets off. The caller has locked the table, by which what has come to it
    /// meanwhile is known.
    pub(super) fn present_code<'a>(&self, removal: &'a TableRemoval) -> Cow<'a, Code> {
        match self.invalidations == invalidation::count() {
            true => Cow::Borrowed(&removal.code),
            false => Cow::Owned(removal.way.code(removal.relid)),
        }
    }
}

/// The removal of one table's rows.
pub(super) struct TableRemoval {
    pub(super) relid: Oid,
    pub(super) way: RemovalMethod,
    /// A deletion sets something off even if it meets no row.
    pub(super) looks_first: bool,
    pub(super) code: Code,
}

/// How the rows of one table are removed.
pub(super) enum RemovalMethod {
    Delete(KeptQuery),
    /// By this DELETE, into the archive of this policy: which table that is, and whether it may be, is asked each
    /// time.
    Archive(Vec<u8>, Rc<TablePolicy>),
}

impl RemovalMethod {
    fn code(&self, relid: Oid) -> Code {
        let mut code = code::of(relid, Change::Deletion);
        if let Self::Archive(..) = self {
            code.rows = code.rows.or_else(|| Some("the archive".to_owned()));
        }
        code
    }

    pub(super) fn query(&self, relid: Oid, parameters: &Parameters) -> Result<Option<KeptQuery>> {
        let (delete, policy) = match self {
            Self::Delete(query) => return Ok(Some(*query)),
            Self::Archive(delete, policy) => (delete, policy),
        };
        let archive = ArchiveTable::of(relid, policy, Locks::Wait)?;
        Ok(archive.map(|archive| {
            let named = [relid, archive.oid];
            KeptQuery::of(archive.taking(delete), parameters, named)
        }))
    }
}

/// Those of one referencing table, by text.
type Texts = Vec<(Vec<u8>, Rc<KnownQuery>)>;

/// Those that have been recognised, by referencing table and text: PostgreSQL keeps the plans of its
/// queries, and each run is asked about.
static KNOWN: Variable<RefCell<FxHashMap<Oid, Texts>>> =
    Variable::new(RefCell::new(HashMap::with_hasher(FxBuildHasher)));

/// Registers for invalidations; once, at load.
pub(crate) fn init() {
    invalidation::listen(|_| {
        KNOWN.with_borrow_mut(HashMap::clear);
    });
}

/// At the end of a transaction: keeps no more queries than that is worth. Not earlier, since a query
/// may be running, within whose planning or triggers others are prepared.
pub(crate) fn at_xact_end() {
    if KeptQuery::free_if_many() {
        KNOWN.take();
    }
}

pub(super) fn parameters(enforced: &Enforced, query: ExecutorQuery<'_>) -> Option<Parameters> {
    Parameters::of(query, enforced.first, enforced.columns())
}

pub(super) fn known(query: ExecutorQuery<'_>, relid: Oid) -> Option<Rc<KnownQuery>> {
    let text = query.text()?.to_bytes();
    let find = |all: &Texts| {
        let found = all.iter().find(|(known, _)| known == text);
        found.map(|(_, known)| Rc::clone(known))
    };
    if let Some(known) = KNOWN.with_borrow(|all| all.get(&relid).and_then(find)) {
        return (known.owner == roles::current_user()).then_some(known);
    }
    let before = invalidation::count();
    let enforced = referential::running(text, relid)?;
    let parameters = parameters(&enforced, query)?;
    let mut removals = Vec::new();
    for (target, policy) in expiring(relid) {
        let delete = enforced.deletion(partition(relid, target), &expired(&policy));
        let archives = policy.label.archive_to.is_some();
        let way = match archives {
            false => RemovalMethod::Delete(KeptQuery::of(delete, &parameters, [target; 2])),
            true => RemovalMethod::Archive(delete, policy),
        };
        let code = way.code(target);
        removals.push(TableRemoval {
            relid: target,
            way,
            looks_first: archives || code.statements.is_some() || code.planning.is_some(),
            code,
        });
    }
    let found = Rc::new(KnownQuery {
        leads_back: removals
            .iter()
            .all(|removal| replanned::leads_back(removal.relid, enforced.referenced)),
        enforced,
        owner: roles::current_user(),
        removals,
        code: OnceCell::new(),
        invalidations: before,
    });
    // What was read before an invalidation is not stored after it.
    if invalidation::count() == before {
        KNOWN.with_borrow_mut(|all| {
            let of_table = all.entry(relid).or_default();
            of_table.push((text.to_vec(), Rc::clone(&found)));
        });
    }
    Some(found)
}

pub(super) fn partition(relid: Oid, target: Oid) -> Option<Oid> {
    (target != relid).then_some(target)
}

/// "The row is expired", of a table with this policy.
pub(super) fn expired(policy: &TablePolicy) -> String {
    let live = live_condition(policy.label.default_ttl);
    format!("CASE WHEN {live} THEN false ELSE true END")
}

/// The tables whose rows may expire: the referencing one, if it has a policy, or each of its
/// partitions that has.
fn expiring(relid: Oid) -> Vec<(Oid, Rc<TablePolicy>)> {
    let of = |relid| cache::policy(relid).filter(|policy| policy.hides() && !policy.is_shell());
    if let Some(policy) = of(relid) {
        return vec![(relid, policy)];
    }
    if cache::child_with_ttl(relid).is_none() {
        return vec![];
    }
    let leaves = catalog::all_inheritors(relid).into_iter();
    let leaves = leaves.filter(|&leaf| catalog::has_rows(leaf));
    leaves.filter_map(|leaf| Some((leaf, of(leaf)?))).collect()
}
