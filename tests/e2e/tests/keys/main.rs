//! C6: the key of an expired row is free. Single statements are tested in
//! `tests/pg_regress/sql/free_keys*.sql`, concurrent sessions in `tests/isolation/specs`.

mod copied;
mod lasting;
mod references;
mod restored;
