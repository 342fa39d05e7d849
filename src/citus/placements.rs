//! The same call on each copy of each shard, as the current user: by Citus's own function, on
//! connections and in transactions of their own.

use super::catalogs;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, names};
use pgrx::{PgSqlErrorCode, Spi, pg_sys, spi};

/// A call does not wait longer for a lock: it may be one of the transaction that asks.
const LOCK_TIMEOUT: &str = "5s";

/// What Citus replaces by a shard's name, as a literal.
const SHARD: &str = "%L";

/// What a call has returned at one copy.
pub(crate) struct PlacementAnswer {
    pub(crate) shard: i64,
    text: String,
}

/// Calls `function` for each copy of each shard of the shell; its first argument is a shard, and its others are these (SQL).
pub(crate) fn call(
    shell: pg_sys::Oid,
    function: &str,
    others: &[String],
) -> Result<Vec<PlacementAnswer>> {
    if !catalogs::is_present() {
        return Ok(vec![]);
    }
    let arguments: String = others.iter().map(|other| format!(", {other}")).collect();
    let arguments = arguments.replace('%', "%%");
    // Citus names shards without the schema `public`.
    let schema = catalog::class(shell).map(|class| names::of_schema(class.namespace));
    let public = schema.is_some_and(|name| name == "public");
    let shard = if public {
        format!("pg_catalog.concat('public.', {SHARD})")
    } else {
        SHARD.to_owned()
    };
    // The query in WITH is VOLATILE, so it runs first, and once.
    let command = format!(
        "WITH patience AS \
             (SELECT pg_catalog.set_config('lock_timeout', '{LOCK_TIMEOUT}', true)) \
         SELECT pg_catalog.to_json(answer) FROM patience \
             CROSS JOIN LATERAL {function}({shard}::pg_catalog.regclass{arguments}) AS answer"
    );
    let query = format!(
        "SELECT nodename, nodeport, shardid, success, result \
           FROM pg_catalog.run_command_on_placements({}::pg_catalog.regclass, {})",
        shell.to_u32(),
        catalog::quote_literal(&command)
    );
    let query = encoding::query(&query);
    let answers = Spi::connect_mut(|client| {
        let found = client.update(&query, None, &[])?;
        let text = |value: Option<Text>| value.map_or(String::new(), |text| text.0);
        found
            .map(|row| {
                let (name, port) = (text(row.get(1)?), row.get::<i32>(2)?.unwrap_or(0));
                let (shard, text) = (row.get(3)?.unwrap_or(0), text(row.get(5)?));
                Ok(match row.get(4)?.unwrap_or(false) {
                    true => Ok(PlacementAnswer { shard, text }),
                    false => Err(failure(&format!("{name}:{port}"), shard, &text)),
                })
            })
            .collect::<spi::Result<Result<Vec<_>>>>()
    });
    answers.map_err(Error::from)?
}

fn failure(node: &str, shard: i64, text: &str) -> Error {
    let message = format!("a shard could not be worked on at {node}");
    Error::not_ready(message)
        .detail(format!("Shard {shard}: {text}"))
        .hint("What other shards have done by then is done. Mend the cause, and try again.")
}

/// The sum of what shards have returned; copies of one shard count once.
pub(crate) fn sum(answers: &[PlacementAnswer]) -> Result<i64> {
    let mut largest = std::collections::BTreeMap::new();
    for answer in answers {
        let value = answer.json()?.as_i64().ok_or_else(|| answer.unreadable())?;
        let of_shard = largest.entry(answer.shard).or_insert(0);
        *of_shard = value.max(*of_shard);
    }
    Ok(largest.values().sum())
}

impl PlacementAnswer {
    /// What was returned.
    pub(crate) fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.text).map_err(|_| self.unreadable())
    }

    fn unreadable(&self) -> Error {
        let message = format!("shard {} has returned \"{}\"", self.shard, self.text);
        Error::new(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message)
            .hint("The nodes may have different versions of ttl_ext.")
    }
}
