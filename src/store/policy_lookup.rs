//! From a relation to the policy that is in force for it.

use super::predicate::TrustedExpression;
use super::table_policy::{Clock, DateSource, Inherited, Rule, TablePolicy};
use super::time_zone::TimeZone;
use super::ttl_index::{TtlIndex, TtlKey};
use super::{expiry_index, ttl_index};
use crate::citus::{self, CitusRole};
use crate::pg::catalog::{self, Attribute};
use crate::pg::catalog::{index, names};
use crate::policy::IndexRule;
use pgrx::pg_sys;

/// The policy in force for a relation, from its governing label and the catalogs.
pub(super) fn look_up(relid: pg_sys::Oid, label: Inherited) -> Option<TablePolicy> {
    let Inherited {
        labelled_table,
        policy,
    } = label;
    let rules = policy
        .rules
        .iter()
        .filter_map(|rule| look_up_rule(relid, labelled_table, rule))
        .collect();
    // A policy whose columns do not fit is not in force, so that rows live.
    let clock = match &policy.ts_column {
        Some(ts) => Some(look_up_clock(relid, ts, policy.ttl_column.as_deref())?),
        None => None,
    };
    let part = citus::part(relid);
    let is_reference_shard =
        matches!(part, Some(CitusRole::Shard(shell)) if citus::is_replicated(shell));
    let deletion_lag = match part {
        Some(CitusRole::Shard(_)) if is_reference_shard => citus::REFERENCE_MARGIN,
        Some(CitusRole::Shard(_)) if policy.drop_partitions && catalog::is_partition(relid) => {
            citus::PARTITIONS_FIRST
        }
        _ => 0,
    };
    Some(TablePolicy {
        clock,
        keep_expired: policy.keep_expired.saturating_add(deletion_lag),
        label: policy,
        rules,
        labelled_table,
        part,
        is_reference_shard,
    })
}

fn look_up_clock(relid: pg_sys::Oid, ts: &str, ttl: Option<&str>) -> Option<Clock> {
    Some(Clock {
        ts: typed(relid, ts, pg_sys::TIMESTAMPTZOID)?,
        ttl: match ttl {
            Some(name) => Some(typed(relid, name, pg_sys::INT4OID)?),
            None => None,
        },
    })
}

/// The index of that name, if it is one of the labelled table's.
pub(crate) fn index_of(labelled_table: pg_sys::Oid, name: &str) -> Option<pg_sys::Oid> {
    let schema = catalog::class(labelled_table)?.namespace;
    let index = names::relation(schema, name)?;
    (index::table_of(index) == Some(labelled_table)).then_some(index)
}

/// The TTL index as it applies to the relation. `None` if it is not in force, so that rows live:
/// it is missing (a dump is being restored), not valid, or of a kind by which no row can expire.
/// `ttl.problems` tells.
fn look_up_rule(relid: pg_sys::Oid, labelled_table: pg_sys::Oid, rule: &IndexRule) -> Option<Rule> {
    let index = ttl_index::read(index_of(labelled_table, &rule.index)?)?.ok()?;
    if !index.is_valid || without_its_index(labelled_table, &index).is_some() {
        return None;
    }
    let (key, date) = match index.key {
        TtlKey::Column(attno) => {
            let name = catalog::column_name(labelled_table, attno);
            let (column, date) = ttl_index::date_column(relid, &name)?;
            (DateSource::Column(column, name), date)
        }
        TtlKey::Expression(expression) if relid != labelled_table => {
            let expression = expression.translate(labelled_table, relid)?;
            (DateSource::Expression(expression), index.date)
        }
        TtlKey::Expression(expression) => (DateSource::Expression(expression), index.date),
    };
    let predicate = match index.predicate {
        Some(predicate) if relid != labelled_table => {
            Some(predicate.translate(labelled_table, relid)?)
        }
        predicate => predicate,
    };
    // A zone that the server does not know says nothing.
    let time_zone = match &rule.time_zone {
        Some(name) if date.is_local() => Some(TimeZone::named(name)?),
        _ => None,
    };
    Some(Rule {
        index: rule.index.clone(),
        time_zone,
        key,
        date,
        seconds: rule.expire_after_seconds,
        predicate,
    })
}

/// M14: a table that inherits from the labelled one, is no partition, and lacks the index of an
/// expression: for its rows the expression may raise an error, which readers would get.
pub(crate) fn without_its_index(
    labelled_table: pg_sys::Oid,
    index: &TtlIndex,
) -> Option<pg_sys::Oid> {
    let TtlKey::Expression(expression) = &index.key else {
        return None;
    };
    catalog::class(labelled_table).filter(|class| class.has_rows() && class.may_have_children)?;
    let lacks = |&table: &pg_sys::Oid| {
        let of_child = |tree: &TrustedExpression| tree.translate(labelled_table, table);
        let predicate = index.predicate.as_ref().map(of_child);
        let (Some(expression), None | Some(Some(_))) = (of_child(expression), &predicate) else {
            return true;
        };
        let predicate = predicate.flatten();
        expiry_index::find_by_expression(table, &expression, index.date, predicate.as_ref())
            .is_empty()
    };
    let mut children = catalog::all_inheritors(labelled_table).into_iter();
    children.find(|table| *table != labelled_table && lacks(table))
}

fn typed(relid: pg_sys::Oid, name: &str, type_oid: pg_sys::Oid) -> Option<Attribute> {
    catalog::attribute(relid, name).filter(|column| column.type_oid == type_oid)
}
