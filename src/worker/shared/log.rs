//! The server's log: problems, with a hint; nothing per row.

use super::state::TableKey;
use crate::deletion::worker_transaction;
use crate::pg::abi::encoding;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{self, roles};
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys::panic::ErrorReport};
use std::cell::RefCell;
use std::collections::BTreeSet;

static SAID: Variable<RefCell<BTreeSet<String>>> = Variable::new(RefCell::new(BTreeSet::new()));

pub(in crate::worker) fn warning(message: &str, hint: &str) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        encoding::for_message(message.to_owned()),
        function_name!(),
    )
    .set_hint(encoding::for_message(hint.to_owned()))
    .report(PgLogLevel::WARNING);
}

/// A problem that this process logs only once, until [`over`].
pub(in crate::worker) fn once(topic: &str, message: &str, hint: &str) {
    if SAID.with_borrow_mut(|said| said.insert(topic.to_owned())) {
        warning(message, hint);
    }
}

/// A problem is over: it is logged again the next time.
pub(in crate::worker) fn over(topic: &str) {
    SAID.with_borrow_mut(|said| said.remove(topic));
}

/// A table is so slow that its owner's tables must wait for others'.
pub(in crate::worker) fn slow(key: TableKey) {
    let relid = pg_sys::Oid::from(key.relid);
    let found = worker_transaction::run(|| {
        let owner = catalog::class(relid).map(|class| roles::name(class.owner));
        Ok((catalog::qualified_name(relid), owner.unwrap_or_default()))
    });
    let Ok((name, owner)) = found else { return };
    warning(
        &format!(
            "deletion of expired rows of table {name} of role {owner} takes too long: others' tables go first"
        ),
        "Look for what its triggers, foreign keys and indexes run when a row is deleted; see \"slow\" and \"last_error\" in ttl.stats.",
    );
}

/// Something that happens by design.
pub(in crate::worker) fn debug(message: &str) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        encoding::for_message(message.to_owned()),
        function_name!(),
    )
    .report(PgLogLevel::DEBUG1);
}
