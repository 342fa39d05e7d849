//! What a call of `ttl.enable` asks for.

use super::mass_expiry::{Consent, shown};
use crate::error::Result;
use crate::pg::catalog;
use crate::policy::IndexMethod;
use pgrx::pg_sys;

/// The arguments of `ttl.enable`; `None` keeps the present value, or takes the default.
#[derive(Debug, Clone, Default)]
pub(in crate::api) struct Asked {
    pub(in crate::api) default_ttl: Option<i32>,
    pub(in crate::api) ts_column: Option<String>,
    pub(in crate::api) ttl_column: Option<Option<String>>,
    pub(in crate::api) document_column: Option<Option<String>>,
    pub(in crate::api) index: Option<IndexMethod>,
    pub(in crate::api) drop_partitions: Option<bool>,
    pub(in crate::api) hidden: Option<bool>,
    pub(in crate::api) ts_granularity: Option<i32>,
    /// C21: the indexes are built in the background.
    pub(in crate::api) concurrently: bool,
}

impl Asked {
    pub(super) fn consent(&self, relid: pg_sys::Oid, confirm: Option<bool>) -> Result<Consent> {
        Consent::new(confirm, &self.call(relid))
    }

    /// The call, as far as its arguments were given, without the closing bracket.
    pub(in crate::api) fn call(&self, relid: pg_sys::Oid) -> String {
        let mut call = format!("ttl.enable({}", shown(relid));
        let quoted = |name: &String| catalog::quote_literal(name);
        let name = |name: &Option<String>| name.as_ref().map_or("NULL".to_owned(), quoted);
        if let Some(seconds) = self.default_ttl {
            call += &format!(", {seconds}");
        }
        let index = self.index.map(IndexMethod::name);
        for (argument, value) in [
            ("ts_column", self.ts_column.as_ref().map(quoted)),
            ("ttl_column", self.ttl_column.as_ref().map(name)),
            ("document_column", self.document_column.as_ref().map(name)),
            ("index", index.map(catalog::quote_literal)),
            (
                "drop_partitions",
                self.drop_partitions.map(|value| value.to_string()),
            ),
            ("hidden", self.hidden.map(|value| value.to_string())),
            (
                "ts_granularity",
                self.ts_granularity.map(|value| value.to_string()),
            ),
            ("concurrently", self.concurrently.then(|| "true".to_owned())),
        ] {
            if let Some(value) = value {
                call += &format!(", {argument} => {value}");
            }
        }
        call
    }
}
