//! `CREATE TABLE … (LIKE source INCLUDING ALL)`: the new table gets the source's policy (C33).

use super::building::apply;
use super::label;
use super::mass_expiry::Consent;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::catalog::{self, qualified_name};
use crate::pg::{encoding, index, session};
use crate::policy::Policy;
use crate::store::governing_label;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Gives the new table the policy that is in force for the source, if there is one; false if not.
pub(super) fn copy_policy(relid: pg_sys::Oid, source: pg_sys::Oid) -> Result<bool> {
    let Some(inherited) = governing_label(source) else {
        return Ok(false);
    };
    let class = catalog::class(relid).filter(|class| !class.is_partition);
    let Some(class) = class.filter(|_| governing_label(relid).is_none()) else {
        // Its parent's policy holds.
        return Ok(false);
    };
    let labelled_table = inherited.labelled_table;
    let mut policy = Policy {
        table_oid: Some(relid.to_u32()),
        // It has no rows that the source's last change could have expired.
        shortened: None,
        paused_until: None,
        // Those that are not copied are built at once.
        build_pending: false,
        ..(*inherited.policy).clone()
    };
    policy.drop_partitions &= class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE;
    // EXCLUDING GENERATED makes the override an ordinary column.
    let is_generated =
        |name: &String| catalog::attribute(relid, name).is_some_and(|column| column.generated);
    if !policy.ttl_column.as_ref().is_some_and(is_generated) {
        policy.document_column = None;
    }
    let copies = session::with_safe_search_path(|| Copies::of(labelled_table, relid))?;
    policy
        .rules
        .retain_mut(|rule| match copies.name(&rule.index) {
            Some(copy) => {
                rule.index = copy;
                true
            }
            None => {
                not_copied(relid, &rule.index).notice();
                false
            }
        });
    policy.added.indexes = policy
        .added
        .indexes
        .iter()
        .filter_map(|name| copies.name(name))
        .collect();
    if policy.ts_column.is_none() {
        label::write(relid, &policy);
        trigger_placement::sync(relid);
        return Ok(true);
    }
    let consent = Consent {
        confirmed: true,
        call: String::new(),
    };
    apply(relid, || Ok(policy.clone()), &consent)?;
    Ok(true)
}

/// Which index of the new table is the copy of which index of the source: PostgreSQL gives copies
/// names of their own.
struct Copies(Vec<(String, String)>);

impl Copies {
    fn of(source: pg_sys::Oid, relid: pg_sys::Oid) -> Result<Self> {
        let mut new: Vec<(String, String)> = vec![];
        for index in index::list(relid) {
            new.push((definition(index)?, catalog::relation_name(index)));
        }
        let mut pairs = vec![];
        for index in index::list(source) {
            let definition = definition(index)?;
            if let Some(at) = new.iter().position(|(of, _)| *of == definition) {
                pairs.push((catalog::relation_name(index), new.swap_remove(at).1));
            }
        }
        Ok(Self(pairs))
    }

    fn name(&self, of: &str) -> Option<String> {
        let mut pairs = self.0.iter();
        pairs
            .find(|(source, _)| source == of)
            .map(|(_, copy)| copy.clone())
    }
}

/// What an index and its copy have in common.
fn definition(index: pg_sys::Oid) -> Result<String> {
    let query = format!(
        "SELECT pg_catalog.concat_ws(' ', c.relam, i.indisunique, i.indclass, i.indoption, \
           (SELECT pg_catalog.string_agg(pg_catalog.pg_get_indexdef(i.indexrelid, k, true), ',' ORDER BY k) \
              FROM pg_catalog.generate_series(1, i.indnatts) AS k), \
           pg_catalog.pg_get_expr(i.indpred, i.indrelid)) \
         FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c \
           ON c.oid OPERATOR(pg_catalog.=) i.indexrelid \
         WHERE i.indexrelid OPERATOR(pg_catalog.=) {}",
        index.to_u32()
    );
    let query = encoding::query(&query);
    let found = Spi::connect_mut(|client| {
        client
            .update(&query, Some(1), &[])?
            .first()
            .get_one::<String>()
    })?;
    Ok(found.unwrap_or_default())
}

fn not_copied(relid: pg_sys::Oid, index: &str) -> Error {
    let table = qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("TTL index \"{index}\" has no copy on table {table}"),
    )
    .hint("Its rows do not expire by that date. Create the index and call ttl.expire_index().")
}
