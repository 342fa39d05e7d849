//! The differential test: random queries over tables whose expired rows are
//! hidden, and over the same tables whose expired rows were really deleted.
//! Rule C6 says that no query can tell them apart. Some tables expire by TTL indexes
//! (M1 to M5, M12): there statements write rows that are born expired, and move dates
//! about; `sweep()` deletes after each what has expired by it, where that is not hidden.

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
