//! S1, S4, S5: user code that deletion runs into, owned by somebody hostile. It runs
//! as the table's owner, gets no further, and leaves nothing behind.

mod attacks;
mod database_settings;
mod leftovers;
mod loops;
