//! The library in a server: it comes and goes, and whatever else is there does not notice it.

mod errors_unharmed;
mod hook_chain;
mod lifecycle;
