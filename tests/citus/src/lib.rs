//! Harness of the tests on Citus: clusters of a coordinator and two workers, on sockets of their own.
//!
//! The server that `PG_CONFIG` points at must have Citus beside the extension; `scripts/test-citus.sh`
//! sees to that, and counts all tests as skipped where there is none. The rest is as in `ttl_ext_e2e`.

mod application;
mod cluster;
mod placement;
mod skew;
mod twins;

pub use application::Application;
pub use cluster::Cluster;
pub use placement::{Placement, ids};
pub use ttl_ext_e2e::{PATIENCE, Server, Session, SqlState, Stop, describe, processor_time, until};
pub use twins::Twins;
