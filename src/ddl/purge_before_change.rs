//! A change of policy does not revive expired rows, unless the user asks for that
//! (docs/decisions/0018-turning-off-purges-first.md).

use crate::citus::{self, placements};
use crate::clock::held::{self, Held};
use crate::deletion::purge_tables;
use crate::error::{Error, Result};
use crate::pg::catalog::inheritance::Topmost;
use crate::pg::catalog::{self, index, timescale};
use crate::pg::server::background;
use crate::pg::session::rewording;
use crate::policy::Policy;
use crate::settings;
use crate::store::{Inherited, cache, governing_label, policy_lock, succession};
use pgrx::pg_sys;

/// How many times deletion is tried before the remaining rows count as kept.
const ROUNDS: u32 = 10;

/// For rows that cannot be deleted.
const HINT: &str = "Expired rows must be deleted before this change. Remove what prevents that, or bring the rows back with revive_expired => true of ttl.set_default(), ttl.disable() or ttl.expire_index().";

/// Why expired rows stay on disk.
const CHANGED: &str = "An earlier change expired them, and this change would make them visible again. \"ttl.change_delay\" keeps them on disk.";
const CLOCK_WAS_SET: &str = "The system clock was set by more than a minute, or the server was down for so long. In case the clock is wrong, \"ttl.change_delay\" keeps expired rows on disk.";

const RECOVERED: &str = "The server has recovered, and \"ttl.timeline\" is that of the time before, which keeps expired rows on disk.";

pub(super) fn reason(held: Held) -> &'static str {
    match held {
        Held::ByClock => CLOCK_WAS_SET,
        Held::ByRecovery => RECOVERED,
    }
}

/// Before the table's policy changes to `to` (`None`: to none), deletes the expired rows that the
/// change would revive. Returns an error if some cannot be deleted.
///
/// The caller holds the table lock for the change. This takes the policy lock before it deletes, so
/// that no worker's batch runs until the end of the transaction.
pub(crate) fn prevent(relid: pg_sys::Oid, to: Option<&Policy>, children_lock: u32) -> Result<()> {
    let tree = catalog::all_inheritors(relid);
    let revived = |&table: &pg_sys::Oid| {
        let label = governing_label(table)?;
        let policy = &label.policy;
        // The policy of a first parent stays in force. That of another, or a child's own, is replaced, maybe by one
        // with other columns.
        let is_own = label.labelled_table == relid;
        let to = to.filter(|_| is_own);
        let would_govern = || succession::would_govern(relid, table, &mut Topmost::default());
        let is_replaced = is_own || would_govern();
        (is_replaced && policy.revives(to)).then_some((table, label, to))
    };
    if !tree.iter().any(|table| revived(table).is_some()) {
        return Ok(());
    }
    if timescale::has_columnstore(relid) {
        return Err(Error::columnstore(
            relid,
            "delete the expired rows of",
            " Or let them live again: ttl.disable(..., revive_expired => true).",
        ));
    }
    if citus::is_shell(relid) {
        // Before this transaction locks anything that a shard's might wait for.
        let purged = citus::call(relid, "ttl_internal.purge_strictly", &[]);
        let purged = purged.map_err(|error| error.or_hint(HINT))?;
        tell(relid, placements::sum(&purged)?.unsigned_abs());
        return Ok(());
    }
    purge_tables::lock_tree(relid, children_lock);
    let mut deleted = 0;
    for (table, label, to) in tree.iter().filter_map(revived) {
        policy_lock::lock_policy_for_change(label.labelled_table);
        deleted += clear(table, &label, to)?;
    }
    tell(relid, deleted);
    Ok(())
}

/// Says how many rows have been deleted.
fn tell(relid: pg_sys::Oid, deleted: u64) {
    if deleted == 0 {
        return;
    }
    let table = catalog::qualified_name(relid);
    let rows = match deleted {
        1 => "1 expired row".to_owned(),
        count => format!("{count} expired rows"),
    };
    Error::for_notice(format!("deleted {rows} of table {table}"))
        .detail("The change would have made them visible again.")
        .notice();
}

