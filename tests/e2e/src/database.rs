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

    /// A session of another user.
    pub fn connect_as(&self, user: &str) -> Session {
        self.server.connect(&self.name, user)
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
