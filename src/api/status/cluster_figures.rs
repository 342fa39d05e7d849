//! How deletion stands in a distributed table: the coordinator of Citus asks the other nodes, once a statement.

use crate::api::policy::problem::Problem;
use crate::citus;
use crate::pg::abi::externs;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{self, roles};
use crate::worker::shared::deletion_state::Figures;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Of each table, by its qualified name: how many seconds ago the oldest row expired, or NULL; whether that is known; the backlog. Ages, as
/// the nodes' clocks differ.
const FIGURES: &str = "SELECT COALESCE(pg_catalog.json_object_agg(\
        pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', pg_catalog.quote_ident(c.relname)), \
        pg_catalog.json_build_array(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) s.oldest_expiry), \
                                    s.lag_is_known, s.backlog_estimate)), '{}') \
      FROM ttl_internal.table_stats() AS s \
      JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.relid \
      JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace";

/// Age, whether it is known, backlog.
type NodeFigures = (Option<f64>, bool, Option<i64>);

/// What all nodes have said.
struct ClusterFigures {
    /// By node.
    figures: Vec<HashMap<String, NodeFigures>>,
    /// Nodes that could not be asked, and why.
    silent: Vec<(String, String)>,
}

/// By whom, in which statement.
type Occasion = (i64, pg_sys::Oid);

/// What the nodes answered, and for which occasion.
type Answered = (Occasion, Rc<ClusterFigures>);

static ASKED: Variable<RefCell<Option<Answered>>> = Variable::new(RefCell::new(None));

/// Whether the figures of the table are those of other nodes: this one is the coordinator, and the session
/// does not answer another node.
pub(super) fn is_elsewhere(relid: pg_sys::Oid) -> bool {
    citus::is_shell(relid) && citus::is_coordinator() && !citus::is_asked()
}

/// The sum of the backlogs, and the largest age; `None` where a node does not know, or is silent.
pub(super) fn of(relid: pg_sys::Oid) -> Option<Figures> {
    let cluster = asked();
    if !cluster.silent.is_empty() {
        return None;
    }
    let table = catalog::qualified_name(relid);
    let mut sum = Some(0);
    let mut oldest: Option<f64> = None;
    for of_node in cluster.figures.iter().filter_map(|node| node.get(&table)) {
        let &(age, is_known, backlog) = of_node;
        if !is_known {
            return None;
        }
        sum = sum.zip(backlog).map(|(sum, backlog)| sum + backlog);
        oldest = oldest.into_iter().chain(age).reduce(f64::max);
    }
    let micros = |age: f64| externs::GetCurrentTimestamp() - (age * 1e6) as i64;
    Some(Figures {
        backlog: sum,
        oldest_expiry: oldest.map_or(0, micros),
    })
}

/// A problem for each node that cannot be asked.
pub(super) fn silent_nodes(relid: pg_sys::Oid) -> Vec<Problem> {
    if !is_elsewhere(relid) {
        return vec![];
    }
    let of_node = |(node, why): &(String, String)| {
        let text = format!("node {node} cannot be reached, so its figures are missing: {why}");
        Problem::new(text).with_statement("SELECT * FROM ttl.placements;")
    };
    asked().silent.iter().map(of_node).collect()
}

fn asked() -> Rc<ClusterFigures> {
    let occasion = (
        externs::GetCurrentStatementStartTimestamp(),
        roles::current_user(),
    );
    let known = ASKED.with_borrow(|asked| {
        let (when, cluster) = asked.as_ref()?;
        (*when == occasion).then(|| Rc::clone(cluster))
    });
    known.unwrap_or_else(|| {
        let cluster = Rc::new(ask());
        ASKED.with_borrow_mut(|asked| *asked = Some((occasion, Rc::clone(&cluster))));
        cluster
    })
}

fn ask() -> ClusterFigures {
    let mut cluster = ClusterFigures {
        figures: vec![],
        silent: vec![],
    };
    for answer in or_raise(citus::ask(FIGURES)) {
        let node = answer.name();
        let figures = answer.text.and_then(|text| {
            serde_json::from_str(text.as_deref().unwrap_or("{}"))
                .map_err(|error| format!("its answer cannot be read: {error}"))
        });
        match figures {
            Ok(figures) => cluster.figures.push(figures),
            Err(why) => cluster.silent.push((node, why)),
        }
    }
    cluster
}
