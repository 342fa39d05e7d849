//! The same query on each node, as the current user: by Citus's own function, on connections and in
//! transactions of their own.

use super::catalogs;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::values::{self, Text};
use crate::pg::catalog;
use crate::pg::session;
use pgrx::{Spi, spi};
use std::ffi::CStr;

/// Milliseconds, in Citus's setting: a node that cannot be connected to by then counts as out of reach.
const PATIENCE: &CStr = c"800";

/// What such connections are called.
const CONNECTIONS: &[u8] = b"citus_run_command gpid=";

pub(crate) struct NodeAnswer {
    /// Host and port, as in pg_dist_node; `None` without Citus.
    pub(crate) node: Option<(String, i32)>,
    /// The first column of the first row, or the error.
    pub(crate) text: std::result::Result<Option<String>, String>,
}

impl NodeAnswer {
    pub(crate) fn name(&self) -> String {
        let named = |(host, port): &(String, i32)| format!("{host}:{port}");
        self.node.as_ref().map_or(String::new(), named)
    }
}

/// Whether the session is one that asks for another node: it asks no further.
pub(crate) fn is_asked() -> bool {
    catalogs::is_present()
        && session::application_name().is_some_and(|name| name.to_bytes().starts_with(CONNECTIONS))
}

/// Asks all nodes; without Citus, this server alone. Waits less than a second for nodes out of reach.
pub(crate) fn ask(query: &str) -> Result<Vec<NodeAnswer>> {
    if !catalogs::is_present() {
        return ask_alone(query);
    }
    answers(&format!(
        "SELECT n.nodename, n.nodeport, r.success, r.result \
           FROM pg_catalog.run_command_on_all_nodes({}) AS r \
           LEFT JOIN pg_catalog.pg_dist_node AS n ON n.nodeid OPERATOR(pg_catalog.=) r.nodeid",
        catalog::quote_literal(query)
    ))
}

/// Also on a standby, and in a transaction that is read-only.
fn ask_alone(query: &str) -> Result<Vec<NodeAnswer>> {
    let rows = values::texts::<1>(&format!("SELECT ({query})::pg_catalog.text"))?;
    let text = rows.into_iter().next().map(|[text]| text);
    Ok(vec![NodeAnswer {
        node: None,
        text: Ok(text.filter(|text| !text.is_empty())),
    }])
}

fn answers(query: &str) -> Result<Vec<NodeAnswer>> {
    let query = encoding::query(query);
    let rows = session::with_setting(c"citus.node_connection_timeout", PATIENCE, || {
        Spi::connect_mut(|client| {
            let found = client.update(&query, None, &[])?;
            let text = |value: Option<Text>| value.map(|text| text.0);
            found
                .map(|row| {
                    let (host, port) = (text(row.get(1)?), row.get::<i32>(2)?);
                    let said = text(row.get(4)?);
                    let success = row.get(3)?.unwrap_or(false);
                    Ok(NodeAnswer {
                        node: host.zip(port),
                        text: if success {
                            Ok(said)
                        } else {
                            Err(said.unwrap_or_default())
                        },
                    })
                })
                .collect::<spi::Result<Vec<_>>>()
        })
    });
    rows.map_err(Error::from)
}
