//! The time zones of TTL indexes on dates without one (M13).

use crate::pg::catalog::local_time::Zone;
use crate::policy::{self, LocalTime};

/// A time zone other than UTC, as the server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TimeZone {
    zone: Zone,
    pub(crate) name: String,
}

impl TimeZone {
    /// The zone of that name; `None` if the server has none.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let zone = Zone::named(name)?;
        Some(Self {
            zone,
            name: zone.name(),
        })
    }

    /// That of the session.
    pub(crate) fn of_session() -> Option<Self> {
        let zone = Zone::of_session()?;
        Some(Self {
            zone,
            name: zone.name(),
        })
    }

    /// Whether its clocks always show UTC.
    pub(crate) fn is_utc(&self) -> bool {
        let first = self.clock()(policy::FIRST_TIMESTAMP);
        first.offset == 0 && first.until.is_none()
    }

    /// Its local time at an instant, as a function.
    pub(crate) fn clock(&self) -> impl Fn(i64) -> LocalTime + Copy + use<> {
        clock(self.zone)
    }
}

/// A zone's local time at an instant, as a function.
pub(crate) fn clock(zone: Zone) -> impl Fn(i64) -> LocalTime + Copy {
    move |instant| {
        let local = zone.local(instant);
        LocalTime {
            offset: local.offset,
            until: local.until,
        }
    }
}
