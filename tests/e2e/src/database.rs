//! The databases of a server.

use std::process::Command;

use crate::server::Server;
use crate::session::Session;

/// A database of a test's own in a server that tests may share.
#[derive(Debug)]
pub struct Database<'a> {
    server: &'a Server,
    /// Its name.
    pub name: String,
}

impl<'a> Database<'a> {
    pub(crate) fn new(server: &'a Server, name: &str) -> Database<'a> {
        Database {
            server,
            name: name.to_owned(),
        }
    }

    /// A session of the superuser.
    pub fn connect(&self) -> Session {
        self.connect_as("postgres")
    }

    /// A session of the superuser that sees expired rows as long as they are on disk.
    pub fn disk(&self) -> Session {
        let mut session = self.connect();
        session.run("SET ttl.show_expired = on");
        session
    }

    /// A session of another user.
    pub fn connect_as(&self, user: &str) -> Session {
        self.server.connect(&self.name, user)
    }

    /// Its server.
    pub fn server(&self) -> &'a Server {
        self.server
    }

    /// A command for one of libpq's programs, set to connect here as superuser.
    pub fn tool(&self, program: &str) -> Command {
        self.server.tool(program, &self.name)
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.server.assert_unharmed();
        }
    }
}
