//! The options of a table's time to live by name, as `ttl.set_option` takes them.

use super::label::Policy;

/// An option of a policy that has one.
pub(crate) struct TableOption {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
}

/// What an option's value is, and where it goes; `None` is the value that it has unless it is set.
/// The policy is checked as a whole afterwards.
pub(crate) enum Value {
    /// The table's default. It has rules of its own (C8, C9): NULL turns TTL off.
    Default,
    /// A number of seconds (C17).
    Seconds(fn(&mut Policy, Option<i32>)),
    Boolean(fn(&mut Policy, Option<bool>)),
}

/// All options, in the order of their names.
pub(crate) const OPTIONS: &[TableOption] = &[
    TableOption {
        name: "default",
        value: Value::Default,
    },
    TableOption {
        name: "drop_partitions",
        value: Value::Boolean(|policy, value| policy.drop_partitions = value.unwrap_or(false)),
    },
    TableOption {
        name: "granularity",
        value: Value::Seconds(|policy, seconds| policy.ts_granularity = seconds.unwrap_or(0)),
    },
    TableOption {
        name: "hidden",
        value: Value::Boolean(|policy, value| policy.hidden = value.unwrap_or(true)),
    },
];

/// The option of that name.
pub(crate) fn option(name: &str) -> Option<&'static TableOption> {
    OPTIONS.iter().find(|option| option.name == name)
}
