//! Errors that several rooms raise, and that name tables or labels.

use crate::error::Error;
use crate::pg::catalog;
use crate::policy::IndexRule;
use pgrx::{PgSqlErrorCode, pg_sys};

impl Error {
    /// 55000: the table has no TTL.
    pub(crate) fn no_policy(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        let error = Self::not_ready(format!("table {table} has no time to live"));
        // A partition cannot have one of its own.
        let is_partition = |relid| catalog::class(relid).is_some_and(|class| class.is_partition);
        let root = match is_partition(relid) {
            true => catalog::ancestors(relid)
                .into_iter()
                .find(|&it| !is_partition(it)),
            false => None,
        };
        let Some(root) = root.map(catalog::qualified_name) else {
            return error.hint(format!(
                "To give it one, run: SELECT ttl.enable({}, '30 days');",
                catalog::quote_literal(&table)
            ));
        };
        error.hint(format!(
            "To give one to the partitioned table, run: SELECT ttl.enable({}, '30 days');",
            catalog::quote_literal(&root)
        ))
    }

    /// 0A000: rows of the hypertable may be where deletion and keys do not find them.
    /// `or` is another way out, for the HINT.
    pub(crate) fn columnstore(relid: pg_sys::Oid, what: &str, or: &str) -> Self {
        let table = catalog::qualified_name(relid);
        Self::unsupported(format!("cannot {what} hypertable {table}, which has a columnstore"))
        .detail("Expired rows in the columnstore are not deleted, and their keys are not free.")
        .hint(format!(
            "Convert its chunks to rowstore, then turn the table's option timescaledb.enable_columnstore off.{or}"
        ))
    }

    /// 22023: an invalid label; 54000 if it is too large.
    pub(crate) fn invalid_label(error: &Error) -> Self {
        let is_limit = error.code == PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
        let shown = match is_limit {
            true => Self::new(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "time to live label is too large",
            ),
            false => Self::invalid("invalid time to live label"),
        };
        let hint = error.hint.as_deref().filter(|_| is_limit).unwrap_or(
            "A label looks like {\"default_ttl\": 3600, \"ts_column\": \"_ts\", \"ttl_column\": \"ttl\"}.",
        );
        let detail = match &error.detail {
            Some(detail) => format!("{}. {detail}", error.message),
            None => format!("{}.", error.message),
        };
        shown.detail(detail).hint(hint)
    }

    /// 01000, to be raised with [`Self::warn`]: deletion skips the table until `ttl.resume`.
    pub(crate) fn restored(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::for_warning(format!("expired rows of table {table} are not deleted"))
        .detail("The time to live was restored from a dump or labelled by hand, or the table was given to another owner.")
        .hint(format!(
            "To start deletion, run: SELECT ttl.resume({});",
            catalog::quote_literal(&table)
        ))
    }

    /// 01000, to be raised with [`Self::warn`], since pg_dump's scripts suppress notices: rows were restored with their times.
    pub(crate) fn rows_restored(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::for_warning(format!("deletion of expired rows of table {table} waits"))
            .detail("Rows are being restored, with their times.")
            .hint(format!(
                "To start deletion, run: SELECT ttl.resume({});",
                catalog::quote_literal(&table)
            ))
    }

    /// 55000: expired rows would have to be deleted, but that waits for `ttl.resume`.
    pub(crate) fn restored_rows_in_the_way(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::not_ready(format!("expired rows of table {table} would live again"))
        .detail("The time to live was restored from a dump or labelled by hand, or the table was given to another owner, so none of its rows are deleted.")
        .hint(format!(
            "To delete them, first run: SELECT ttl.resume({}); To bring them back, give revive_expired => true.",
            catalog::quote_literal(&table)
        ))
    }

    /// 55000: deletion would run what may be a former owner's.
    pub(crate) fn handed_over(relid: pg_sys::Oid, labelled_table: pg_sys::Oid) -> Self {
        Self::not_ready(format!(
            "deletion of expired rows of table {} waits",
            catalog::qualified_name(relid)
        ))
        .by_former_owner(labelled_table)
    }

    /// With the DETAIL and the HINT that deletion would run what may be a former owner's.
    pub(crate) fn by_former_owner(self, labelled_table: pg_sys::Oid) -> Self {
        self.detail("The table, or one that its deletion reaches, has belonged to another owner. Deletion would run triggers and expressions that may be that owner's.")
        .hint(format!(
            "Look at the triggers and expressions of these tables. To start deletion, run: SELECT ttl.resume({});",
            catalog::quote_literal(&catalog::qualified_name(labelled_table))
        ))
    }

    /// 55000: a trigger or rule of the table keeps rows that must be deleted.
    pub(crate) fn expired_rows_kept(relid: pg_sys::Oid) -> Self {
        Self::not_ready(format!(
            "expired rows of table {} could not be deleted",
            catalog::qualified_name(relid)
        ))
        .detail("A trigger or rule on the table keeps them.")
    }

    /// For a notice: these are no longer TTL indexes.
    pub(crate) fn no_longer_ttl_indexes(relid: pg_sys::Oid, indexes: &[String]) -> Self {
        let names: Vec<String> = indexes
            .iter()
            .map(|name| catalog::quote_identifier(name))
            .collect();
        let table = catalog::qualified_name(relid);
        Self::for_notice(format!(
            "indexes of table {table} are no longer TTL indexes: {}",
            names.join(", ")
        ))
    }

    /// For a notice: TTL indexes were dropped.
    pub(crate) fn dropped_ttl_indexes(relid: pg_sys::Oid, dropped: &[IndexRule]) -> Self {
        let names: Vec<String> = dropped
            .iter()
            .map(|rule| catalog::quote_identifier(&rule.index))
            .collect();
        // The seconds of one are not those of another.
        let seconds = match dropped {
            [rule] => format!(" with {} seconds", rule.expire_after_seconds),
            _ => String::new(),
        };
        let table = catalog::qualified_name(relid);
        Self::for_notice(format!(
            "rows of table {table} no longer expire by dropped TTL indexes: {}",
            names.join(", ")
        ))
        .hint(format!(
            "To let them expire by another index, use ttl.expire_index(){seconds}."
        ))
    }

    /// 55000: rows of the table do not count from their last modification.
    pub(crate) fn no_clock(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::not_ready(format!("table {table} has no default time to live"))
        .detail("Its rows expire by TTL indexes only: it has no column with the time of their last modification.")
        .hint(format!(
            "To add one, run: SELECT ttl.enable({}, '30 days');",
            catalog::quote_literal(&table)
        ))
    }

    /// 55000: a table has a policy, and what it needs of the extension is not there.
    pub(crate) fn incomplete_extension() -> Self {
        Self::not_ready("extension \"ttl_ext\" is not complete")
        .detail(
            "A function that tables with a time to live need is not where CREATE EXTENSION put it.",
        )
        .hint(
            "If a function or schema of the extension was renamed, moved or replaced, undo that. \
             If the library is newer than the extension, run: ALTER EXTENSION ttl_ext UPDATE.",
        )
    }
}
