//! `ttl.invalidate_plans`: for CREATE EXTENSION where labels are there already.

use crate::error::{Result, or_raise};
use crate::pg::{catalog, seclabel};
use crate::reaper::writes;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Makes every session replan its statements on tables that carry a label. A
/// label means nothing while the extension is not there: plans made before it
/// was created (again) lack the restriction.
#[pg_extern(sql = false)]
fn invalidate_plans() {
    writes::note_policy_change();
    or_raise(invalidate_labelled());
}

fn invalidate_labelled() -> Result<()> {
    let query = "SELECT objoid FROM pg_catalog.pg_seclabel WHERE provider OPERATOR(pg_catalog.=) 'ttl' \
                 AND classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass";
    let tables = Spi::connect(|client| {
        client
            .select(query, None, &[])?
            .map(|row| row.get::<pg_sys::Oid>(1))
            .collect::<std::result::Result<Vec<_>, _>>()
    })?;
    for relid in tables.into_iter().flatten() {
        if catalog::class(relid).is_some() {
            seclabel::invalidate(relid);
        }
    }
    Ok(())
}
