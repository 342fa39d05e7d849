//! The time zone of a TTL index on dates without one (M13).

use crate::error::{Error, Result};
use crate::policy::{self, IndexRule};
use crate::store::dates::DateType;
use crate::store::time_zone::TimeZone;
use crate::store::ttl_index::ShownKey;

/// The time zone that a TTL index gets.
pub(in crate::api) struct Chosen {
    /// As the label names it; `None` is UTC, and what dates with a time zone have.
    pub(in crate::api) name: Option<String>,
    /// What is to be said of it once the change is made.
    pub(in crate::api) notice: Option<Notice>,
}

/// NOTICEs about a time zone.
pub(in crate::api) struct Notice {
    zone: TimeZone,
    /// Whether rows may live again that the former zone had expired.
    is_other: bool,
}

/// The time zone of dates of this type: the one that is asked for, or the one that the index has, or
/// else the session's.
pub(in crate::api) fn choose(
    asked: Option<&str>,
    present: Option<&IndexRule>,
    date: DateType,
) -> Result<Chosen> {
    let kept = present.map(|rule| rule.time_zone.clone());
    if !date.is_local() {
        return match asked {
            Some(_) => Err(has_time_zone()),
            None => Ok(Chosen {
                name: None,
                notice: None,
            }),
        };
    }
    let zone = match (asked, kept.clone()) {
        (Some(name), _) => Some(TimeZone::named(name).ok_or_else(|| unknown(name))?),
        (None, Some(name)) => return Ok(Chosen { name, notice: None }),
        (None, None) => TimeZone::of_session(),
    };
    // A name that the label cannot have is that of a zone which was defined for one session only.
    let zone = zone.filter(|zone| policy::is_zone_name(&zone.name));
    let name = zone
        .as_ref()
        .filter(|zone| !zone.is_utc())
        .map(|zone| zone.name.clone());
    let is_other = kept.is_some_and(|kept| kept != name);
    let notice = zone.filter(|_| asked.is_none() || is_other);
    Ok(Chosen {
        name,
        notice: notice.map(|zone| Notice { zone, is_other }),
    })
}

impl Notice {
    /// Says which zone counts. `call` is the call that chose it, without the closing
    /// bracket.
    pub(in crate::api) fn send(self, key: &ShownKey, table: &str, call: &str) {
        let zone = &self.zone.name;
        let (kind, key) = (key.kind, &key.text);
        let message = format!("{kind} {key} of table {table} is read in time zone {zone}");
        let notice = Error::for_notice(message);
        if self.is_other {
            notice
                .detail("Rows that had expired only in the former time zone are visible again, unless they have been deleted.")
                .notice();
        } else {
            let other = if self.zone.is_utc() {
                "America/New_York"
            } else {
                "UTC"
            };
            notice
                .hint(format!(
                    "To use another time zone, such as {other}, run: SELECT {call}, time_zone => '{other}');"
                ))
                .notice();
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::invalid(format!("time zone \"{name}\" not recognized"))
        .hint("For the names, run: SELECT name FROM pg_catalog.pg_timezone_names ORDER BY name;")
}

fn has_time_zone() -> Error {
    Error::invalid("argument \"time_zone\" cannot be given for dates of type timestamptz")
        .detail("Values of this type already include their time zone.")
        .hint("Leave out \"time_zone\".")
}
