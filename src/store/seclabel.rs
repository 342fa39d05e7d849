//! Security labels of the provider `ttl`: a table's label is its policy, the label of its row type what
//! the extension remembers of it ([`LocalState`]).

use super::{extension, policy_lock, written};
use crate::citus::{self, Doing};
use crate::error::Error;
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog;
use crate::pg::catalog::syntax::Node;
use crate::pg::server::background;
use crate::pg::session::labels::{self, LabelledObject};
use crate::pg::session::scoped::Scoped;
use crate::pg::session::xact;
use crate::policy::{Home, LocalState, MAX_LABEL_BYTES, MAX_LOCAL_STATE_BYTES, Policy};
use pgrx::pg_sys;
use std::collections::HashMap;
use std::ffi::CStr;

pub(crate) const PROVIDER: &CStr = c"ttl";

/// Whether the statement is about a label of this provider.
pub(crate) fn is_ours(statement: Node<'_, pg_sys::SecLabelStmt>) -> bool {
    let provider = statement.text(|statement| &statement.provider);
    provider.is_none_or(|provider| provider == PROVIDER)
}

/// Before a label changes: waits for batches under the present policy, and tells all sessions
/// and workers at commit.
pub(crate) fn about_to_change(relid: pg_sys::Oid) {
    policy_lock::lock_policy_for_change(relid);
    written::note_policy_change();
    invalidate(relid);
}

/// SECURITY LABEL statements that are the extension's own.
static OWN_STATEMENT: Scoped<()> = Scoped::new();

/// Whether the label of a statement is one that the extension has made for the table, here or on the
/// node that sends it.
pub(crate) fn is_own_statement() -> bool {
    !OWN_STATEMENT.is_empty() || citus::is_of_citus() || citus::is_doing(Doing::Converting)
}

/// Stores the policy (`None`, or an empty one, removes it), tells all sessions, and makes the change
/// visible to the rest of the transaction. The caller holds a lock on the table and has checked
/// privileges. Raises an error for a policy that could not be read again: it would not be in force.
///
/// What makes deletion wait stays in the label: another session may have put it there since the caller has read that
/// (`ddl/new_owners.rs` changes the label of a table that it does not lock).
pub(crate) fn set(relid: pg_sys::Oid, policy: Option<&Policy>) {
    policy_lock::lock_policy_for_change(relid);
    let present = policy.and_then(|_| stored(relid));
    let policy = policy.map(|policy| match &present {
        Some(present) => policy.waiting_like(present),
        None => policy.clone(),
    });
    store(relid, policy.as_ref());
}

/// The label as it is stored; `None` if it cannot be read.
fn stored(relid: pg_sys::Oid) -> Option<Policy> {
    let mut found = None;
    let largest = MAX_LABEL_BYTES;
    labels::each(
        PROVIDER,
        LabelledObject::Table,
        Some(relid),
        largest,
        &mut |_, text| found = text.ok().and_then(|text| Policy::parse(&text).ok()),
    );
    found
}

/// As [`set`], but deletion waits no more than the policy says: for `ttl.resume`, which has taken the policy's lock before it
/// has read the label.
///
/// A table of Citus gets its label by a statement, which Citus sends to all nodes.
pub(crate) fn store(relid: pg_sys::Oid, policy: Option<&Policy>) {
    let policy = policy.filter(|policy| !policy.is_empty());
    if let Some(policy) = policy {
        or_raise(policy.check().map_err(|error| Error::invalid_label(&error)));
    }
    let label = policy.map(Policy::to_label);
    if citus::is_shell(relid) {
        set_everywhere(relid, label.as_deref());
    } else {
        about_to_change(relid);
        let label = label.as_deref().and_then(encoding::to_server);
        labels::set(PROVIDER, LabelledObject::Table, relid, label.as_deref());
    }
    set_local(relid, policy.map(|policy| policy.local));
}

/// Where what is remembered is stored now.
pub(super) fn home() -> Home {
    Home {
        database: background::my_database().to_u32(),
        extension: extension::oid().map_or(0, pg_sys::Oid::to_u32),
    }
}

/// Stores what the extension remembers of the table in this database; `None` removes it.
pub(super) fn set_local(relid: pg_sys::Oid, local: Option<LocalState>) {
    let Some(class) = catalog::class(relid) else {
        return;
    };
    let text = local.map(|local| local.stored_in(home(), class.owner.to_u32()));
    let text = text.as_deref().and_then(encoding::to_server);
    labels::set(
        PROVIDER,
        LabelledObject::RowType,
        class.row_type,
        text.as_deref(),
    );
}

/// What the extension remembers of tables, by row type: of one, or of all.
pub(super) fn locals(row_type: Option<pg_sys::Oid>) -> HashMap<pg_sys::Oid, LocalState> {
    let mut found = HashMap::new();
    let largest = MAX_LOCAL_STATE_BYTES;
    labels::each(
        PROVIDER,
        LabelledObject::RowType,
        row_type,
        largest,
        &mut |of, text| {
            if let Some(local) = text.ok().and_then(|text| LocalState::parse(&text)) {
                found.insert(of, local);
            }
        },
    );
    found
}

fn set_everywhere(relid: pg_sys::Oid, label: Option<&str>) {
    let label = label.map_or("NULL".to_owned(), catalog::quote_literal);
    let table = catalog::qualified_name(relid);
    let statement = format!("SECURITY LABEL FOR ttl ON TABLE {table} IS {label}");
    OWN_STATEMENT.during((), || {
        or_raise(encoding::run(&statement).map_err(Error::from));
    });
    xact::next_command();
}

/// Makes every session forget the table, its descendants and its ancestors, and plan again (C8).
/// Takes effect at commit, in this session at the next command.
pub(crate) fn invalidate(relid: pg_sys::Oid) {
    let below = citus::with_shards(&catalog::all_below(relid)).into_iter();
    for related in below.chain(catalog::ancestors(relid)) {
        if catalog::class(related).is_some() {
            catalog::invalidate(related);
        }
    }
}
