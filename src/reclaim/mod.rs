//! The key of an expired row is free (C6): unique and exclusion constraints, which
//! the planner does not see, meet expired rows on disk.

mod trigger;
