//! M13: what local time means in a zone is what `AT TIME ZONE` says.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    fn differences(zone: &str, times: &str) -> Option<i64> {
        // A constant zone, whose offset is kept from row to row.
        let query = format!(
            "SELECT count(*) FROM {times} AS t
              WHERE ttl.in_time_zone(t, '{zone}') IS DISTINCT FROM timezone('{zone}', t)
                 OR ttl.in_time_zone(t::date, '{zone}') IS DISTINCT FROM timezone('{zone}', t::date::timestamp)"
        );
        Spi::get_one(&query).expect("query")
    }

    #[pg_test]
    fn m13_local_time_agrees_with_the_server() {
        for (zone, from, until) in [
            ("America/New_York", "2024-12-30", "2026-01-03"),
            ("Europe/Berlin", "2037-01-01", "2039-01-03"),
            ("Australia/Lord_Howe", "2025-01-01", "2026-01-03"),
            ("Africa/Casablanca", "2025-01-01", "2026-01-03"),
            // A day was left out.
            ("Pacific/Apia", "2011-12-01", "2012-01-30"),
            // A day came twice.
            ("America/Anchorage", "1867-10-01", "1867-11-30"),
            ("Asia/Kathmandu", "1985-12-20", "1986-01-10"),
            ("America/Sao_Paulo", "1930-01-01", "1935-01-03"),
        ] {
            let times = format!("generate_series('{from}'::timestamp, '{until}', '17 minutes')");
            assert_eq!(differences(zone, &times), Some(0), "{zone}");
            let times = format!("(SELECT t FROM {times} AS t ORDER BY md5(t::text)) AS s (t)");
            let times = format!("(SELECT t FROM {times})");
            assert_eq!(differences(zone, &times), Some(0), "{zone}, in any order");
        }
        // All zones, with times over the centuries: AT TIME ZONE takes some names for abbreviations.
        let others = Spi::get_one::<i64>(
            "SELECT count(*) FROM (SELECT name FROM pg_timezone_names WHERE name LIKE '%/%' ORDER BY md5(name) LIMIT 60) AS n,
                    generate_series('1800-01-01 00:30'::timestamp, '2100-01-01', '53 days 7 hours 11 minutes') AS t
              WHERE ttl.in_time_zone(t, name) IS DISTINCT FROM timezone(name, t)
                 OR ttl.local_time(timezone('UTC', t), name) IS DISTINCT FROM timezone(name, timezone('UTC', t))",
        );
        assert_eq!(others, Ok(Some(0)));
    }

    #[pg_test]
    fn m13_no_time_raises_an_error() {
        let seen = Spi::get_one::<String>(
            "SELECT string_agg(coalesce(ttl.in_time_zone(t, z)::text, 'NULL'), ' ' ORDER BY z, t)
               FROM (VALUES ('infinity'::timestamp), ('-infinity'), ('294276-12-31 23:59:59'), ('4713-01-01 00:00 BC')) AS t (t),
                    (VALUES ('America/New_York'), ('No/Where'), ('UTC'), (repeat('x', 3000))) AS z (z)",
        );
        let expected = Spi::get_one::<String>(
            "SELECT concat_ws(' ', '-infinity', timezone('America/New_York', '4713-01-01 00:00 BC'::timestamp),
                              'infinity infinity', 'NULL NULL NULL NULL', '-infinity',
                              timezone('UTC', '4713-01-01 00:00 BC'::timestamp),
                              timezone('UTC', '294276-12-31 23:59:59'::timestamp), 'infinity', 'NULL NULL NULL NULL')",
        );
        assert_eq!(seen, expected);
        let days = Spi::get_one::<String>(
            "SELECT string_agg(ttl.in_time_zone(d, 'Asia/Tokyo')::text, ' ' ORDER BY d)
               FROM (VALUES ('infinity'::date), ('-infinity'), ('5874897-12-31')) AS d (d)",
        );
        assert_eq!(days, Ok(Some("-infinity infinity infinity".to_owned())));
    }
}
