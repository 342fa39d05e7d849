//! Decision 0054: from one version of the extension to the next, by a new library, a restart, and
//! ALTER EXTENSION … UPDATE, in this order and with any time between.

mod between;
mod catalog;
mod objects;
