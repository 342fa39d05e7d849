//! Complaint 12: restored data is complete, and nothing is deleted until the owner calls
//! `ttl.resume`.

mod ddl_forms;
mod dumps;
mod equal_dumps;
mod live_views;
mod random;
mod resume;
mod waiting;
