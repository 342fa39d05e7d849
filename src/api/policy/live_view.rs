//! `ttl.create_live_view`: a view of a table's live rows (C31).

use super::{cluster, guard, write_label};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::{self, Text};
use crate::pg::catalog::{self, qualified_name, quote_literal};
use crate::pg::catalog::{names, roles};
use crate::pg::session;
use crate::policy::Policy;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

/// `ttl.create_live_view(rel, view_name, drop_with_policy) RETURNS regclass`. The view is the
/// caller's, reads with the rights of who reads it, and goes by the policy in force at the time.
#[pg_extern(sql = false)]
fn create_live_view(
    rel: Option<pg_sys::Oid>,
    view_name: Option<Text>,
    drop_with_policy: Option<bool>,
) -> pg_sys::Oid {
    guard::check_writable(c"ttl.create_live_view()");
    let create = || {
        let relid = guard::required(rel, "rel")?;
        let name = guard::required(view_name, "view_name")?;
        let drop_with_policy = guard::required(drop_with_policy, "drop_with_policy")?;
        session::with_safe_search_path(|| create(relid, &name.0, drop_with_policy))
    };
    or_raise(create())
}

fn create(relid: pg_sys::Oid, name: &str, drop_with_policy: bool) -> Result<pg_sys::Oid> {
    guard::check_owner(relid)?;
    let hint = format!(
        "To hide expired rows from all, run: SELECT ttl.enable({}, hidden => true);",
        quote_literal(&qualified_name(relid))
    );
    cluster::refuse_on_shell(relid, "ttl.create_live_view()", &hint)?;
    guard::lock(relid, pg_sys::ShareUpdateExclusiveLock);
    let mut policy = guard::present_policy(relid)?;
    let view = view_name(relid, name);
    encoding::run(&format!(
        "CREATE VIEW {view} WITH (security_invoker) AS SELECT r.* FROM {} AS r WHERE ttl.is_live(r.*)",
        qualified_name(relid)
    ))?;
    let created = resolve(&view)?.ok_or_else(|| {
        Error::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!("view {view} was dropped as soon as it was created"),
        )
        .hint("Look at the event triggers of the database.")
    })?;
    if drop_with_policy {
        policy.added.views.push(qualified_name(created));
        write_label::write(relid, &policy);
    }
    Ok(created)
}

/// The name qualified and quoted; the table's schema is the default.
fn view_name(relid: pg_sys::Oid, name: &str) -> String {
    let mut parts = names::parts(name);
    if let ([_], Some(class)) = (parts.as_slice(), catalog::class(relid)) {
        return format!(
            "{}.{}",
            catalog::schema_name(class.namespace),
            catalog::quote_identifier(&parts.remove(0))
        );
    }
    let quoted = parts.iter().map(|part| catalog::quote_identifier(part));
    quoted.collect::<Vec<_>>().join(".")
}

fn resolve(view: &str) -> Result<Option<pg_sys::Oid>> {
    let query = format!(
        "SELECT pg_catalog.to_regclass({})::pg_catalog.oid::pg_catalog.int8::pg_catalog.text",
        quote_literal(view)
    );
    Ok(values::oids(&query)?.pop())
}

/// Before columns of the policy go: drops the views that the label says go with them; refuses if
/// others read them.
///
/// A label is a text that an owner may write: so only what is a view of this table's live rows, and
/// belongs to the table's owner, is dropped.
pub(in crate::api) fn remove(relid: pg_sys::Oid, policy: &Policy, adopted_too: bool) -> Result<()> {
    for name in &policy.added.views {
        let noted = resolve(name)?;
        let views = live_views(relid)?;
        if let Some(view) = noted.filter(|view| views.contains(view))
            && is_owners(relid, view)
        {
            let drop = format!("DROP VIEW {}", qualified_name(view));
            cluster::alter_itself(view, &drop, || catalog::class(view).is_none())?;
        }
    }
    let columns = policy.ts_column.iter().chain(&policy.ttl_column);
    let going: Vec<i16> = columns
        .filter(|column| adopted_too || policy.added.has_column(column))
        .filter_map(|column| Some(catalog::attribute(relid, column)?.attno))
        .collect();
    refuse_readers(relid, &going)
}

