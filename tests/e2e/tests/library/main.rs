//! Decision 0004: the library can be added and removed without side effects on the rest of the
//! server.

mod errors_unharmed;
mod examples;
mod hook_chain;
mod lifecycle;
mod pages;
mod reference;
