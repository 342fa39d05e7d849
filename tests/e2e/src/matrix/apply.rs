//! The apply of logical replication as a visitor: a row arrives whose key an expired one holds.
//! A subscription for each case, so that one whose apply fails again and again ends with it.

use std::time::Duration;

use super::script::Names;
use crate::{Server, Session};

/// How long a row may take to arrive, where one can.
pub(super) const ARRIVAL: Duration = Duration::from_secs(3);

/// Triggers fire in an apply worker only if their table's owner says so. Those of views cannot be told.
pub(super) fn always(after: &str) -> String {
    let mut sql = String::new();
    for created in after.split("TRIGGER ").skip(1) {
        let name = created.split(' ').next().unwrap_or_default();
        let on = created.split_once(" ON ").map(|(_, on)| on);
        let table = on.and_then(|on| on.split(' ').next()).unwrap_or_default();
        if name.starts_with("carry") && !created.contains("INSTEAD OF") {
            sql += &format!("ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name};\n");
        }
    }
    sql
}

/// The place that rows come from: a database on a server without the library.
pub(super) struct Publisher<'a> {
    server: &'a Server,
    database: String,
    session: Session,
    /// Which subscriber it is, of those on this server.
    slot: String,
}

impl<'a> Publisher<'a> {
    /// One for the subscriber of this name.
    pub(super) fn open(server: &'a Server, slot: &str) -> Publisher<'a> {
        let database = format!("pub_{slot}");
        server.plain_database(&database);
        let mut session = server.connect(&database, "postgres");
        session.run("CREATE PUBLICATION evil FOR ALL TABLES");
        Publisher {
            server,
            database,
            session,
            slot: slot.to_owned(),
        }
    }

    /// Subscribe to a table of this case's name, and send a row.
    pub(super) fn send(
        &mut self,
        builder: &mut Session,
        names: &Names,
    ) -> Result<(), postgres::Error> {
        let table = "DROP SCHEMA IF EXISTS {s} CASCADE;
             CREATE SCHEMA {s}; CREATE TABLE {s}.t (id integer PRIMARY KEY, k integer)";
        self.session.run(&names.put_into(table));
        // The slot is made here: a subscriber on the same server would wait for itself.
        self.session.run(&format!(
            "SELECT pg_create_logical_replication_slot('{}', 'pgoutput')",
            self.slot
        ));
        let source = self.server.conninfo(&self.database);
        builder.try_run(&format!(
            "CREATE SUBSCRIPTION {0} CONNECTION '{source}' PUBLICATION evil
             WITH (create_slot = false, slot_name = {0}, copy_data = false)",
            self.slot
        ))?;
        self.session
            .run(&names.put_into("INSERT INTO {s}.t VALUES (11, 1)"));
        Ok(())
    }

    /// End the subscription, whatever its worker is doing.
    pub(super) fn end(
        &mut self,
        builder: &mut Session,
        names: &Names,
    ) -> Result<(), postgres::Error> {
        let slot = &self.slot;
        for sql in [
            format!("ALTER SUBSCRIPTION {slot} DISABLE"),
            format!("ALTER SUBSCRIPTION {slot} SET (slot_name = NONE)"),
            format!("DROP SUBSCRIPTION {slot}"),
        ] {
            builder.try_run(&sql)?;
        }
        let drop = format!("SELECT pg_drop_replication_slot('{slot}')");
        crate::until("the end of a walsender", crate::PATIENCE, || {
            self.session.try_run(&drop).is_ok().then_some(())
        });
        self.session.run(&names.put_into("DROP SCHEMA {s} CASCADE"));
        Ok(())
    }
}
