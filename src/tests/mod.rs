//! Tests inside the server: `#[pg_test]`. Each runs in a transaction of its own
//! that is rolled back. What needs several sessions, time that passes, or a
//! server of its own is in `tests/`.

mod agreement;
#[cfg(test)]
mod documents_test;
mod guards;
mod hints_test;
mod local_time;
mod matrix;
#[cfg(test)]
mod messages_test;
mod partitions;
#[cfg(test)]
mod qualified_test;
#[cfg(test)]
mod release_test;
mod time_zone;
#[cfg(test)]
mod tools_test;
