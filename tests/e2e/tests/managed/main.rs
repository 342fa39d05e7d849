//! What `docs/managed.md` says of managed servers: rights, dumps, restarts, memory.

mod dumps;
mod memory;
mod preloading;
mod restarts;
mod rights;
mod slots;
