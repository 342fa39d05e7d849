//! Options that a table keeps while its time to live is off, and that are in force again when it is turned on: nothing of
//! that is silent.

use crate::error::Error;
use crate::pg::catalog;
use crate::pg::server::background;
use crate::policy::Policy;
use pgrx::pg_sys;
use serde_json::Value;

/// The options that `ttl.disable` leaves in the label, by their names there.
const LASTING: [&str; 8] = [
    "archive_to",
    "delete_between",
    "drop_partitions",
    "hidden",
    "keep_expired",
    "notify",
    "paused_until",
    "ts_granularity",
];

/// For a time to live that is turned on: names the options that are as they were when it was turned off.
pub(super) fn tell(relid: pg_sys::Oid, former: Option<&Policy>, policy: &Policy) {
    let Some(former) = former.filter(|it| !it.is_on() && policy.is_on()) else {
        return;
    };
    let [former, present, usual] = [former, policy, &Policy::default()].map(as_json);
    let is_kept = |name: &&str| {
        let value = &present[*name];
        *value == former[*name] && *value != usual[*name]
    };
    let kept: Vec<&str> = LASTING.into_iter().filter(is_kept).collect();
    if kept.is_empty() {
        return;
    }
    let table = catalog::qualified_name(relid);
    let shown = kept.iter().map(|name| match &present[*name] {
        Value::String(text) => format!("{name} = {text}"),
        // The label has the end of a pause as a number.
        Value::Number(_) if *name == "paused_until" => (*name).to_owned(),
        value => format!("{name} = {value}"),
    });
    let shown: Vec<String> = shown.collect();
    let quoted = catalog::quote_literal(&table);
    let ended = kept.iter().map(|name| match *name {
        "archive_to" => format!("SELECT ttl.archive_to({quoted}, NULL);"),
        "paused_until" => format!("SELECT ttl.resume({quoted});"),
        name => format!("SELECT ttl.set_option({quoted}, '{name}', NULL);"),
    });
    let ended: Vec<String> = ended.collect();
    Error::for_notice(format!(
        "table {table} keeps options of its former time to live: {}",
        shown.join(", ")
    ))
    .detail("ttl.disable() without drop_columns leaves them as they are.")
    .hint(format!("To end them, run: {}", ended.join(" ")))
    .notice();
}

/// The policy as its label has it; a pause that is over is none.
fn as_json(policy: &Policy) -> Value {
    let mut policy = policy.clone();
    policy.paused_until = policy
        .paused_until
        .filter(|end| end.is_after(background::now()));
    serde_json::to_value(policy).unwrap_or_default()
}
