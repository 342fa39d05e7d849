//! `ttl_ext`: time to live for PostgreSQL tables.
//!
//! A default for each table, an override for each row, counted from the row's
//! last modification; an expired row is hidden at once, and deleted soon after. See
//! `README.md` for users, `docs/architecture.md` for where things are.

use pgrx::prelude::*;

mod api;
mod citus;
mod clock;
mod ddl;
mod deletion;
mod error;
mod hooks;
mod keys;
mod mongo;
mod pg;
mod policy;
mod settings;
mod stamp;
mod store;
mod visibility;
mod worker;

#[cfg(any(test, feature = "pg_test"))]
mod tests;

::pgrx::pg_module_magic!(name, version);

// The order of the installation script.
extension_sql_file!("../sql/bootstrap.sql", name = "bootstrap", bootstrap);
extension_sql_file!("../sql/types.sql", name = "types", requires = ["bootstrap"]);
extension_sql_file!(
    "../sql/functions.sql",
    name = "functions",
    requires = ["types"]
);
extension_sql_file!("../sql/views.sql", name = "views", requires = ["functions"]);
extension_sql_file!("../sql/finalize.sql", name = "finalize", finalize);

/// Called by PostgreSQL when the library is loaded.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    if !pg::session::is_preloading() {
        error::Error::not_preloaded().raise();
    }
    settings::init();
    citus::init();
    clock::init();
    store::extension::init();
    pg::catalog::invalidation::init();
    store::cache::init();
    store::label_provider::init();
    deletion::removals::init();
    deletion::reach::init();
    keys::init();
    hooks::init();
    worker::init();
    api::init();
}

/// What pgrx-tests asks of the crate.
#[cfg(test)]
pub mod pg_test {
    /// Called once before the server starts.
    pub fn setup(_options: Vec<&str>) {}

    /// Lines for the test server's postgresql.conf.
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![
            "shared_preload_libraries = 'ttl_ext'",
            // Expired rows stay on disk, to be looked at.
            "ttl.enabled = off",
            "ttl.change_delay 0",
        ]
    }
}
