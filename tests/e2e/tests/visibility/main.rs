//! C5, C6, C8, C13, C15: which expired rows a session sees, when, and by which time.

mod background;
mod changes;
mod cursors;
mod drivers;
mod repeatable_read;
mod session_settings;
mod since19;
