//! `ttl_internal.node_reports`: what `ttl.placements` shows, from each node of Citus.

use crate::citus;
use crate::error::Result;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use pgrx::prelude::*;

/// A node's report: its deletion figures and problems, a JSON array with an object for each table.
const REPORT: &str = "SELECT COALESCE(pg_catalog.json_agg(r), '[]') FROM (\
    SELECT pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', pg_catalog.quote_ident(c.relname)) AS relation, \
           s.rows_deleted, s.partitions_dropped, s.lag, s.backlog_estimate, s.blocked_rows, \
           s.last_error, s.last_error_at, ttl.problems(s.relation) AS problems \
      FROM ttl.stats AS s \
      JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.relation \
      JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace) AS r";

type NodeReport = (Option<Text>, Option<i32>, bool, Option<Text>);

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

fn reports() -> Result<Vec<NodeReport>> {
    let answers = citus::ask(REPORT)?.into_iter();
    Ok(answers
        .map(|answer| {
            let (name, port) = answer
                .node
                .map_or((None, None), |(name, port)| (Some(Text(name)), Some(port)));
            let success = answer.text.is_ok();
            let report = answer.text.unwrap_or_else(Some);
            (name, port, success, report.map(Text))
        })
        .collect())
}
