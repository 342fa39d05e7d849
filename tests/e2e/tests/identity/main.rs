//! S1, S4, S5: deletion runs the code of a hostile table owner. It runs as that owner, gains no
//! rights, and leaves nothing behind.

mod attacks;
mod database_settings;
mod leftovers;
mod loops;
mod owner_kinds;
mod owners;
