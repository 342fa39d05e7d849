//! Harness of the end-to-end tests of `ttl_ext`.
//!
//! Each test starts PostgreSQL servers of its own in a temporary directory,
//! with the extension preloaded, and looks at them as a client does. The server
//! is the one `PG_CONFIG` points at; the extension must be installed there. They
//! cannot run as root: the test binaries may be copied and run as another user.
//!
//! | variable | meaning |
//! |---|---|
//! | `PG_CONFIG` | path of the server's `pg_config`; needed |
//! | `TTL_CLOCK_LIBRARY` | `tests/clock`, built; needed by tests that set the clock |
//! | `TTL_TEMPLATE` | a new cluster to be copied, instead of a call of initdb |
//! | `TMPDIR` | where the servers' directories are made; `/tmp` if that is too long for a socket |
//! | `TTL_LIMIT` | minutes after which a program of tests that has not ended has failed, with a list of the processes |
//! | `TTL_RACE_SECONDS`, `TTL_KILLS` | length of the tests in `deletion/races.rs` and `security/acting.rs`, and in `workers/killing.rs` |
//! | `TTL_STATEMENTS` | number of statements in `keys/references.rs` |
//! | `TTL_LEVELS` | depth of inheritance in `security/walks.rs` |
//! | `TTL_SEED`, `TTL_QUERIES` | seed and length of the differential test |
//! | `TTL_SEED`, `TTL_MINUTES` | the same of `storm.rs` |
//! | `TTL_SEED`, `TTL_SEQUENCES` | the same of the test of keys, `integrity.rs` |
//! | `TTL_SEED`, `TTL_MATRIX`, `TTL_CASE` | the same of the matrix of hostile owners, `matrix.rs`; its cases by name |
//!
//! However a test ends, its servers are stopped and their directories removed.
//!
//! The rules that the tests name (C1, D2, M9, ...) and the complaints are those of `docs/semantics.md`;
//! S1 to S8 are the promises of `docs/security.md`, "What cannot be done".

pub mod answers;
mod backlog;
mod cached;
mod clock;
mod control;
mod database;
pub mod diff;
mod guard;
pub mod hostile;
pub mod integrity;
mod leftovers;
mod limit;
mod log;
pub mod matrix;
mod process;
mod server;
mod session;
mod slow;
mod tools;
mod upgrade;
mod wait;
mod workers;

pub use cached::CachedPlans;
pub use clock::Clock;
pub use control::Stop;
pub use database::Database;
pub use postgres::Error;
pub use postgres::error::SqlState;
pub use process::processor_time;
pub use server::Server;
pub use session::{Session, describe, fields, is_disconnect, row_text};
pub use slow::SlowTable;
pub use tools::lacks_library;
pub use upgrade::Upgrade;
pub use wait::{PATIENCE, catch_up, race_seconds, until};
