//! S1 to S9: attacks on the extension by a hostile table owner or a stranger gain nothing, read
//! nothing, and delay nobody. The cases come from reviews that broke earlier versions; the promises
//! are those of `docs/security.md`, "What cannot be done".

mod acting;
mod archive_owners;
mod archives;
mod arguments;
mod builder;
mod doors;
mod encodings;
mod fairness;
mod figures;
mod gate;
mod handed_over;
mod looking;
mod others_operations;
mod owners_between;
mod processes;
mod quotas;
mod reached;
mod reached_unknown;
mod recognised;
mod referential;
mod referential_variants;
mod renamed;
mod returned;
mod walks;
