//! A policy's rule in SQL, for the extension's own queries.

use crate::pg::catalog::quote_identifier;
use crate::policy::Policy;

/// The condition "the row is live" under this default.
pub(crate) fn live_condition(policy: &Policy, default_ttl: Option<i32>) -> String {
    let default = default_ttl.map_or("NULL".to_owned(), |seconds| seconds.to_string());
    let ts = quote_identifier(&policy.ts_column);
    match &policy.ttl_column {
        Some(ttl) => format!("ttl.live({ts}, {}, {default})", quote_identifier(ttl)),
        None => format!("ttl.live({ts}, {default})"),
    }
}
