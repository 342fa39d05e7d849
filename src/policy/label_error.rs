//! Why a label was refused.

use super::label::{LABEL_VERSION, MAX_LABEL_BYTES, MAX_RULES};
use std::fmt;

/// Why a label was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LabelError {
    /// C2: 0, below -1, or above 2147483647.
    DefaultTtl(i64),
    /// Not JSON, not an object of the right form, an unknown field, …
    Malformed(String),
    /// Written by a newer version of the extension.
    Version(u32),
    /// The same column in two roles.
    SameColumn(String),
    /// C16: below 0, or above half of the default.
    Granularity(i32, Option<i32>),
    /// C16: a granularity without a `ts_column`.
    NoClock,
    /// C23: below 0, or above 2147483647.
    KeepExpired(i64),
    /// M1: below 0.
    Seconds(i32),
    /// M13: not the name of a time zone.
    TimeZone(String),
    /// An index has one rule.
    SameIndex(String),
    /// C28: not the name of a channel.
    Channel(String),
    /// More bytes than [`MAX_LABEL_BYTES`].
    TooLarge(usize),
    /// More TTL indexes than [`MAX_RULES`].
    TooManyRules(usize),
}

impl LabelError {
    /// Whether the label is valid but too large.
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::TooManyRules(_))
    }
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefaultTtl(value) => write!(
                f,
                "default_ttl is {value}; it must be -1 (no default) or 1 to 2147483647 seconds"
            ),
            Self::Malformed(reason) => f.write_str(reason),
            Self::Version(version) => write!(
                f,
                "version {version} is newer than {LABEL_VERSION}, the newest that this library reads"
            ),
            Self::SameColumn(column) => write!(f, "column \"{column}\" is named twice"),
            Self::Granularity(value, Some(default)) if *value > 0 && *default > 0 => write!(
                f,
                "ts_granularity is {value}; it must be 0 to {}, half of default_ttl",
                default / 2
            ),
            Self::Granularity(value, _) => {
                write!(f, "ts_granularity is {value}; it must be 0 to 2147483647")
            }
            Self::NoClock => f.write_str("ts_granularity needs a ts_column"),
            Self::KeepExpired(value) => write!(
                f,
                "keep_expired is {value}; it must be 0 to 2147483647 seconds"
            ),
            Self::Seconds(value) => write!(
                f,
                "expire_after_seconds is {value}; it must be 0 to 2147483647"
            ),
            Self::TimeZone(name) => write!(
                f,
                "time_zone is \"{name}\"; the name of a time zone has 1 to 63 ASCII characters without spaces"
            ),
            Self::SameIndex(index) => write!(f, "index \"{index}\" is named twice"),
            Self::Channel(name) => write!(
                f,
                "notify is \"{name}\"; the name of a channel has 1 to 63 bytes"
            ),
            Self::TooLarge(bytes) => write!(
                f,
                "it has {bytes} bytes; a label has {MAX_LABEL_BYTES} at most"
            ),
            Self::TooManyRules(count) => write!(
                f,
                "it names {count} TTL indexes; a table has {MAX_RULES} at most"
            ),
        }
    }
}
