//! The two schemas in which a sequence runs: `a`, whose tables have TTL, and
//! `b` without, the expired rows of which are deleted before every statement.

use super::answer::Answer;
use super::generator::{Step, Way};
use super::schema::{Schema, Table};
use crate::{Database, Session};

/// One of the schemas.
pub(super) struct Side {
    pub(super) session: Session,
    name: &'static str,
    /// Without TTL: expired rows are deleted before every statement.
    plain: bool,
    /// In a transaction; with a savepoint.
    pub(super) open: bool,
    saved: bool,
    /// There may be expired rows to delete.
    stale: bool,
}

/// Settings of both sides beside TTL: rows are read in key order, so that their place on disk does
/// not matter.
const ORDERED: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET client_min_messages = error";

/// What TTL does, by a plain trigger and a plain DELETE (C1).
pub(super) const STAMP: &str = "
CREATE FUNCTION public.stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT current_setting('ttl.preserve_ts')::boolean THEN NEW._ts := now(); END IF;
    RETURN NEW;
END $$";

impl Side {
    pub(super) fn new(database: &Database<'_>, name: &'static str, plain: bool) -> Side {
        let mut session = database.connect();
        session.run(&format!("SET search_path = {name}; {ORDERED}"));
        Side {
            session,
            name,
            plain,
            open: false,
            saved: false,
            stale: false,
        }
    }

    /// Make the tables anew.
    pub(super) fn build(&mut self, schema: &Schema) {
        let name = self.name;
        self.session.run(&format!(
            "DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"
        ));
        self.session.run(&self.script(schema));
        self.stale = false;
    }

    /// What makes the tables.
    pub(super) fn script(&self, schema: &Schema) -> String {
        if !self.plain {
            return schema.sql(|table| table.prepare() + &table.enable());
        }
        let tables = schema.sql(|table| {
            let name = table.name;
            format!("CREATE TRIGGER stamp BEFORE UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION stamp();")
        }).replace("stamp()", "public.stamp()");
        let reap = schema.expiring().map(|table| {
            let (name, ttl) = (table.name, table.ttl.unwrap_or(-1));
            format!(
                "DELETE FROM {}.{name} WHERE CASE coalesce(ttl, {ttl}) WHEN -1 THEN false
                   ELSE _ts + coalesce(ttl, {ttl}) * interval '1 second' <= clock_timestamp() END;",
                self.name
            )
        });
        // No referential action is for rows that nobody sees.
        format!(
            "{tables} CREATE FUNCTION reap() RETURNS void LANGUAGE plpgsql
             SET session_replication_role = replica AS $$ BEGIN {} END $$",
            reap.collect::<String>()
        )
    }

    /// Empty the tables. A policy that the sequence has changed is as it was.
    pub(super) fn clear(&mut self, schema: &Schema, policies: bool) {
        // TRUNCATE takes ten times as long.
        let mut script =
            "SET session_replication_role = replica; SET ttl.show_expired = on;".to_owned();
        for table in &schema.tables {
            script += &format!("DELETE FROM {};", table.name);
        }
        script += "RESET session_replication_role; RESET ttl.show_expired;";
        if policies {
            script.extend(schema.expiring().map(Table::enable));
        }
        self.session.run(&script);
        self.stale = false;
    }

    /// Run a step, and leave the session so that it can go on.
    pub(super) fn step(&mut self, step: &Step) -> Answer {
        if self.is_misplaced(step) {
            return Answer::LeftOut;
        }
        if self.stale && self.plain {
            self.session.run("SELECT reap()");
            self.stale = false;
        }
        let answer = self.run(step);
        self.stale |= step.way == Way::Preserving;
        let done = !matches!(answer, Answer::Failed(_));
        match step.sql.as_str() {
            "COMMIT" => self.ended(),
            "ROLLBACK" => self.ended(),
            "SAVEPOINT s" => self.saved = true,
            "ROLLBACK TO s" => self.stale = true,
            sql if sql.starts_with("BEGIN") => self.open = true,
            _ if !done && self.saved => drop(self.session.try_run("ROLLBACK TO s")),
            _ if !done && self.open => {
                self.session.run("ROLLBACK");
                self.ended();
            }
            _ => {}
        }
        self.stale |= !done;
        answer
    }

    fn is_misplaced(&self, step: &Step) -> bool {
        match step.sql.as_str() {
            "COMMIT" | "ROLLBACK" | "SAVEPOINT s" => !self.open,
            "ROLLBACK TO s" => !self.saved,
            sql if sql.starts_with("SET CONSTRAINTS") => !self.open,
            sql if sql.starts_with("BEGIN") => self.open,
            _ => step.alone && self.open || step.way == Way::Policy && self.plain,
        }
    }

    /// Rolls back what a fault left open.
    pub(super) fn abandon(&mut self) {
        self.session.run("ROLLBACK");
        self.ended();
    }

    fn ended(&mut self) {
        self.open = false;
        self.saved = false;
        // A rollback restores rows that were really deleted.
        self.stale = true;
    }

    fn run(&mut self, step: &Step) -> Answer {
        let sql = &step.sql;
        match step.way {
            Way::Simple | Way::Policy => Answer::of(self.session.try_run(sql)),
            Way::Extended => Answer::count(self.session.client.execute(sql, &[])),
            Way::Preserving => Answer::of(self.session.try_run(&format!(
                "SET ttl.preserve_ts = on; {sql}; SET ttl.preserve_ts = off"
            ))),
            Way::Copy => self.copy(sql),
        }
    }

    /// In a transaction: the client would lose an error that comes with its end.
    fn copy(&mut self, sql: &str) -> Answer {
        let (copy, rows) = sql.split_once('\n').unwrap_or((sql, ""));
        if !self.open {
            self.session.run("BEGIN");
        }
        let answer = Answer::count(self.session.copy_in(copy, &format!("{rows}\n")));
        if self.open {
            return answer;
        }
        match Answer::of(self.session.try_run("COMMIT")) {
            Answer::Failed(failure) => Answer::Failed(failure),
            _ => answer,
        }
    }

    /// The rows that the session sees, but for their times.
    pub(super) fn contents(&mut self, schema: &Schema) -> Vec<String> {
        if self.stale && self.plain {
            self.session.run("SELECT reap()");
        }
        contents(&mut self.session, schema)
    }
}

/// The rows that a session sees, but for their times.
pub(super) fn contents(session: &mut Session, schema: &Schema) -> Vec<String> {
    let rows = schema.tables.iter().map(|table| {
        let name = table.name;
        format!("SELECT '{name}', id, k, val, pid, up, ttl FROM {name}")
    });
    let query = rows.collect::<Vec<_>>().join(" UNION ALL ");
    let mut rows = session.column(&query);
    rows.sort_unstable();
    rows
}
