//! C5, C6, C8, C13, C15: what one session sees of expired rows, when, and by which clock.

mod changes;
mod cursors;
mod drivers;
mod repeatable_read;
mod session_settings;
