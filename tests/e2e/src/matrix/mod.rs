//! S1, S2, S5: the matrix of hostile owners. It combines every place for an attacker's code, every
//! visitor, and every attempt. What the code gains, leaves behind or delays is compared with the
//! same on a server without the library, since PostgreSQL itself allows some of it.
//!
//! | file | what |
//! |---|---|
//! | `carriers` | places of a table that run its owner's code, or that of an owner who may refer to it |
//! | `visitors`, `statements` | who comes by: workers, the functions and views, other statements |
//! | `attempts` | what the code tries; `arms.sql` has its tools, `roles.sql` what there is to take |
//! | `cases` | all combinations, those that cannot be with the reason, and the sample of a seed |
//! | `script` | the SQL of one case, the same that a fault prints |
//! | `apply` | the apply of logical replication, as a visitor |
//! | `lane`, `visit`, `judge` | a database with an attacker and a victim; a visit; what came of it |
//! | `oracle` | what is allowed: by PostgreSQL too, to the table's owner by another trigger, by nature |
//! | `runner`, `report` | lanes side by side; what is printed |

mod apply;
mod attempts;
mod carriers;
mod cases;
mod judge;
mod lane;
mod oracle;
mod report;
mod runner;
mod script;
mod statements;
mod visit;
mod visitors;

pub use cases::{Selection, matrix};
pub use report::Report;
pub use runner::run;
