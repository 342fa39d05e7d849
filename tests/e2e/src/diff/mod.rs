//! C6: the differential test. Random queries run on tables with hidden expired rows, and on the
//! same tables with these rows really deleted; no query may tell them apart. Some tables expire by
//! TTL indexes (M1 to M5, M12): there statements also write expired rows and move dates. In the
//! schema without hiding, `sweep()` deletes after each statement the rows that it made expire.

mod dates;
mod dml;
mod expr;
mod generator;
mod insert;
mod outcome;
mod outputs;
mod runner;
mod schema;
mod script;
mod select;
mod settings;
mod source;

pub use generator::{Generator, Random};
pub use outcome::Outcome;
pub use runner::{Options, Summary, compare};
pub use schema::{Kind, build};
pub use script::{Script, Way};
