//! `ttl.enable`.

use super::building::apply;
use super::mass_expiry::{Consent, shown};
use super::set_default::{change_default, checked_default};
use super::{cluster, document_column, guard, label};
use crate::error::{Error, Result};
use crate::pg::catalog::{self, qualified_name};
use crate::pg::report::or_raise;
use crate::pg::values::Text;
use crate::pg::{background, encoding};
use crate::policy::{Added, IndexMethod, LABEL_VERSION, Policy};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CStr;

/// `ttl.enable(rel, default_ttl, ts_column, ttl_column, document_column, index, drop_partitions,
/// hidden, ts_granularity, confirm, concurrently)` (C2, C3, C11, C16, C19, C21, D1, M11). On a table that has TTL it changes the
/// default, `drop_partitions` and `hidden`. Expired rows are deleted before a change that would
/// revive them.
#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn enable(
    rel: Option<pg_sys::Oid>,
    default_ttl: Option<i32>,
    ts_column: Option<&CStr>,
    ttl_column: Option<&CStr>,
    document_column: Option<&CStr>,
    index: Option<Text>,
    drop_partitions: Option<bool>,
    hidden: Option<bool>,
    ts_granularity: Option<i32>,
    confirm: Option<bool>,
    concurrently: Option<bool>,
) {
    let name = |column: Option<&CStr>| column.map(encoding::from_server);
    let columns = (name(ts_column), name(ttl_column), name(document_column));
    guard::check_writable(c"ttl.enable()");
    let concurrently = or_raise(guard::required(concurrently, "concurrently"));
    or_raise(turn_on(
        rel,
        default_ttl,
        columns,
        index.as_ref().map(|text| text.0.as_str()),
        Options {
            drop_partitions,
            hidden,
            ts_granularity,
            confirm,
            is_exact: false,
            concurrently,
        },
        None,
    ));
}

/// The other arguments of `ttl.enable`; `None` keeps the present value, or takes the default.
#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) drop_partitions: Option<bool>,
    pub(super) hidden: Option<bool>,
    pub(super) ts_granularity: Option<i32>,
    pub(super) confirm: Option<bool>,
    /// Columns and index are meant even if they are those of the SQL function's defaults.
    pub(super) is_exact: bool,
    /// C21: the indexes are built in the background.
    pub(super) concurrently: bool,
}

impl Options {
    /// The call with `confirm`, as far as its arguments are not those of the SQL function's defaults.
    fn consent(self, relid: pg_sys::Oid, wanted: &Policy) -> Result<Consent> {
        let mut call = format!(
            "ttl.enable({}, {}",
            shown(relid),
            wanted.default_ttl.unwrap_or(-1)
        );
        let name = |name: &Option<String>| {
            name.as_deref()
                .map_or("NULL".to_owned(), catalog::quote_literal)
        };
        let flag = |value: Option<bool>| value.map_or("NULL".to_owned(), |value| value.to_string());
        let number =
            |value: Option<i32>| value.map_or("NULL".to_owned(), |value| value.to_string());
        for (argument, value, usual) in [
            ("ts_column", name(&wanted.ts_column), "'_ts'"),
            ("ttl_column", name(&wanted.ttl_column), "'ttl'"),
            ("document_column", name(&wanted.document_column), "NULL"),
            (
                "index",
                catalog::quote_literal(wanted.index.access_method().unwrap_or("none")),
                "'btree'",
            ),
            ("drop_partitions", flag(self.drop_partitions), "false"),
            ("hidden", flag(self.hidden), "NULL"),
            ("ts_granularity", number(self.ts_granularity), "NULL"),
            ("concurrently", self.concurrently.to_string(), "false"),
        ] {
            if value != usual {
                call += &format!(", {argument} => {value}");
            }
        }
        Consent::new(self.confirm, &call)
    }
}

/// Turns TTL on or changes it. `consent` is that of a statement; `None` makes that of `ttl.enable`.
pub(super) fn turn_on(
    rel: Option<pg_sys::Oid>,
    default_ttl: Option<i32>,
    (ts_column, ttl_column, document_column): (Option<String>, Option<String>, Option<String>),
    index: Option<&str>,
    options: Options,
    consent: Option<&Consent>,
) -> Result<()> {
    let relid = guard::required(rel, "rel")?;
    let seconds = default_ttl.ok_or_else(|| {
        Error::new(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "argument \"default_ttl\" must not be null",
        )
        .hint("Use -1 for TTL without a default, or ttl.disable() to turn TTL off.")
    })?;
    let seconds = checked_default(seconds)?;
    let index = index_method(index)?;
    let wanted = Policy {
        version: LABEL_VERSION,
        default_ttl: Some(seconds),
        ts_column: Some(guard::required(ts_column, "ts_column")?),
        ttl_column,
        document_column,
        index,
        drop_partitions: guard::required(options.drop_partitions, "drop_partitions")?,
        ts_granularity: options.ts_granularity.unwrap_or(0),
        keep_expired: 0,
        shortened: None,
        rules: vec![],
        hidden: options.hidden.unwrap_or(true),
        archive_to: None,
        archive_oid: None,
        archive_owner: None,
        notify: None,
        paused_until: None,
        delete_between: None,
        table_oid: Some(relid.to_u32()),
        database_oid: Some(background::my_database().to_u32()),
        build_pending: options.concurrently,
        added: Added::default(),
    };
    // Parse the label, so that only one that can be read again is stored.
    let wanted = Policy::parse(&wanted.to_label()).map_err(label::invalid)?;
    let consent = match consent {
        Some(consent) => consent.clone(),
        None => options.consent(relid, &wanted)?,
    };
    guard::check_changeable(relid)?;
    cluster::check_node(relid, "ttl.enable()")?;
    cluster::check_partitions(relid, wanted.drop_partitions)?;
    if wanted.build_pending {
        cluster::refuse_on_shell(
            relid,
            "concurrently",
            "Build the index first: CREATE INDEX CONCURRENTLY ... (ttl.expiry_key(_ts, ttl)); ttl.enable() then uses it.",
        )?;
    }
    if wanted.drop_partitions {
        guard::require_partitioned(relid)?;
    }
    if options.concurrently {
        guard::refuse_hypertable(relid)?;
    }
    let resulting = || match guard::own_policy(relid)? {
        Some(present) => merge(relid, present, wanted.clone(), options),
        None => refuse_partition(relid).map(|()| wanted.clone()),
    };
    apply(relid, resulting, &consent)
}

