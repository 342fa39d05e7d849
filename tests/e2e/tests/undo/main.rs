//! C23 to C25: rows that have expired stay on disk for a while, and can be brought back.

mod changed;
mod kept;
mod successors;
