//! Upgrades of the extension (decision 0054) and of the server.

mod between;
mod catalog;
mod server;
