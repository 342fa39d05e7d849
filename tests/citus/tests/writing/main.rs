//! Writes to tables of Citus: what they are stamped with (C1), and what they meet of expired rows (C6).

mod copies;
mod documents;
mod foreign_keys;
mod merging;
mod reference;
mod stamps;
mod upserts;

use std::sync::OnceLock;

use ttl_ext_citus::{Application, Cluster, Session};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&[]))
}

/// A distributed table `o (id, v)` with a default of an hour; rows 1 to 10 have expired, 11 to 20 are ten
/// minutes old.
fn with_table(name: &str) -> (Application<'static>, Session) {
    let app = cluster().application(name);
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 3600)");
    session.run_preserving(
        "INSERT INTO o (id, v, _ts)
            SELECT n, 'old', now() - CASE WHEN n <= 10 THEN interval '2 hours' ELSE interval '10 minutes' END
              FROM generate_series(1, 20) AS n",
    );
    (app, session)
}

#[track_caller]
fn seen(session: &mut Session) -> String {
    session.column("SELECT id FROM o ORDER BY id").join(" ")
}

/// The numbers of the rows that were written just now, by their `_ts`.
#[track_caller]
fn young(session: &mut Session) -> String {
    let young =
        "SELECT id FROM o WHERE _ts > now() - interval '5 minutes' AND _ts <= now() ORDER BY id";
    session.column(young).join(" ")
}
