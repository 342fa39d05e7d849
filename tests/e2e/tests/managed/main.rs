//! What `docs/managed.md` says of servers that somebody else runs: rights, dumps, restarts, memory.

mod dumps;
mod memory;
mod preloading;
mod restarts;
mod rights;
mod slots;
