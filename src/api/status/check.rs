//! `ttl.check`: all problems of a database, each with the statements to run.

use super::{constraint_problems, deletion_problems, lasting_settings, library, problems};
use crate::api::policy::problem::Problem;
use crate::pg::abi::values::Text;
use crate::pg::catalog;
use crate::store::all_labels;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.check() RETURNS SETOF record`: first what concerns all tables, with NULL as the relation,
/// then each table's own. No row if all is well.
#[pg_extern(sql = false)]
#[allow(
    clippy::type_complexity,
    reason = "the columns, as pgrx wants them named"
)]
fn check() -> TableIterator<
    'static,
    (
        name!(relation, Option<pg_sys::Oid>),
        name!(problem, Text),
        name!(to_do, Option<Text>),
    ),
> {
    let labels = all_labels();
    let common: Vec<Problem> = if labels.is_empty() {
        let none = "no table of this database has a time to live: ttl.enable() gives a table one";
        vec![Problem::new(none)]
    } else {
        let of_server = deletion_problems::of_server().into_iter();
        let of_database = of_server.chain(library::problem());
        of_database.chain(lasting_settings::problems()).collect()
    };
    let labelled = labels.into_iter().map(|(relid, _)| relid);
    // The temporary tables of other sessions are theirs to look after.
    let tables = labelled.filter(|&relid| {
        let class = catalog::class(relid);
        !class.is_some_and(|class| class.is_other_temporary())
    });
    let mut found: Vec<(Option<pg_sys::Oid>, Problem)> = Vec::new();
    for relid in tables.chain(constraint_problems::without_label()) {
        let all = problems::all(relid).into_iter();
        let own = all.filter(|problem| !common.contains(problem));
        found.extend(own.map(|problem| (Some(relid), problem)));
    }
    let common = common.into_iter().map(|problem| (None, problem));
    let rows = common
        .chain(found)
        .map(|(relid, problem)| (relid, Text(problem.text), problem.to_do.map(Text)));
    TableIterator::new(rows.collect::<Vec<_>>())
}
