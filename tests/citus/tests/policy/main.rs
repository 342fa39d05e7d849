//! One statement on any node sets, changes and ends the time to live of a table of Citus, for all its
//! shards, in one transaction.

mod before;
mod changes;
mod enabling;
mod indexes;
mod plans;
mod refused;
mod restoring;
mod rights;
mod transactions;

use std::sync::OnceLock;

use ttl_ext_citus::{Application, Cluster, Session};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&[]))
}

/// A distributed table `o (id, v)`, without TTL yet.
fn with_table(name: &str) -> (Application<'static>, Session) {
    let application = cluster().application(name);
    let mut session = application.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    (application, session)
}

/// Rows 1 to 20 written two hours ago, 21 to 30 ten minutes ago.
const ROWS: &str = "INSERT INTO o (id, v, _ts)
    SELECT n, 'v' || n, now() - CASE WHEN n <= 20 THEN interval '2 hours' ELSE interval '10 minutes' END
      FROM generate_series(1, 30) AS n";

/// The numbers of the rows that a session sees.
#[track_caller]
fn seen(session: &mut Session) -> String {
    session.column("SELECT id FROM o ORDER BY id").join(" ")
}
