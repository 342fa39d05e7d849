//! Statements on tables with TTL: what they must not do, what is deleted before them, and
//! what follows after them.
//!
//! | file | what |
//! |---|---|
//! | `utility_statement`, `statement_kind`, `parse` | a utility statement, taken apart once; all others ask it |
//! | `reads` | which commands read every row of a table |
//! | `trigger_guard`, `protected_columns`, `attach_needs`, `refusal` | what is refused |
//! | `purge_before_ddl` | hidden rows do not make a statement fail that reads all rows |
//! | `purge_before_change`, `drop_index` | no expired row lives again by a change of policy |
//! | `sync_trigger` | the trigger for keys is where it is needed |
//! | `sync_label`, `sync_added` | labels follow columns and indexes that are renamed or dropped |
//! | `new_references` | foreign keys by which expired rows take live ones along |
//! | `all_nodes` | labels that change on all nodes of Citus |
//! | `incoming_rows` | tables and rows that come to a policy from elsewhere |
//! | `new_problems` | what keeps rows from being deleted by a statement |
//! | `rules_in_force` | TTL indexes that a statement about another table or index puts into force, or out of it |
//! | `with_options` | `ttl.*` among a table's options: what is asked, for `api` to do |
//! | `conversion` | functions by which Citus gets a table, or gives it back |
//! | `dropped`, `lost_default` | what a statement really drops, and what takes its place |
//! | `noted` | what these and `sync_trigger` note until it ends |
//! | `added_override` | columns that look like overrides, and are none |
//! | `new_owners` | tables that come from another owner, with that one's code |
//! | `exclusive_database` | statements for which no session may be connected to a database |

mod added_override;
mod all_nodes;
mod attach_needs;
pub(crate) mod conversion;
mod drop_index;
mod dropped;
pub(crate) mod exclusive_database;
pub(crate) mod incoming_rows;
mod lost_default;
mod new_owners;
pub(crate) mod new_problems;
mod new_references;
mod noted;
mod parse;
mod protected_columns;
pub(crate) mod purge_before_change;
mod purge_before_ddl;
mod reads;
mod refusal;
mod rules_in_force;
mod statement_kind;
mod sync_added;
mod sync_label;
mod sync_trigger;
mod trigger_guard;
mod utility_statement;
pub(crate) mod with_options;

use crate::pg::abi::report::or_raise;
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, names, roles};
use crate::pg::session::scoped::{Scope, Scoped};
use crate::pg::session::xact;
use crate::store::{seclabel, succession};
use crate::visibility::referential::{self, ConstraintDdl};
use crate::worker::shared::places;
use pgrx::pg_sys;
use statement_kind::{AlterCommand, StatementKind};
use utility_statement::UtilityStatement;

struct RunningStatement {
    /// What `sync_trigger::before` returned.
    trigger: Option<sync_trigger::Tracked>,
    noted: sync_label::LabelBefore,
    /// ALTER: what `referential::CONSTRAINT_DDL` needs.
    constraint_ddl: Option<Scope>,
    /// The table whose parents it changes: what sessions have cached of inherited policies is
    /// invalidated.
    reparented: Option<pg_sys::Oid>,
    /// That, and tables below it, whose own policy is in force.
    in_force: Vec<pg_sys::Oid>,
    /// The table above whose policy is in force for it.
    policy_above: Option<pg_sys::Oid>,
    /// The table that comes under its parent's policy.
    incoming: Option<pg_sys::Oid>,
    /// Foreign keys before it.
    keys: Option<new_references::KeysBefore>,
    /// CREATE TABLE of one that is there already: with IF NOT EXISTS nothing comes.
    exists: bool,
    /// The problems before it.
    problems: Option<new_problems::ProblemsBefore>,
    /// The TTL indexes in force before it.
    rules: Vec<rules_in_force::RulesBefore>,
    /// The table that may get a column which looks like an override.
    widened: Option<pg_sys::Oid>,
    /// It may make a table of Citus, or an ordinary one.
    converts: bool,
}

static RUNNING: Scoped<RunningStatement> = Scoped::new();

