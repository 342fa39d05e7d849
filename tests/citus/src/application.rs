//! A database on all nodes of a cluster.

use std::sync::{Mutex, PoisonError};

use ttl_ext_e2e::{Database, Server, Session};

/// All servers listen on sockets, whose directory stands for the host.
const PORT: u16 = 5432;

/// A database of a test's own, on each node.
#[derive(Debug)]
pub struct Application<'a> {
    nodes: Vec<Database<'a>>,
}

impl<'a> Application<'a> {
    pub(crate) fn create(servers: &'a [Server], name: &str) -> Application<'a> {
        // Each node that is added gets all roles: two at a time would update the same rows.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut nodes = Vec::new();
        for server in servers {
            nodes.push(equipped(server, name));
        }
        let application = Application { nodes };
        let mut coordinator = application.coordinator();
        coordinator.run(&format!(
            "SELECT citus_set_coordinator_host('{}', {PORT})",
            application.host(0)
        ));
        for n in 1..application.nodes.len() {
            coordinator.run(&format!(
                "SELECT citus_add_node('{}', {PORT})",
                application.host(n)
            ));
        }
        application
    }

    /// Take in a further node, which gets shards only when they are moved there. Its number.
    pub fn add_node(&mut self, server: &'a Server) -> usize {
        let name = self.nodes[0].name.clone();
        self.nodes.push(equipped(server, &name));
        let n = self.nodes.len() - 1;
        let host = self.host(n);
        self.coordinator()
            .run(&format!("SELECT citus_add_node('{host}', {PORT})"));
        n
    }

    /// A session of the superuser on the coordinator.
    pub fn coordinator(&self) -> Session {
        self.node(0)
    }

    /// A session of the superuser on a node; 0 is the coordinator.
    pub fn node(&self, n: usize) -> Session {
        self.nodes[n].connect()
    }

    /// A session of another user.
    pub fn node_as(&self, n: usize, user: &str) -> Session {
        self.nodes[n].connect_as(user)
    }

    /// The database on a node.
    pub fn database(&self, n: usize) -> &Database<'a> {
        &self.nodes[n]
    }

    /// How many nodes there are, the coordinator included.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// What keeps the table's TTL from working, but for background deletion, which is off in most clusters.
    #[track_caller]
    pub fn problems(&self, node: usize, table: &str) -> String {
        self.node(node).value(&format!(
            "SELECT array_to_string(array_remove(ttl.problems('{table}'), 'deletion is off: ttl.enabled'), ' / ')"
        ))
    }

    /// The host of a node, as Citus's functions want it.
    pub fn host(&self, n: usize) -> String {
        self.nodes[n].server().dir().display().to_string()
    }

    /// Host and port as two arguments of Citus's functions.
    pub fn address(&self, n: usize) -> String {
        format!("'{}', {PORT}", self.host(n))
    }
}

/// A database with both extensions.
fn equipped<'a>(server: &'a Server, name: &str) -> Database<'a> {
    let database = server.plain_database(name);
    let mut session = database.connect();
    session.run("CREATE EXTENSION citus; CREATE EXTENSION ttl_ext");
    database
}
