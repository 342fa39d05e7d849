//! C30: the window by PostgreSQL's time zones is the window by its own conversions.

#[pgrx::pg_schema]
mod tests {
    use crate::pg::catalog::local_time;
    use crate::policy::{LocalTime, Window};
    use pgrx::pg_sys;
    use pgrx::prelude::*;
    use std::ffi::CString;

    const MINUTE: i64 = 60_000_000;

    fn local(zone: &str) -> impl Fn(i64) -> LocalTime {
        let name = CString::new(zone).expect("no NUL");
        // SAFETY: within a transaction; PostgreSQL keeps each zone that it has read.
        let zone = unsafe { pg_sys::pg_tzset(name.as_ptr()) };
        assert!(!zone.is_null());
        move |instant| {
            // SAFETY: as said above.
            let local = unsafe { local_time::of_zone(zone, instant) };
            LocalTime {
                offset: local.offset,
                until: local.until,
            }
        }
    }

    /// The minutes of the local day at every seventh minute of three days from this one on.
    fn minutes(zone: &str, day: &str) -> Vec<(i64, i64)> {
        let query = format!(
            "SELECT array_agg(ARRAY[(extract(epoch FROM at - '2000-01-01 00:00+00') * 1000000)::bigint,
                                    extract(hour FROM at AT TIME ZONE '{zone}')::bigint * 60
                                    + extract(minute FROM at AT TIME ZONE '{zone}')::bigint] ORDER BY at)::text
               FROM generate_series('{day} 00:00+00'::timestamptz, '{day} 00:00+00'::timestamptz + interval '3 days',
                                    '1 minute') AS at"
        );
        let text = Spi::get_one::<String>(&query)
            .expect("query")
            .expect("rows");
        let rows: Vec<(i64, i64)> =
            serde_json::from_str(&text.replace('{', "[").replace('}', "]")).expect("pairs");
        rows
    }

    #[pg_test]
    fn c30_windows_agree_with_the_server() {
        // The changes of clocks: forward, back, by half an hour, over a whole day, and none.
        for (zone, day) in [
            ("Europe/Berlin", "2024-03-30"),
            ("Europe/Berlin", "2024-10-26"),
            ("America/New_York", "2025-03-08"),
            ("Australia/Lord_Howe", "2025-04-05"),
            ("Pacific/Apia", "2011-12-29"),
            ("Asia/Kathmandu", "2024-03-30"),
            ("UTC", "1969-12-30"),
            ("Europe/Berlin", "2090-03-25"),
        ] {
            let table = minutes(zone, day);
            let local = local(zone);
            for text in ["02:15-02:45", "22:00-06:00", "23:59-00:00", "12:00-11:00"] {
                let window = Window::parse(text).expect("a window");
                for at in (0..table.len()).step_by(7) {
                    let open = table[at..].iter().find(|(_, minute)| window.has(*minute));
                    let Some(&(open, _)) = open else {
                        continue;
                    };
                    let found = window.next_opening(table[at].0, &local);
                    assert_eq!(found, open, "{zone} {text} {:?}", table[at]);
                    if open > table[at].0 {
                        let found = window.next_opening(table[at].0 + MINUTE - 1, &local);
                        assert_eq!(found, open, "{zone} {text} {:?}", table[at]);
                    }
                }
            }
        }
    }
}