/// Deletes the expired rows of one table, of which `label` is in force. Returns how many; an error
/// if one stays.
fn clear(table: pg_sys::Oid, label: &Inherited, to: Option<&Policy>) -> Result<u64> {
    if label.policy.restored {
        if purge_tables::has_expired(table) {
            return Err(Error::restored_rows_in_the_way(label.labelled_table));
        }
        return Ok(0);
    }
    let waits = label
        .policy
        .waits_until(background::now(), settings::change_delay());
    let why = match waits {
        Some(_) => Some(CHANGED),
        None => held::why().map(reason),
    };
    if let Some(why) = why
        && purge_tables::has_expired(table)
    {
        return Err(held_back(label, to, why));
    }
    let deleted = rewording::hinting(HINT, || empty(table)).map_err(|error| error.or_hint(HINT))?;
    let is_copy = cache::policy(table).is_some_and(|policy| policy.is_reference_shard);
    if is_copy && purge_tables::has_any_expired(table) {
        return Err(kept_in_copies(label.labelled_table));
    }
    Ok(deleted)
}

/// The error if rows of a reference table have expired so recently that they stay in all its copies.
fn kept_in_copies(relid: pg_sys::Oid) -> Error {
    let name = catalog::qualified_name(relid);
    Error::not_ready(format!(
        "expired rows of reference table {name} are not deleted yet"
    ))
    .detail(format!(
        "They stay on disk for {} seconds, so that all copies of the table are equal.",
        citus::REFERENCE_MARGIN
    ))
    .hint(HINT)
}

/// As [`prevent`] on the table of Citus, for one of its shards and what inherits from that: nothing
/// that is expired by the present policy stays. The caller has locked it.
pub(crate) fn clear_shard(relid: pg_sys::Oid) -> Result<u64> {
    let mut deleted = 0;
    for table in purge_tables::lock_tree(relid, pg_sys::RowExclusiveLock) {
        if let Some(label) = governing_label(table) {
            deleted += clear(table, &label, None)?;
        }
    }
    Ok(deleted)
}

/// The error if rows are kept because an earlier change has expired them (C24), or perhaps a wrong clock: this one may be
/// meant to undo that, and must not delete them without a word.
fn held_back(label: &Inherited, to: Option<&Policy>, why: &str) -> Error {
    let name = catalog::qualified_name(label.labelled_table);
    let purge = format!("SELECT ttl.purge({});", catalog::quote_literal(&name));
    let calls = reviving_calls(label, to);
    let hint = match calls.as_slice() {
        // Documents begin to override.
        [] => format!("To delete them, first run: {purge}"),
        calls => format!(
            "To bring them back, run: {} To delete them first, run: {purge}",
            calls.join(" ")
        ),
    };
    Error::not_ready(format!(
        "expired rows of table {name} can still be brought back"
    ))
    .detail(why)
    .hint(hint)
}

/// The calls that make the same change and bring the rows back.
fn reviving_calls(label: &Inherited, to: Option<&Policy>) -> Vec<String> {
    let relid = label.labelled_table;
    let table = catalog::quote_literal(&catalog::qualified_name(relid));
    let Some(to) = to.filter(|to| to.is_on()) else {
        return vec![format!(
            "SELECT ttl.disable({table}, revive_expired => true);"
        )];
    };
    let shown = |seconds: Option<i32>| seconds.map_or("NULL".to_owned(), |it| it.to_string());
    let default = label.policy.revives_by_default(to).then(|| {
        let seconds = shown(to.default_ttl);
        format!("SELECT ttl.set_default({table}, {seconds}, revive_expired => true);")
    });
    let rules = label.policy.reviving_rules(to).map(|rule| {
        let index = catalog::quote_literal(&index::qualified_name(relid, &rule.index));
        let new = to.rule(&rule.index);
        let seconds = shown(new.map(|new| new.expire_after_seconds));
        let zone = new
            .filter(|new| new.time_zone != rule.time_zone)
            .map(|new| {
                let zone = catalog::quote_literal(new.time_zone.as_deref().unwrap_or("UTC"));
                format!(", time_zone => {zone}")
            });
        format!(
            "SELECT ttl.expire_index({index}, {seconds}{}, revive_expired => true);",
            zone.unwrap_or_default()
        )
    });
    default.into_iter().chain(rules).collect()
}

/// Deletes until nothing is left: meanwhile other sessions may commit rows that have already
/// expired, and the owner's triggers may write some.
fn empty(relid: pg_sys::Oid) -> Result<u64> {
    let mut deleted = 0;
    for _ in 0..ROUNDS {
        if !purge_tables::has_expired(relid) {
            return Ok(deleted);
        }
        match purge_tables::delete_from(relid)? {
            0 => break,
            rows => deleted += rows,
        }
    }
    if purge_tables::has_expired(relid) {
        return Err(Error::expired_rows_kept(relid));
    }
    Ok(deleted)
}
