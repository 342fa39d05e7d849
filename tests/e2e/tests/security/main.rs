//! S1 to S8: what a hostile owner of a table, or a stranger, tries against the extension: they
//! gain nothing, read nothing, and hold nobody up. The cases are those of the reviews that broke
//! into earlier versions; the promises are those of `docs/security.md`, "What cannot be done".

mod encodings;
mod fairness;
mod gate;
mod looking;
mod recognised;
mod referential;
mod walks;