/// Called before a utility statement. Returns what [`after`] needs; `None` if it has nothing to do.
pub(crate) fn before(node: Node<'_>) -> Option<Scope> {
    let statement = UtilityStatement::of(node)?;
    trigger_guard::check(&statement);
    or_raise(conversion::check(&statement));
    or_raise(all_nodes::before(&statement));
    let converts = or_raise(conversion::before_set_schema(&statement));
    // First, as it takes the strongest lock.
    let trigger = sync_trigger::before(&statement);
    if statement.kind == StatementKind::AlterTable {
        protected_columns::check_alter_table(&statement);
    }
    protected_columns::check_drop_index(&statement);
    attach_needs::check(&statement);
    purge_before_ddl::delete_expired(&statement);
    let reparented = reparented(&statement);
    // Before and after the statement: first for the old ancestors, then for the new ones.
    reparented.into_iter().for_each(forget);
    // After the checks above: they may refuse the statement.
    let noted = sync_label::before(&statement);
    // Last: the deletions above are not part of the statement.
    let altered = [
        StatementKind::AlterTable,
        StatementKind::AlterType,
        StatementKind::AlterOther,
    ]
    .contains(&statement.kind);
    let constraint_ddl = altered.then(|| {
        referential::CONSTRAINT_DDL.enter(ConstraintDdl {
            user: roles::current_user(),
            tables: [statement.relation, statement.partition()],
        })
    });
    let running = RunningStatement {
        trigger,
        noted,
        constraint_ddl,
        reparented,
        in_force: reparented.map_or(vec![], succession::in_force),
        policy_above: reparented.and_then(succession::policy_above),
        incoming: incoming_rows::table(&statement),
        keys: or_raise(new_references::before(&statement)),
        exists: node.cast().and_then(names::created).is_some(),
        problems: new_problems::before(&statement),
        rules: rules_in_force::before(&statement),
        widened: added_override::before(&statement),
        converts,
    };
    Some(RUNNING.enter(running))
}

/// Called after the statement, if it has succeeded.
pub(crate) fn after(scope: Scope, node: Node<'_>) {
    let Some(running) = RUNNING.leave(scope) else {
        return;
    };
    if let Some(scope) = running.constraint_ddl {
        referential::CONSTRAINT_DDL.leave(scope);
    }
    running.reparented.into_iter().for_each(forget);
    sync_label::after(&running.noted);
    if let Some(tracked) = running.trigger {
        sync_trigger::after(tracked, node);
        // A partition, or child, that has come to a table with a time to live.
        let created = node.cast().and_then(names::created);
        let come = created.filter(|_| !running.exists).or(running.reparented);
        if let Some(table) = come {
            // PostgreSQL invalidates its parents only.
            dropped::forget_above(catalog::ancestors(table));
            places::reserve_or_warn(table);
            incoming_rows::warn_of_other_policies(table);
            rules_in_force::warn_of_child(table);
            if running.problems.is_none() {
                new_problems::of_new(table);
            }
        }
    }
    running
        .incoming
        .into_iter()
        .for_each(incoming_rows::after_attach);
    let present = running.reparented.map_or(vec![], succession::in_force);
    let comes = |family: &pg_sys::Oid| !running.in_force.contains(family);
    let coming = present.into_iter().filter(comes);
    coming.for_each(succession::comes_into_force);
    if let (Some(table), Some(above)) = (running.reparented, running.policy_above) {
        succession::after_leaving(table, above);
    }
    rules_in_force::after(&running.rules);
    running.problems.iter().for_each(new_problems::after);
    if let Some(keys) = &running.keys {
        or_raise(new_references::after(keys));
    }
    running.widened.into_iter().for_each(added_override::after);
    if running.converts {
        conversion::after();
    }
}

/// Called when a transaction or subtransaction is rolled back, after `scoped::at_abort`. Raises no error.
pub(crate) fn at_abort() {
    sync_trigger::at_abort();
}

/// The table whose parents the statement changes, or whose index is attached, which can make a TTL
/// index valid. Of a table that is attached or detached only what is below it gets another policy:
/// not its siblings, of which there may be thousands.
fn reparented(statement: &UtilityStatement<'_>) -> Option<pg_sys::Oid> {
    let changes = |command: &AlterCommand| {
        matches!(
            command,
            AlterCommand::Inherit(_) | AlterCommand::Attach(_) | AlterCommand::Detach(_)
        )
    };
    let table = statement
        .table
        .filter(|_| statement.commands.iter().any(changes))?;
    let of_table = statement.relation == Some(table);
    statement.partition().filter(|_| of_table).or(Some(table))
}

/// Invalidates what sessions have cached of the relation, its ancestors and its children.
fn forget(relid: pg_sys::Oid) {
    xact::next_command();
    seclabel::invalidate(relid);
}
