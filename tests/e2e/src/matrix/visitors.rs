//! Visitors: who uses the table, and the same visit on a server without the extension.

use super::statements;

/// In whose session, and so with whose rights, the code would run if nothing prevented it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// The superuser, in a session of their own.
    Super,
    /// Another user, who has been granted what the statement takes.
    Victim,
    /// A background worker.
    Worker,
    /// `pg_dump`, as superuser.
    Dump,
    /// The apply of logical replication, for a superuser's subscription.
    Apply,
}

/// What kind of visit it is, which decides what is allowed by nature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A worker deletes rows.
    Batch,
    /// A worker looks whether a partition can be dropped, and drops it.
    Partition,
    /// A constraint is checked and an index is built in the background; then rows are deleted.
    Build,
    /// Looks at what there is: runs no code at all, and never fails.
    Look,
    /// A function about this one table: nothing is gained, but it may fail with the table's code.
    Act,
    /// A statement of PostgreSQL's own that defines something.
    Ddl,
    /// A statement that writes rows, and meets expired ones.
    Write,
    /// A deletion of rows that others refer to.
    Parent,
    /// Nothing of the extension is involved: checks that the comparison is sound.
    Control,
}

/// One visit.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) name: String,
    pub(super) who: Who,
    pub(super) kind: Kind,
    /// The statement; empty for a worker and `pg_dump`. `{s}` is the case's schema.
    pub(super) sql: &'static str,
    /// Whether the same statement is the measure on a plain server; otherwise nobody comes by
    /// there, and nothing at all may be gained.
    pub(super) same: bool,
    /// Whether the expired rows are there on the plain server, as ordinary ones.
    pub(super) dead: bool,
    /// What the table's owner does beforehand, where the extension is.
    pub(super) before: &'static str,
    /// The action of the foreign key of the table to its parent.
    pub(super) action: &'static str,
    /// What the victim makes in each database once the table is there.
    pub(super) beside: &'static str,
    /// Whether the table has an archive, where the extension is.
    pub(super) archives: bool,
    /// Whether the attacker may log in: before 17 nothing can be connected as one who may not.
    pub(super) login: bool,
}

/// All of them, in an order that stays.
pub(super) fn all() -> Vec<Visitor> {
    let mut all = Vec::new();
    for (login, suffix) in [(true, ""), (false, "_nologin")] {
        for (name, kind, before, archives) in [
            ("worker", Kind::Batch, "", false),
            ("worker_seen", Kind::Batch, statements::NOT_HIDDEN, false),
            ("worker_archive", Kind::Batch, "", true),
            ("worker_partition", Kind::Partition, "", false),
            ("builder", Kind::Build, "", false),
        ] {
            let mut visitor = visitor(&format!("{name}{suffix}"), Who::Worker, kind, "");
            (visitor.before, visitor.archives, visitor.login) = (before, archives, login);
            all.push(visitor);
        }
    }
    let mut both = |kind: Kind, name: &str, sql: &'static str, change: &dyn Fn(&mut Visitor)| {
        for (who, suffix) in [(Who::Super, ""), (Who::Victim, "_by_user")] {
            let mut visitor = visitor(&format!("{name}{suffix}"), who, kind, sql);
            change(&mut visitor);
            all.push(visitor);
        }
    };
    for (name, sql) in statements::LOOKS {
        both(Kind::Look, name, sql, &|_| ());
    }
    for (name, sql, before) in statements::ACTS {
        both(Kind::Act, name, sql, &|v| v.before = before);
    }
    for (name, sql, dead) in statements::DDL {
        both(Kind::Ddl, name, sql, &|v| (v.same, v.dead) = (true, dead));
    }
    for (name, sql) in statements::WRITES {
        both(Kind::Write, name, sql, &|v| v.same = true);
    }
    for (name, sql) in statements::REFERENCES {
        both(Kind::Write, name, sql, &|v| {
            (v.same, v.beside) = (true, statements::REFERRING);
        });
    }
    for (name, action, dead) in statements::PARENTS {
        both(Kind::Parent, name, "DELETE FROM {s}.p WHERE id = 1", &|v| {
            (v.same, v.dead, v.action) = (true, dead, action);
        });
    }
    for (name, sql) in statements::CONTROLS {
        both(Kind::Control, name, sql, &|v| {
            (v.same, v.dead) = (true, true)
        });
    }
    let mut dump = visitor("pg_dump", Who::Dump, Kind::Control, "");
    (dump.same, dump.dead) = (true, true);
    all.push(dump);
    let mut apply = visitor("apply", Who::Apply, Kind::Write, "");
    apply.same = true;
    all.push(apply);
    all
}

fn visitor(name: &str, who: Who, kind: Kind, sql: &'static str) -> Visitor {
    Visitor {
        name: name.to_owned(),
        who,
        kind,
        sql,
        same: false,
        dead: false,
        before: "",
        action: "CASCADE",
        beside: "",
        archives: false,
        login: true,
    }
}

impl Visitor {
    /// Whether only the owner or a superuser can do it.
    pub(super) fn takes_ownership(&self) -> bool {
        self.kind == Kind::Ddl && !self.name.starts_with("drop_parent")
            || self.kind == Kind::Act && !self.name.starts_with("preview")
            || self.name.starts_with("reindex")
            || self.name.starts_with("analyze")
    }
}
