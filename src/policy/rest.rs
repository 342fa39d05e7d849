//! When background deletion of a table rests: a pause, and the hours outside its window (C29, C30).

use super::expiry::{END_TIMESTAMP, INFINITY, MICROS_PER_SECOND};
use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

const MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MINUTES_PER_DAY: i64 = 24 * 60;
/// 2000-01-01, from which instants count, in seconds since 1970.
const EPOCH: i64 = 946_684_800;

/// The end of a pause, an instant in whole seconds, or [`INFINITY`]. In a label: seconds since 1970,
/// or "infinity".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PauseEnd(i64);

impl PauseEnd {
    /// A pause until then, or the next whole second.
    pub(crate) fn at(instant: i64) -> Self {
        let part = instant.rem_euclid(MICROS_PER_SECOND);
        match instant {
            _ if instant >= END_TIMESTAMP - MICROS_PER_SECOND => Self(INFINITY),
            _ if part == 0 => Self(instant),
            _ => Self(instant - part + MICROS_PER_SECOND),
        }
    }

    /// Whether the pause lasts beyond the instant.
    pub(crate) fn is_after(self, instant: i64) -> bool {
        self.0 > instant
    }

    /// A pause without an end.
    pub(crate) fn is_endless(self) -> bool {
        self.0 == INFINITY
    }
}

impl Serialize for PauseEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_endless() {
            serializer.serialize_str("infinity")
        } else {
            serializer.serialize_i64(self.0 / MICROS_PER_SECOND + EPOCH)
        }
    }
}

impl<'de> Deserialize<'de> for PauseEnd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Seconds(i64),
            Word(String),
        }
        let end = match Stored::deserialize(deserializer) {
            Ok(Stored::Word(word)) if word == "infinity" => Some(Self(INFINITY)),
            Ok(Stored::Seconds(seconds)) if seconds >= 0 => (seconds - EPOCH)
                .checked_mul(MICROS_PER_SECOND)
                .filter(|&instant| instant < END_TIMESTAMP)
                .map(Self),
            _ => None,
        };
        end.ok_or_else(|| {
            serde::de::Error::custom("paused_until must be seconds since 1970, or \"infinity\"")
        })
    }
}

/// A part of each day, in minutes of the server's local time: from the first to before the last,
/// over midnight if that is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    from: u16,
    to: u16,
}

/// Local time while its difference from UTC is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalTime {
    /// Local time less UTC, in seconds.
    pub(crate) offset: i64,
    /// When that changes next.
    pub(crate) until: Option<i64>,
}

impl Window {
    /// Reads `HH:MM-HH:MM`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let window = text.split_once('-').and_then(|(from, to)| {
            let (from, to) = (minute_of_day(from)?, minute_of_day(to)?);
            (from != to).then_some(Self { from, to })
        });
        window.ok_or_else(|| {
            Error::invalid(format!(
                "invalid value for option \"delete_between\": \"{text}\""
            ))
            .detail("Write HH:MM-HH:MM, such as 22:00-06:00; start and end must differ.")
            .hint("Use NULL to allow deletion at any time.")
        })
    }

    /// Whether it is open in this minute of the local day.
    pub(crate) fn has(self, minute: i64) -> bool {
        let (from, to) = (i64::from(self.from), i64::from(self.to));
        if from < to {
            (from..to).contains(&minute)
        } else {
            minute >= from || minute < to
        }
    }

    /// The first instant from `now` on at which local clocks show a time within the window: a time
    /// that a day lacks, or has twice, counts as often as it is shown.
    pub(crate) fn next_opening(self, now: i64, local: impl Fn(i64) -> LocalTime) -> i64 {
        let mut at = now;
        // Clocks change a few times a year: a window that is open at all is met long before.
        for _ in 0..MINUTES_PER_DAY {
            let time = local(at);
            let shown = at.saturating_add(time.offset * MICROS_PER_SECOND);
            let minute = shown.div_euclid(MINUTE).rem_euclid(MINUTES_PER_DAY);
            if self.has(minute) {
                return at;
            }
            let minutes = (i64::from(self.from) - minute).rem_euclid(MINUTES_PER_DAY);
            let opening = at.saturating_add(minutes * MINUTE - shown.rem_euclid(MINUTE));
            match time.until {
                Some(until) if until <= opening && until > at => at = until,
                _ => return opening,
            }
        }
        at
    }
}

/// `HH:MM`, 00:00 to 23:59; 24:00 is midnight, too.
fn minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |digits: &str| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(digits)?.parse::<u16>().ok()
    };
    match (number(hours)?, number(minutes)?) {
        (24, 0) => Some(0),
        (hours, minutes) if hours < 24 && minutes < 60 => Some(hours * 60 + minutes),
        _ => None,
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = |minute: u16| (minute / 60, minute % 60);
        let ((a, b), (c, d)) = (parts(self.from), parts(self.to));
        write!(f, "{a:02}:{b:02}-{c:02}:{d:02}")
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|error| serde::de::Error::custom(error.message))
    }
}

/// What keeps background deletion of a table waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rest {
    pub(crate) paused_until: Option<PauseEnd>,
    pub(crate) delete_between: Option<Window>,
}

/// Why deletion rests, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resting {
    pub(crate) until: i64,
    /// By a pause, not only by the window.
    pub(crate) paused: bool,
}

impl Rest {
    /// Whether deletion rests now.
    pub(crate) fn at(self, now: i64, local: impl Fn(i64) -> LocalTime) -> Option<Resting> {
        let pause = self.paused_until.map(|end| end.0).filter(|&end| end > now);
        let from = pause.unwrap_or(now);
        let until = match self.delete_between {
            Some(window) if from != INFINITY => window.next_opening(from, local),
            _ => from,
        };
        (until > now).then_some(Resting {
            until,
            paused: pause.is_some(),
        })
    }
}
