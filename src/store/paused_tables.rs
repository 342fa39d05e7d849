//! Whether deletion of a table rests: it is paused, or it is not the time of day.

use crate::pg::catalog::local_time;
use crate::policy::{LocalTime, Rest, Resting};

/// Whether deletion rests at this instant, by the server's clocks.
pub(crate) fn at(rest: Rest, now: i64) -> Option<Resting> {
    rest.at(now, |instant| {
        let local = local_time::of_server(instant);
        LocalTime {
            offset: local.offset,
            until: local.until,
        }
    })
}
