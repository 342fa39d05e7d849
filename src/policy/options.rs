//! The options of a table's time to live. A new option is one entry here, its field in the policy, and its
//! documentation.

use super::label::Policy;
use super::rest::Window;

/// An option, as `ttl.set_option` and `WITH (ttl.…)` name it.
pub(crate) struct TableOption {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) set_by: SetBy,
}

/// Which function sets an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetBy {
    /// `ttl.enable`, which adds or builds what it names.
    Enable,
    /// `ttl.enable`, which checks it together with the default, or `ttl.set_option`.
    Both,
    /// `ttl.set_option`.
    SetOption,
}

/// What an option's value is, and where it goes; `None` is the value that it has unless it is set.
/// The policy is checked as a whole afterwards.
pub(crate) enum Value {
    /// The table's default. It has rules of its own (C8, C9): NULL turns TTL off.
    Default,
    /// A column or a kind of index, which `ttl.enable` checks.
    Built,
    /// A number of seconds (C17).
    Seconds(fn(&mut Policy, Option<i32>)),
    Boolean(fn(&mut Policy, Option<bool>)),
    /// Any text.
    Text(fn(&mut Policy, Option<&str>)),
    /// Hours of the day.
    Window(fn(&mut Policy, Option<Window>)),
}

/// All options, in the order of their names.
pub(crate) const OPTIONS: &[TableOption] = &[
    TableOption {
        name: "default_ttl",
        value: Value::Default,
        set_by: SetBy::Both,
    },
    TableOption {
        name: "delete_between",
        value: Value::Window(|policy, window| policy.delete_between = window),
        set_by: SetBy::SetOption,
    },
    TableOption {
        name: "document_column",
        value: Value::Built,
        set_by: SetBy::Enable,
    },
    TableOption {
        name: "drop_partitions",
        value: Value::Boolean(|policy, value| policy.drop_partitions = value.unwrap_or(false)),
        set_by: SetBy::Both,
    },
    TableOption {
        name: "hidden",
        value: Value::Boolean(|policy, value| policy.hidden = value.unwrap_or(true)),
        set_by: SetBy::Both,
    },
    TableOption {
        name: "index",
        value: Value::Built,
        set_by: SetBy::Enable,
    },
    TableOption {
        name: "keep_expired",
        value: Value::Seconds(|policy, seconds| policy.keep_expired = seconds.unwrap_or(0)),
        set_by: SetBy::SetOption,
    },
    TableOption {
        name: "notify",
        value: Value::Text(|policy, channel| policy.notify = channel.map(str::to_owned)),
        set_by: SetBy::SetOption,
    },
    TableOption {
        name: "ts_column",
        value: Value::Built,
        set_by: SetBy::Enable,
    },
    TableOption {
        name: "ts_granularity",
        value: Value::Seconds(|policy, seconds| policy.ts_granularity = seconds.unwrap_or(0)),
        set_by: SetBy::Both,
    },
    TableOption {
        name: "ttl_column",
        value: Value::Built,
        set_by: SetBy::Enable,
    },
];

pub(crate) fn option(name: &str) -> Option<&'static TableOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

impl TableOption {
    /// Whether `ttl.set_option` takes it.
    pub(crate) fn is_settable(&self) -> bool {
        self.set_by != SetBy::Enable
    }
}
