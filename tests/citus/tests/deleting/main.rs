//! Deletion on Citus: each node's workers delete from its own shards; what is called on one node acts on all
//! placements.

mod calls;
mod figures;
mod owners;
mod prepared;
mod sweeping;

use std::sync::OnceLock;

use ttl_ext_citus::{Application, Cluster, Session};

/// Expired rows are deleted at once.
fn sweeping() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start_sweeping(&[]))
}

/// A distributed table `o (id, v)` with a default of an hour.
fn with_table(cluster: &'static Cluster, name: &str) -> (Application<'static>, Session) {
    let app = cluster.application(name);
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', 'id')");
    session.run("SELECT ttl.enable('o', 3600)");
    (app, session)
}

/// Rows of this range that were written a day ago.
#[track_caller]
fn expired(session: &mut Session, from: i32, to: i32) {
    session.insert_expired("o", from, to);
}
