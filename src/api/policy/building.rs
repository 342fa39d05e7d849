//! Adds what a policy needs to its table, then stores it.

use super::mass_expiry::Consent;
use super::needed_columns::missing_columns;
use super::{cluster, consequences, document_column, guard, indexes, write_label};
use crate::ddl::purge_before_change;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::catalog::{self, qualified_name, quote_identifier, roles};
use crate::pg::session::{self, rewording};
use crate::policy::Policy;
use crate::store::{cache, index_of, label_provider, seclabel};
use pgrx::{PgSqlErrorCode, pg_sys};

/// For a table that cannot get a column.
const NO_NEW_COLUMN: &str =
    "ttl.expire_after() and ttl.expire_index() let rows expire by an existing column and add none.";

/// Adds what the policy needs to the table, then stores it.
pub(in crate::api) fn apply(
    relid: pg_sys::Oid,
    policy: impl Fn() -> Result<Policy>,
    consent: &Consent,
) -> Result<()> {
    // Take the strongest lock first: upgrading a weaker one could deadlock. Compute the policy
    // again under the lock, since a column may have been renamed before it.
    let wanted = policy()?;
    let complete = session::with_safe_search_path(|| missing_columns(relid, &wanted))?;
    let complete = complete.statements.is_empty();
    if !complete {
        cluster::check_node(relid, "adding what a time to live needs")?;
    }
    let lock = match complete {
        true => guard::change_lock(relid),
        false => pg_sys::AccessExclusiveLock,
    };
    let children_lock = match lock {
        pg_sys::ShareUpdateExclusiveLock => pg_sys::RowExclusiveLock,
        stronger => stronger,
    };
    guard::lock(relid, lock);
    guard::check_changeable(relid)?;
    let wanted = policy()?;
    purge_before_change::prevent(relid, Some(&wanted), children_lock)?;
    session::with_safe_search_path(|| build(relid, wanted, consent))
}

/// Adds what is missing and stores the policy. The caller holds the lock.
fn build(relid: pg_sys::Oid, mut policy: Policy, consent: &Consent) -> Result<()> {
    let missing = missing_columns(relid, &policy)?;
    let is_complete = missing.statements.is_empty();
    let new_columns = consequences::new_columns(relid, &policy);
    if let (true, Some(ttl), Some(document)) = (
        missing.replaces_override,
        &policy.ttl_column,
        &policy.document_column,
    ) {
        // As long as there is a label, its columns cannot be dropped.
        seclabel::set(relid, None);
        document_column::drop_override(relid, ttl, document)?;
    }
    let table = qualified_name(relid);
    let ordinary = format!(
        "To make it an ordinary table, first run: ALTER TABLE {table} NOT OF; otherwise, {NO_NEW_COLUMN}"
    );
    let ttl = quote_identifier(policy.ttl_column.as_deref().unwrap_or_default());
    let invalid = format!(
        "Overrides are the numbers for which ttl.is_override() is true. To let the other rows follow the default, first run: UPDATE {table} SET {ttl} = NULL WHERE NOT ttl.is_override({ttl});"
    );
    // PostgreSQL adds no column to a table whose row type a column has, nor to one of a composite type.
    let hints = [
        (PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, NO_NEW_COLUMN),
        (PgSqlErrorCode::ERRCODE_TOO_MANY_COLUMNS, NO_NEW_COLUMN),
        (PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, &ordinary),
        (PgSqlErrorCode::ERRCODE_CHECK_VIOLATION, &invalid),
    ];
    for statement in missing.statements {
        rewording::hinting_at_each(&hints, || cluster::alter(relid, &statement))?;
    }
    policy.added = missing.added;
    if !is_complete && !missing_columns(relid, &policy)?.statements.is_empty() {
        return Err(cluster::renamed(&table));
    }
    label_provider::check_columns(relid, &policy)?;
    write_label::change(relid, &mut policy, consent)?;
    let Some(columns) = cache::policy(relid) else {
        return Err(Error::no_policy(relid));
    };
    let pending = policy.build_pending;
    policy.build_pending = indexes::is_work_left(relid, &policy, &columns);
    if policy.build_pending
        && let Some(warning) = cannot_create(relid)
    {
        warning.warn();
    }
    if !policy.build_pending && indexes::are_missing(relid, &policy, &columns) {
        let build = || indexes::build_missing(relid, &policy, &columns);
        let built = match cannot_create(relid).and_then(|error| error.hint) {
            Some(hint) => rewording::hinting_at_missing_privileges(&hint, build),
            None => build(),
        }?;
        // Another index may have taken the name of a dropped one.
        policy
            .added
            .indexes
            .retain(|name| index_of(relid, name).is_some() && !built.contains(name));
        policy.added.indexes.extend(built);
        seclabel::set(relid, Some(&policy));
    } else if pending != policy.build_pending {
        seclabel::set(relid, Some(&policy));
    }
    trigger_placement::sync(relid);
    consequences::tell_of_new_columns(relid, &new_columns);
    Ok(())
}

/// That no index can be built as the table's owner, if none can.
fn cannot_create(relid: pg_sys::Oid) -> Option<Error> {
    let class = catalog::class(relid)?;
    if roles::may_create_in_schema(class.namespace, class.owner) {
        return None;
    }
    let (owner, schema) = (
        catalog::quote_identifier(&roles::name(class.owner)),
        catalog::schema_name(class.namespace),
    );
    Some(
        Error::for_warning(format!(
            "the index for deletion of table {} cannot be built",
            qualified_name(relid)
        ))
        .detail(format!("It is built as the owner of the table, {owner}, who may not create anything in schema {schema}."))
        .hint(format!("To allow it, run: GRANT CREATE ON SCHEMA {schema} TO {owner}; To do without an index, give index => 'none'.")),
    )
}
