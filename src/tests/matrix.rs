//! C2, C3, C6: the matrix through every access path that a session has.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    fn run(statement: &str) {
        Spi::run(statement).expect("statement");
    }

    /// Four rows, written 30 s ago, one for each override of the matrix.
    fn table() {
        run("CREATE TABLE t (ttl integer)");
        run("SELECT ttl.enable('t')");
        run("SET LOCAL ttl.preserve_ts = on");
        run(
            "INSERT INTO t (ttl, _ts) SELECT x, ttl.now() - interval '30 s' FROM unnest(ARRAY[NULL, -1, 30, 31]) x",
        );
    }

    const PATHS: [&str; 6] = [
        "SELECT coalesce(string_agg(coalesce(ttl::text, 'null'), ' ' ORDER BY ttl NULLS FIRST), '') FROM t",
        "SELECT coalesce(string_agg(coalesce(ttl::text, 'null'), ' ' ORDER BY ttl NULLS FIRST), '') FROM (SELECT * FROM t UNION ALL SELECT * FROM t WHERE false) x",
        "WITH x AS MATERIALIZED (SELECT * FROM t) SELECT coalesce(string_agg(coalesce(ttl::text, 'null'), ' ' ORDER BY ttl NULLS FIRST), '') FROM x",
        "SELECT coalesce(string_agg(coalesce(ttl::text, 'null'), ' ' ORDER BY ttl NULLS FIRST), '') FROM (SELECT * FROM t FOR UPDATE) x",
        "WITH x AS (UPDATE t SET ttl = ttl RETURNING ttl) SELECT coalesce(string_agg(coalesce(ttl::text, 'null'), ' ' ORDER BY ttl NULLS FIRST), '') FROM x",
        "WITH x AS (DELETE FROM t RETURNING ttl) SELECT coalesce(string_agg(coalesce(ttl::text, 'null'), ' ' ORDER BY ttl NULLS FIRST), '') FROM x",
    ];

    fn expect(default: &str, live: &str) {
        table();
        run(&format!(
            "SELECT ttl.set_default('t', {default}, revive_expired => true)"
        ));
        for path in PATHS {
            assert_eq!(
                Spi::get_one::<String>(path).expect("query").as_deref(),
                Some(live),
                "{path}"
            );
        }
    }

    #[pg_test]
    fn c2_off() {
        expect("NULL", "null -1 30 31");
    }

    #[pg_test]
    fn c2_without_default() {
        expect("-1", "null -1 31");
    }

    #[pg_test]
    fn c2_default_30() {
        expect("30", "-1 31");
    }

    #[pg_test]
    fn c2_default_31() {
        expect("31", "null -1 31");
    }
}
