//! Calls of C functions, memory contexts, encodings, values, lists, and reporting of errors.

pub(crate) mod context;
pub(crate) mod encoding;
pub(crate) mod error_context;
pub(crate) mod externs;
pub(crate) mod fmgr;
pub(crate) mod lists;
#[cfg(test)]
mod prototypes;
pub(crate) mod report;
pub(crate) mod unguarded;
pub(crate) mod values;
pub(crate) mod variable;