/// Turns TTL on with this default, or changes the table's default; and `hidden`, unless it is
/// `None`.
pub(super) fn enable_or_change(
    relid: pg_sys::Oid,
    default_ttl: i32,
    hidden: Option<bool>,
    consent: &Consent,
) -> Result<()> {
    let present = guard::own_policy(relid)?;
    if present
        .as_ref()
        .is_some_and(|policy| policy.ts_column.is_some())
    {
        return change_default(relid, Some(default_ttl), hidden, false, consent);
    }
    let usual = (Some("_ts".to_owned()), Some("ttl".to_owned()), None);
    // The command does not mention these, so they stay as they are.
    let drop_partitions = present.is_some_and(|policy| policy.drop_partitions);
    let options = Options {
        drop_partitions: Some(drop_partitions),
        hidden,
        ts_granularity: None,
        confirm: Some(consent.confirmed),
        is_exact: false,
        concurrently: false,
    };
    turn_on(
        Some(relid),
        Some(default_ttl),
        usual,
        Some("btree"),
        options,
        None,
    )
}

fn index_method(name: Option<&str>) -> Result<IndexMethod> {
    let name = guard::required(name, "index")?;
    IndexMethod::from_name(name).ok_or_else(|| {
        let message = format!("unrecognized value for argument \"index\": \"{name}\"");
        Error::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .hint("Available values: btree, brin, none.")
    })
}

/// Changes the policy of a table that has TTL: it keeps its columns, and the arguments must match
/// them.
fn merge(relid: pg_sys::Oid, present: Policy, wanted: Policy, options: Options) -> Result<Policy> {
    let hidden = options.hidden.unwrap_or(present.hidden);
    if present.ts_column.is_none() {
        // So far its rows expire by TTL indexes only.
        return Ok(Policy {
            keep_expired: present.keep_expired,
            shortened: present.shortened,
            rules: present.rules,
            paused_until: present.paused_until,
            delete_between: present.delete_between,
            table_oid: present.table_oid,
            database_oid: present.database_oid,
            archive_to: present.archive_to,
            archive_oid: present.archive_oid,
            archive_owner: present.archive_owner,
            notify: present.notify,
            hidden,
            ..wanted
        });
    }
    let differs = |given: Option<&str>, usual: Option<&str>, kept: Option<&str>| {
        (given != usual || options.is_exact) && given != kept
    };
    let replaces_override = document_column::replaces_override(&present, &wanted);
    let contradiction = differs(
        wanted.ts_column.as_deref(),
        Some("_ts"),
        present.ts_column.as_deref(),
    ) || differs(
        wanted.ttl_column.as_deref(),
        Some("ttl"),
        present.ttl_column.as_deref(),
    ) || !replaces_override
        && differs(
            wanted.document_column.as_deref(),
            None,
            present.document_column.as_deref(),
        );
    if contradiction {
        let message = format!(
            "table {} has a time to live with other columns",
            qualified_name(relid)
        );
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
        )
        .detail(format!(
            "Its columns are {}.",
            present.columns().collect::<Vec<_>>().join(", ")
        ))
        .hint(format!(
            "To give a column another name, rename it: the time to live follows. To begin anew with other columns, end this one first: SELECT ttl.disable({}, drop_columns => true) drops the columns that ttl.enable added, with their values.",
            catalog::quote_literal(&qualified_name(relid))
        )));
    }
    let index = if wanted.index == IndexMethod::Btree && !options.is_exact {
        present.index
    } else {
        wanted.index
    };
    let (ttl_column, document_column) = if replaces_override {
        (
            present.ttl_column.or(wanted.ttl_column),
            wanted.document_column,
        )
    } else {
        (present.ttl_column, present.document_column)
    };
    label::fitting(
        relid,
        Policy {
            default_ttl: wanted.default_ttl,
            ttl_column,
            document_column,
            drop_partitions: wanted.drop_partitions,
            build_pending: wanted.build_pending,
            ts_granularity: options.ts_granularity.unwrap_or(present.ts_granularity),
            hidden,
            index,
            ..present
        },
    )
}

fn refuse_partition(relid: pg_sys::Oid) -> Result<()> {
    if !catalog::class(relid).is_some_and(|class| class.is_partition) {
        return Ok(());
    }
    let message = format!(
        "cannot set a time to live on partition {}",
        qualified_name(relid)
    );
    Err(
        Error::new(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, message)
            .detail("Rows that are written through the partitioned table would not be stamped.")
            .hint("Set it on the partitioned table; it holds for all partitions."),
    )
}
