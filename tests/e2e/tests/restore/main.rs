//! Complaint 12: what comes from a dump is complete, and stays until somebody has looked at it.

mod dumps;
mod resume;
