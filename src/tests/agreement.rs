//! C1, C3, C5, D2, D3: the functions in SQL compute what the pure rules compute.

#[pgrx::pg_schema]
mod tests {
    use crate::policy;
    use pgrx::prelude::*;

    /// Microseconds since 2000-01-01 of what an expression in SQL yields.
    const MICROS: &str =
        "(extract(epoch FROM (%) - '2000-01-01 00:00:00+00'::timestamptz) * 1000000)::bigint";

    fn micros(expression: &str) -> Option<i64> {
        Spi::get_one(&format!("SELECT {}", MICROS.replace('%', expression))).expect("query")
    }

    /// C3, C5: `ttl.expires_at` over a grid of instants, overrides and defaults.
    #[pg_test]
    fn c5_expires_at_agrees() {
        for ts in [
            -1_000_000_000_000_i64,
            -1,
            0,
            1,
            999_999,
            1_000_000,
            820_000_000_000_000,
        ] {
            for ttl in [None, Some(-1), Some(1), Some(30), Some(i32::MAX)] {
                for default in [None, Some(-1), Some(1), Some(86_400), Some(i32::MAX)] {
                    let expected =
                        policy::expires_at(Some(ts), policy::effective_ttl(ttl, default));
                    let sql = |v: Option<i32>| v.map_or("NULL".to_owned(), |v| v.to_string());
                    let call = format!(
                        "ttl.expires_at('2000-01-01 00:00:00+00'::timestamptz + {ts} * interval '1 us', {}, {})",
                        sql(ttl),
                        sql(default)
                    );
                    let never = Spi::get_one::<bool>(&format!("SELECT {call} = 'infinity'"))
                        .expect("query");
                    if never == Some(true) {
                        assert_eq!(expected, i64::MAX, "{call}");
                    } else {
                        assert_eq!(micros(&call), Some(expected), "{call}");
                    }
                }
            }
        }
    }

    /// C5: `ttl.live` is "expires later than now", in all its forms.
    #[pg_test]
    fn c5_live_agrees() {
        for age in [-100, 0, 29, 30, 31, 1000] {
            for ttl in ["NULL", "-1", "30", "31"] {
                for default in ["-1", "30", "31"] {
                    let ts = format!("ttl.now() - {age} * interval '1 s'");
                    let same = Spi::get_one::<bool>(&format!(
                        "SELECT ttl.live({ts}, {ttl}, {default}) = (ttl.expires_at({ts}, {ttl}, {default}) > ttl.now())
                            AND ttl.live({ts}, {default}) = ttl.live({ts}, NULL, {default})
                            AND ({default} = -1 OR ttl.live({ts}, {default}) = ({ts} > ttl.cutoff({default})))"
                    ));
                    assert_eq!(
                        same,
                        Ok(Some(true)),
                        "age {age}, ttl {ttl}, default {default}"
                    );
                }
            }
        }
    }

    /// D2, D3: numbers as jsonb stores them.
    #[pg_test]
    fn d2_document_ttl_agrees() {
        for number in [
            "0",
            "-0",
            "1",
            "-1",
            "-1.0",
            "20.0",
            "20.50",
            "2e1",
            "2147483647",
            "2147483648",
            "-2147483648",
            "1e3",
            "1E-1",
            "123456789012345678901234567890",
            "1e300",
        ] {
            let stored =
                Spi::get_one::<String>(&format!("SELECT '{number}'::jsonb::text")).expect("query");
            let expected = stored.as_deref().and_then(policy::ttl_of_number_text);
            assert_eq!(expected, policy::ttl_of_number_text(number), "{number}");
            let found =
                Spi::get_one::<i32>(&format!("SELECT ttl.document_ttl('{{\"ttl\": {number}}}')"));
            assert_eq!(found, Ok(expected), "{number}");
        }
    }

    /// C1: the stamp is a whole second, no older than the statement and not in the future.
    #[pg_test]
    fn c1_current_ts_agrees() {
        let same = Spi::get_one::<bool>(
            "SELECT ttl.current_ts() BETWEEN date_trunc('second', statement_timestamp()) AND clock_timestamp()
                AND ttl.current_ts() = date_trunc('second', ttl.current_ts())",
        );
        assert_eq!(same, Ok(Some(true)));
    }
}
