//! Tests inside the server: `#[pg_test]`.
