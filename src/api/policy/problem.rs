//! A problem that keeps a table's TTL from working: in words, and the statements that end it.

use crate::pg::catalog::{self, quote_literal, roles};
use pgrx::pg_sys;

/// What `ttl.problems` says of a table, and what `ttl.check` says to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::api) struct Problem {
    pub(in crate::api) text: String,
    /// Statements that PostgreSQL accepts as they stand, each with its semicolon. Under which condition
    /// they are right, and what is to be done after them, stands with them in comments. `None` where no
    /// statement helps: then the text says what does.
    pub(in crate::api) to_do: Option<String>,
}

impl Problem {
    pub(in crate::api) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            to_do: None,
        }
    }

    pub(in crate::api) fn with_statement(self, statement: impl Into<String>) -> Self {
        self.with_statements(Some(statement.into()))
    }

    /// The same for a statement that changes another table than this one. `None` if this one's owner could not act as that
    /// one's: a policy, and an error of a trigger, say what their owner wants, and an administrator may paste what they are told.
    pub(in crate::api) fn with_statement_on(
        self,
        changed: pg_sys::Oid,
        relid: pg_sys::Oid,
        statement: impl Into<String>,
    ) -> Self {
        self.with_statements(acts_on(relid, changed).then(|| statement.into()))
    }

    /// The same for a statement by which code in the table runs as the one who runs it: for its owner only. An administrator learns
    /// who that is.
    pub(in crate::api) fn with_statement_of_owner(
        mut self,
        relid: pg_sys::Oid,
        statement: impl Into<String>,
    ) -> Self {
        if is_own(relid) {
            return self.with_statement(statement);
        }
        let owner = catalog::owner(relid).map(roles::name).unwrap_or_default();
        self.text +=
            &format!("; ttl.check() tells {owner}, to whom the table belongs, what to run");
        self
    }

    pub(in crate::api) fn with_statements(mut self, statements: Option<String>) -> Self {
        self.to_do = statements;
        self
    }
}

/// Whether the owner of a table could act as that of another.
fn acts_on(relid: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    let owners = catalog::owner(relid).zip(catalog::owner(other));
    owners.is_some_and(|(own, others)| roles::has_rights_of(own, others))
}

/// Whether the table belongs to the current user, and not only to a role that this one could become.
pub(in crate::api) fn is_own(relid: pg_sys::Oid) -> bool {
    catalog::owner(relid) == Some(roles::current_user())
}

/// Shows who holds locks on the table, prepared transactions included.
pub(in crate::api) fn look_at_locks(relid: pg_sys::Oid) -> String {
    let table = quote_literal(&catalog::qualified_name(relid));
    format!(
        "SELECT l.mode, l.granted, l.virtualtransaction, l.pid, a.state, a.xact_start, a.query \
           FROM pg_catalog.pg_locks AS l LEFT JOIN pg_catalog.pg_stat_activity AS a USING (pid) \
          WHERE l.relation = {table}::regclass \
            AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database());"
    )
}

/// A look at `ttl.stats`, for errors whose cause is the user's.
pub(in crate::api) fn look_at_last_error(relid: pg_sys::Oid) -> String {
    let table = quote_literal(&catalog::qualified_name(relid));
    format!("SELECT last_error, last_error_at FROM ttl.stats WHERE relation = {table}::regclass;")
}
