//! Expired rows are gone for every statement (C6).

pub(crate) mod copy;
pub(crate) mod filter;
mod referential;
mod relation_hook;
mod restriction;
pub(crate) mod statement;
mod support;

pub(crate) use relation_hook::init;
pub(crate) use restriction::live_condition;
