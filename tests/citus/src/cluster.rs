//! Three servers that Citus makes one.

use ttl_ext_e2e::{Server, Session};

use crate::application::Application;

/// Every database has a daemon of Citus's on every node, and sessions open others.
const SETTINGS: [(&str, &str); 11] = [
    ("shared_preload_libraries", "citus,ttl_ext"),
    ("wal_level", "logical"),
    ("max_connections", "300"),
    ("max_worker_processes", "120"),
    ("max_prepared_transactions", "200"),
    ("max_replication_slots", "40"),
    ("max_wal_senders", "40"),
    ("citus.node_conninfo", "sslmode=disable"),
    ("citus.shard_count", "4"),
    ("citus.enable_statistics_collection", "off"),
    // A transaction that was prepared is looked after sooner than in a minute.
    ("citus.recover_2pc_interval", "2s"),
];

/// A coordinator and its workers.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Nothing is deleted in the background.
    pub fn start(settings: &[(&str, &str)]) -> Cluster {
        Cluster::of(Server::start, settings)
    }

    /// Expired rows are deleted without delay, on each node.
    pub fn start_sweeping(settings: &[(&str, &str)]) -> Cluster {
        Cluster::of(Server::start_sweeping, settings)
    }

    fn of(start: impl Fn(&[(&str, &str)]) -> Server, settings: &[(&str, &str)]) -> Cluster {
        let all: Vec<_> = SETTINGS.iter().chain(settings).copied().collect();
        let nodes = (0..3).map(|_| start(&all)).collect::<Vec<_>>();
        for node in &nodes {
            // Tests of a file share them.
            node.keep_databases();
            let mut session = node.connect("postgres", "postgres");
            // Newer minor versions ask for it before a shard can be split.
            let guarded = "SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'";
            if session.value(guarded) == "1" {
                session.run("ALTER SYSTEM SET output_plugin_libraries = pgoutput, citus");
            }
            // Where a node finds itself.
            let host = format!("{}", node.dir().display());
            session.run(&format!("ALTER SYSTEM SET citus.local_hostname = '{host}'"));
            session.run("SELECT pg_reload_conf()");
        }
        Cluster { nodes }
    }

    /// A further server that is no node yet.
    pub fn spare(&self) -> Server {
        Server::start(&SETTINGS)
    }

    /// The servers: the coordinator first.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// A session in a database that is there.
    pub fn existing(&self, database: &str, node: usize) -> Session {
        self.nodes[node].connect(database, "postgres")
    }

    /// A new database, with both extensions, which is a cluster of its own.
    pub fn application(&self, name: &str) -> Application<'_> {
        Application::create(&self.nodes, name)
    }
}
