//! `ttl_internal.node_reports`: what `ttl.placements` shows, from each node of Citus.

use crate::citus;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use crate::pg::catalog;
use pgrx::prelude::*;
use pgrx::spi;

/// A node's report: its deletion figures and problems, a JSON array with an object for each table.
const REPORT: &str = "SELECT COALESCE(pg_catalog.json_agg(r), '[]') FROM (\
    SELECT pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', pg_catalog.quote_ident(c.relname)) AS relation, \
           s.rows_deleted, s.partitions_dropped, s.lag_seconds, s.backlog_estimate, s.blocked_rows, \
           s.last_error, s.last_error_at, ttl.problems(s.relation) AS problems \
      FROM ttl.stats AS s \
      JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.relation \
      JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace) AS r";

type Report = (Option<Text>, Option<i32>, bool, Option<Text>);

/// `ttl_internal.node_reports() RETURNS TABLE (nodename, nodeport, success, report)`: one row for each node, by
/// Citus's connections as the current user; this server alone without Citus. A node that cannot be
/// asked has its error as its report.
#[pg_extern(sql = false)]
#[allow(
    clippy::type_complexity,
    reason = "the columns, as pgrx wants them named"
)]
fn node_reports() -> TableIterator<
    'static,
    (
        name!(nodename, Option<Text>),
        name!(nodeport, Option<i32>),
        name!(success, bool),
        name!(report, Option<Text>),
    ),
> {
    TableIterator::new(or_raise(reports()))
}

fn reports() -> Result<Vec<Report>> {
    let query = if citus::catalogs::is_present() {
        format!(
            "SELECT n.nodename, n.nodeport, r.success, r.result \
               FROM pg_catalog.run_command_on_all_nodes({}) AS r \
               LEFT JOIN pg_catalog.pg_dist_node AS n ON n.nodeid OPERATOR(pg_catalog.=) r.nodeid",
            catalog::quote_literal(REPORT)
        )
    } else {
        format!(
            "SELECT NULL::pg_catalog.text, NULL::pg_catalog.int4, true, ({REPORT})::pg_catalog.text"
        )
    };
    let query = encoding::query(&query);
    let rows = Spi::connect_mut(|client| {
        let found = client.update(&query, None, &[])?;
        found
            .map(|row| {
                let success = row.get(3)?.unwrap_or(false);
                Ok((row.get(1)?, row.get(2)?, success, row.get(4)?))
            })
            .collect::<spi::Result<Vec<_>>>()
    });
    rows.map_err(Error::from)
}
