//! C6: the key of an expired row is free. That of single statements is in
//! `tests/pg_regress/sql/free_keys*.sql`, that of sessions that meet in `tests/isolation/specs`.

mod copied;
mod lasting;
mod restored;
