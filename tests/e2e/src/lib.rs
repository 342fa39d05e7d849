//! Harness of the end-to-end tests of `ttl_ext`.
//!
//! Each test starts PostgreSQL servers of its own in a temporary directory,
//! with the extension preloaded, and looks at them as a client does. The server
//! is the one `PG_CONFIG` points at; the extension must be installed there.
//!
//! The rules that the tests name (C1, C6, ...) are those of `docs/semantics.md`.

pub mod diff;
mod guard;
mod server;
mod session;
mod tools;

pub use postgres::error::{DbError, ErrorPosition, SqlState};
pub use server::{Database, Server};
pub use session::{Session, fields};
pub use tools::Tools;
