//! Databases go with the test that made them.
//!
//! A server in a `static` lives as long as the process. What its tests leave behind would be worked on until
//! then: rows that cannot be deleted are tried again and again, in the time of all tests that follow.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use postgres::NoTls;

use crate::server::{PORT, client_of};
use crate::session::describe;

/// By the server's directory and the database's name.
struct Made(Vec<(PathBuf, String)>);

thread_local! {
    // Each test has a thread of its own.
    static MADE: RefCell<Made> = const { RefCell::new(Made(Vec::new())) };
}

/// Drop this database when the thread ends, if the server is still there.
pub(crate) fn drop_with_test(dir: &Path, database: &str) {
    MADE.with_borrow_mut(|made| made.0.push((dir.to_owned(), database.to_owned())));
}

impl Drop for Made {
    fn drop(&mut self) {
        let mut made = std::mem::take(&mut self.0);
        made.retain(|(dir, _)| dir.join(format!(".s.PGSQL.{PORT}")).exists());
        if made.is_empty() {
            return;
        }
        // A client has variables of its thread, which this one has lost already.
        let dropping = std::thread::spawn(move || {
            for (dir, database) in made {
                let dropped = client_of(&dir)
                    .user("postgres")
                    .dbname("postgres")
                    .connect(NoTls)
                    .and_then(|mut client| {
                        client.batch_execute(&format!(
                            "DROP DATABASE IF EXISTS {database} WITH (FORCE)"
                        ))
                    });
                if let Err(error) = dropped {
                    eprintln!(
                        "{database} in {} is left: {}",
                        dir.display(),
                        describe(&error)
                    );
                }
            }
        });
        // It has said what went wrong.
        let _ = dropping.join();
    }
}
