//! Shortens the script of a fault: leaves steps out as long as the fault remains.

use std::time::{Duration, Instant};

use super::generator::{Step, Way};
use super::runner::Bench;
use super::schema::Schema;

/// How long a fault may take.
const LIMIT: Duration = Duration::from_secs(40);

/// The fault as a script, and whether it repeats in a new schema.
pub(super) fn report(
    bench: &mut Bench<'_>,
    schema: &Schema,
    mut steps: Vec<Step>,
    wild: bool,
    first: &str,
) -> (String, bool) {
    let end = Instant::now() + LIMIT;
    let mut again = |steps: &[Step]| {
        bench.tested.abandon();
        bench.plain.abandon();
        bench.build(schema);
        bench.sequence(schema, steps, wild)
    };
    let mut fault = first.to_owned();
    let steady = match again(&steps) {
        Some(same) => {
            fault = same;
            true
        }
        None => false,
    };
    let mut size = if steady { steps.len() / 2 } else { 0 };
    while size > 0 {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            match again(&fewer) {
                Some(same) => {
                    steps = fewer;
                    fault = same;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    bench.tested.abandon();
    bench.plain.abandon();
    let kind = if wild { "wild" } else { "compared" };
    let lines: Vec<_> = steps.iter().map(line).collect();
    let text = format!(
        "{kind}:\n--- schema\n{}\n--- steps\n{}\n--- fault\n{fault}",
        bench.tested.script(schema),
        lines.join("\n")
    );
    (text, steady)
}

fn line(step: &Step) -> String {
    match step.way {
        Way::Preserving => format!(
            "SET ttl.preserve_ts = on; {}; RESET ttl.preserve_ts;",
            step.sql
        ),
        Way::Copy => format!("{}\n\\.", step.sql.replacen('\n', ";\n", 1)),
        Way::Extended => format!("{};  -- prepared", step.sql),
        _ => format!("{};", step.sql),
    }
}
