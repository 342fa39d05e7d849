//! What is no fault: what PostgreSQL allows by itself, and what the visit necessarily allows. The
//! second list is short on purpose.

use super::carriers::{Carrier, equivalent, equivalent_for_rows};
use super::judge::{CRASH, Effects, FAILED, HELD, RAN, SHARED};
use super::statements;
use super::visitors::{Kind, Visitor};

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// None of the attacker's code ran in the probe: no attempt can do more.
    NoCode,
    /// Nothing happened but what must.
    Quiet,
    /// The same happens on a plain server.
    Plain,
    /// The table's owner can have it on a plain server by a trigger that this statement fires, or by
    /// a statement that does the same to the table.
    Equivalent,
    /// It did not happen again when repeated.
    Unsteady,
    /// The extension allows what PostgreSQL does not.
    Fault,
}

/// What does not follow from the nature of the visit.
pub(super) fn unexpected(
    carrier: &Carrier,
    visitor: &Visitor,
    attempt: &str,
    effects: &Effects,
) -> Effects {
    let natural = |effect: &String| match visitor.kind {
        Kind::Look => false,
        _ if effect == RAN => true,
        // Policies of row-level security run as whoever reads, in ttl.preview as in a SELECT. But
        // they leave nothing here.
        Kind::Act if is_read_by_rls(carrier, visitor) && !effect.starts_with("left") => true,
        // PostgreSQL lets it pass in its own security-restricted operations (REINDEX, REFRESH).
        Kind::Act | Kind::Ddl | Kind::Write | Kind::Parent if effect == "left an advisory lock" => {
            true
        }
        // Who may refer to a row can keep it, and so what it refers to: by a foreign key without an
        // action, no code is needed for it.
        Kind::Parent if effect.starts_with(FAILED) => true,
        Kind::Parent if carrier.stranger && effect == HELD => true,
        // Whoever names a table is served as its code serves them. But one's own table is dropped
        // whatever the code of others says.
        Kind::Act | Kind::Ddl | Kind::Write => {
            let own = visitor.name.starts_with("drop_parent");
            !own && (effect.starts_with(FAILED) || effect == HELD && attempt == "stubborn")
        }
        Kind::Batch | Kind::Partition | Kind::Build | Kind::Parent | Kind::Control => false,
    };
    let rest = effects.iter().filter(|effect| !natural(effect));
    rest.cloned().collect()
}

fn is_read_by_rls(carrier: &Carrier, visitor: &Visitor) -> bool {
    visitor.name.starts_with("preview")
        && visitor.name.ends_with("_by_user")
        && carrier.name.starts_with("policy")
}

/// What the table's owner could have made in place of this carrier, with the visit that would fire
/// it on a plain server. Not for a carrier at somebody else's table.
pub(super) fn instead(carrier: &Carrier, visitor: &Visitor) -> Option<(Carrier, Visitor)> {
    if carrier.stranger {
        return None;
    }
    let mut visitor = visitor.clone();
    match visitor.kind {
        Kind::Write if visitor.name.starts_with("update") => {
            Some((equivalent("UPDATE", carrier), visitor))
        }
        // A statement's trigger that fails before the first row has come ends the session of a
        // client that sends rows nevertheless.
        Kind::Write if visitor.name.starts_with("copy") => {
            Some((equivalent_for_rows("INSERT OR UPDATE", carrier), visitor))
        }
        Kind::Write => Some((equivalent("INSERT OR UPDATE", carrier), visitor)),
        Kind::Parent => {
            let (_, action, dead) = statements::PARENTS[0];
            (visitor.action, visitor.dead) = (action, dead);
            Some((equivalent("DELETE", carrier), visitor))
        }
        // It rewrites the table, by the owner's own ALTER TABLE or by a superuser's.
        Kind::Act if visitor.name.starts_with("enable_documents") => {
            (visitor.kind, visitor.same, visitor.before) = (Kind::Ddl, true, "");
            visitor.sql = statements::REWRITE;
            Some((carrier.clone(), visitor))
        }
        // These read the table, by a SELECT of the visitor's.
        Kind::Act
            if ["is_live", "live_view"]
                .iter()
                .any(|name| visitor.name.starts_with(name)) =>
        {
            (visitor.kind, visitor.same, visitor.dead) = (Kind::Control, true, true);
            visitor.before = "";
            visitor.sql = statements::CONTROLS[0].1;
            Some((carrier.clone(), visitor))
        }
        _ => None,
    }
}

/// The worst of some effects, by which faults are counted.
pub(super) fn worst(effects: &Effects) -> String {
    let order = [
        CRASH,
        "became superuser",
        "became",
        "was granted",
        "made a table",
        "read a secret",
        "code ran as superuser",
        "code ran as another",
        SHARED,
        "left the role",
        "left the user",
        "left",
        "others",
        "the visitor",
        FAILED,
        RAN,
    ];
    let first = order
        .iter()
        .find_map(|start| effects.iter().find(|e| e.starts_with(start)));
    first.cloned().unwrap_or_default()
}
