//! C6 on Citus: no query finds an expired row, however Citus executes it. Each is compared with the same
//! query of tables from which the expired rows are gone, and must differ from that of tables without TTL.

mod joins;
mod local;
mod queries;
mod sessions;

use std::sync::OnceLock;

use ttl_ext_citus::{Application, Cluster, Session, Twins};

/// All tests here only read, but for temporary settings: one database.
fn shared() -> &'static (Application<'static>, Twins) {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    static SHARED: OnceLock<(Application<'static>, Twins)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let app = CLUSTER
            .get_or_init(|| Cluster::start(&[]))
            .application("hiding");
        let twins = Twins::create(&app);
        (app, twins)
    })
}

/// A session on each node.
fn sessions() -> Vec<Session> {
    let (app, _) = shared();
    (0..app.size()).map(|node| app.node(node)).collect()
}

/// Check queries on each node, after these settings.
#[track_caller]
fn check_all(settings: &str, queries: &[&str]) {
    let (_, twins) = shared();
    for mut session in sessions() {
        session.run(settings);
        for query in queries {
            twins.check(&mut session, query);
        }
    }
}