/// Refuses to drop columns that views read (2BP01): names the views, and what drops them.
pub(super) fn refuse_readers(relid: pg_sys::Oid, columns: &[i16]) -> Result<()> {
    let views = readers(relid, columns)?;
    if views.is_empty() {
        return Ok(());
    }
    let drop = |&view: &pg_sys::Oid| {
        let is_materialized =
            catalog::class(view).is_some_and(|class| class.relkind == pg_sys::RELKIND_MATVIEW);
        let kind = if is_materialized {
            "MATERIALIZED VIEW"
        } else {
            "VIEW"
        };
        format!("DROP {kind} {};", qualified_name(view))
    };
    let drops: Vec<String> = views.iter().map(drop).collect();
    let names: Vec<String> = views.into_iter().map(qualified_name).collect();
    let table = qualified_name(relid);
    Err(Error::new(
        PgSqlErrorCode::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop columns of table {table}, because views read them"),
    )
    .detail(format!("They are: {}.", names.join(", ")))
    .hint(format!("First run: {}", drops.join(" "))))
}

/// The views that read one of these columns of the table, and those that read such a view, before it.
fn readers(relid: pg_sys::Oid, columns: &[i16]) -> Result<Vec<pg_sys::Oid>> {
    let columns: Vec<String> = columns.iter().map(i16::to_string).collect();
    values::oids(&format!(
        "WITH RECURSIVE reads (view, of, col) AS ( \
           SELECT r.ev_class, d.refobjid, d.refobjsubid FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_depend AS d \
               ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass \
              AND d.objid OPERATOR(pg_catalog.=) r.oid AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass \
            WHERE r.ev_class OPERATOR(pg_catalog.<>) d.refobjid), \
         found (view, depth) AS ( \
           SELECT view, 1 FROM reads WHERE of OPERATOR(pg_catalog.=) {}::pg_catalog.oid \
              AND col OPERATOR(pg_catalog.=) ANY ('{{{}}}'::pg_catalog.int4[]) \
           UNION SELECT reads.view, found.depth OPERATOR(pg_catalog.+) 1 FROM found JOIN reads ON reads.of OPERATOR(pg_catalog.=) found.view) \
         SELECT view::pg_catalog.int8::pg_catalog.text FROM found GROUP BY view ORDER BY pg_catalog.max(depth) DESC, view",
        relid.to_u32(),
        columns.join(",")
    ))
}

fn is_owners(relid: pg_sys::Oid, view: pg_sys::Oid) -> bool {
    catalog::owner(relid).is_some_and(|owner| roles::owns_relation(view, owner))
}

/// The views that read the table and call `ttl.is_live`.
fn live_views(relid: pg_sys::Oid) -> Result<Vec<pg_sys::Oid>> {
    values::oids(&format!(
        "SELECT DISTINCT r.ev_class::pg_catalog.int8::pg_catalog.text FROM pg_catalog.pg_rewrite AS r \
           JOIN pg_catalog.pg_depend AS t ON t.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass \
            AND t.objid OPERATOR(pg_catalog.=) r.oid AND t.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass \
            AND t.refobjid OPERATOR(pg_catalog.=) {}::pg_catalog.oid \
           JOIN pg_catalog.pg_depend AS f ON f.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass \
            AND f.objid OPERATOR(pg_catalog.=) r.oid AND f.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass \
            AND f.refobjid OPERATOR(pg_catalog.=) 'ttl.is_live(pg_catalog.record)'::pg_catalog.regprocedure::pg_catalog.oid \
          WHERE r.ev_class OPERATOR(pg_catalog.<>) {}::pg_catalog.oid",
        relid.to_u32(),
        relid.to_u32()
    ))
}
