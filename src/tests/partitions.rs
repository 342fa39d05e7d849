//! M11: the bounds of partitions, and dropping them.

#[pgrx::pg_schema]
mod tests {
    use crate::deletion::partition_bounds::{BoundKind, DateColumn};
    use crate::deletion::{partition_bounds, partitions};
    use crate::pg::abi::report::or_raise;
    use crate::pg::catalog;
    use crate::pg::session::gate::{self, GateVisit};
    use crate::policy::EpochUnit;
    use crate::store::cache;
    use pgrx::prelude::*;

    fn run(statement: &str) {
        Spi::run(statement).expect("statement");
    }

    fn oid(table: &str) -> pg_sys::Oid {
        let query = format!("SELECT '{table}'::regclass::oid");
        Spi::get_one(&query).expect("query").expect("oid")
    }

    fn exists(table: &str) -> bool {
        let query = format!("SELECT to_regclass('{table}') IS NOT NULL");
        Spi::get_one(&query).expect("query").expect("boolean")
    }

    /// Microseconds, as PostgreSQL counts them.
    fn micros(time: &str) -> Option<i64> {
        let query = format!(
            "SELECT (extract(epoch FROM timestamptz '{time}') * 1000000)::bigint - 946684800000000"
        );
        Spi::get_one(&query).expect("query")
    }

    fn newest(leaf: pg_sys::Oid, name: &str) -> Option<i64> {
        let column = DateColumn::of_clock(name);
        partition_bounds::range(leaf, &column).map(|range| range.newest)
    }

    fn bound(leaf: &str) -> Option<i64> {
        newest(oid(leaf), "_ts")
    }

    fn as_owner<T>(leaf: pg_sys::Oid, work: impl FnOnce(&GateVisit) -> T) -> T {
        let class = catalog::class(leaf).expect("a table");
        gate::visit(class.owner, work)
    }

    fn drop_whole(leaf: pg_sys::Oid) {
        as_owner(leaf, |visit| or_raise(partitions::drop_whole(visit, leaf)));
    }

    fn has_live_row(leaf: &str) -> bool {
        let policy = cache::policy(oid(leaf)).expect("policy");
        as_owner(oid(leaf), |visit| {
            partitions::has_live_row(visit, oid(leaf), &policy)
        })
    }

    /// Partitions of one level, of which the last has no end.
    fn days() {
        run(
            "CREATE TABLE p (id integer, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ttl integer) PARTITION BY RANGE (_ts)",
        );
        run("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO ('2020-01-01 00:00+00')");
        run(
            "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2020-01-01 00:00+00') TO ('2020-01-02 00:00+00')",
        );
        run("CREATE TABLE p3 PARTITION OF p FOR VALUES FROM ('2020-02-01 00:00+00') TO (MAXVALUE)");
        run("SELECT ttl.enable('p', 60, drop_partitions => true)");
    }

    #[pg_test]
    fn m11_upper_bound_of_one_level() {
        days();
        run("CREATE TABLE rest PARTITION OF p DEFAULT");
        run("CREATE TABLE alone (_ts timestamptz)");
        assert_eq!(bound("p1"), micros("2020-01-01 00:00+00").map(|t| t - 1));
        assert_eq!(bound("p2"), micros("2020-01-02 00:00+00").map(|t| t - 1));
        for unbounded in ["p3", "rest", "alone", "p"] {
            assert_eq!(bound(unbounded), None, "{unbounded}");
        }
        assert_eq!(newest(oid("p1"), "ttl"), None);
        assert_eq!(newest(oid("p1"), "no'such"), None);
        assert_eq!(newest(pg_sys::Oid::from_u32(1), "_ts"), None);
    }

    /// The least bound of all levels counts, by name: the columns' numbers differ.
    #[pg_test]
    fn m11_upper_bound_of_several_levels() {
        days();
        run(
            "CREATE TABLE q (ttl integer, gone integer, _ts timestamptz NOT NULL, id integer, CONSTRAINT p_ttl_check CHECK (ttl.is_override(ttl) IS NOT FALSE)) PARTITION BY LIST (id)",
        );
        run("ALTER TABLE q DROP COLUMN gone");
        run("CREATE TABLE q1 PARTITION OF q DEFAULT");
        run("CREATE TABLE q2 PARTITION OF q FOR VALUES IN (2) PARTITION BY RANGE (_ts)");
        run(
            "CREATE TABLE q2a PARTITION OF q2 FOR VALUES FROM (MINVALUE) TO ('2020-01-02 12:00+00')",
        );
        run("CREATE TABLE q2b PARTITION OF q2 DEFAULT");
        run(
            "ALTER TABLE p ATTACH PARTITION q FOR VALUES FROM ('2020-01-02 00:00+00') TO ('2020-01-03 00:00+00')",
        );
        for leaf in ["q", "q1", "q2", "q2b"] {
            assert_eq!(bound(leaf), micros("2020-01-03 00:00+00").map(|t| t - 1));
        }
        assert_eq!(bound("q2a"), micros("2020-01-02 12:00+00").map(|t| t - 1));
    }

    /// Numbers since 1970, in each unit and of each type; what is no time is no bound.
    #[pg_test]
    fn m11_bounds_of_numbers() {
        let range = |kind: &str, unit: EpochUnit, from: &str, to: &str| {
            run(&format!(
                "CREATE TABLE n (c {kind}) PARTITION BY RANGE (c);
                 CREATE TABLE n1 PARTITION OF n FOR VALUES FROM ({from}) TO ({to})"
            ));
            let column = DateColumn {
                name: "c".to_owned(),
                kind: BoundKind::Epoch {
                    is_bigint: kind == "bigint",
                    unit,
                },
            };
            let range = partition_bounds::range(oid("n1"), &column);
            run("DROP TABLE n");
            range.map(|range| (range.newest, range.reaches_minus_infinity))
        };
        let at = |time: &str, certain: bool| micros(time).map(|time| (time, !certain));
        let (seconds, ms, us) = (
            EpochUnit::Seconds,
            EpochUnit::Milliseconds,
            EpochUnit::Microseconds,
        );
        let hour = "1970-01-01 00:59:59+00";
        assert_eq!(range("integer", seconds, "0", "3600"), at(hour, true));
        assert_eq!(
            range("integer", seconds, "MINVALUE", "3600"),
            at(hour, true)
        );
        assert_eq!(range("bigint", seconds, "0", "3600"), at(hour, true));
        assert_eq!(
            range("bigint", seconds, "MINVALUE", "3600"),
            at(hour, false)
        );
        let smallest = "-9223372036854775808";
        assert_eq!(range("bigint", seconds, smallest, "3600"), at(hour, false));
        assert_eq!(
            range("bigint", ms, "0", "3600000"),
            at("1970-01-01 00:59:59.999+00", true)
        );
        assert_eq!(
            range("bigint", us, "0", "3600000000"),
            at("1970-01-01 00:59:59.999999+00", true)
        );
        assert_eq!(
            range("bigint", seconds, "0", "9223372036854775807"),
            Some((i64::MAX, false))
        );
        assert_eq!(range("integer", seconds, "0", "MAXVALUE"), None);
        // A column of another type than the one that is asked for.
        assert_eq!(range("smallint", seconds, "0", "100"), None);
        assert_eq!(range("numeric", seconds, "0", "100"), None);
    }

    /// Only the first of several columns bounds, and then the bound itself is inside.
    #[pg_test]
    fn m11_upper_bound_of_other_keys() {
        let table = |name: &str, key: &str, from: &str, to: &str| {
            run(&format!(
                "CREATE TABLE {name} (id integer, _ts timestamptz, plain timestamp) PARTITION BY RANGE ({key})"
            ));
            run(&format!(
                "CREATE TABLE {name}1 PARTITION OF {name} FOR VALUES FROM ({from}) TO ({to})"
            ));
            bound(&format!("{name}1"))
        };
        let time = "'2020-01-01 00:00+00'";
        assert_eq!(
            table(
                "two",
                "_ts, id",
                "MINVALUE, MINVALUE",
                &format!("{time}, 5")
            ),
            micros("2020-01-01 00:00+00")
        );
        run(&format!("INSERT INTO two VALUES (4, {time})"));
        assert_eq!(
            table("second", "id, _ts", "1, MINVALUE", &format!("2, {time}")),
            None
        );
        assert_eq!(table("other", "plain", "MINVALUE", time), None);
        assert_eq!(
            table("expression", "(greatest(_ts, _ts))", "MINVALUE", time),
            None
        );
        assert_eq!(
            table("never", "_ts", "MINVALUE", "'infinity'"),
            Some(i64::MAX - 1)
        );
        assert_eq!(
            table("always", "_ts", "MINVALUE", "'-infinity'"),
            Some(i64::MIN)
        );
    }

    /// An operator class that orders backwards: what it calls less is later.
    #[pg_test]
    fn m11_no_bound_by_a_foreign_order() {
        run(
            "CREATE FUNCTION backwards(timestamptz, timestamptz) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT timestamptz_cmp($2, $1)'",
        );
        run(
            "CREATE OPERATOR CLASS backwards_ops FOR TYPE timestamptz USING btree AS
             OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
             FUNCTION 1 backwards(timestamptz, timestamptz)",
        );
        run("CREATE TABLE p (_ts timestamptz) PARTITION BY RANGE (_ts backwards_ops)");
        run("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO ('2020-01-01 00:00+00')");
        assert_eq!(bound("p1"), None);
        assert!(!partition_bounds::has_range_level(
            oid("p"),
            &DateColumn::of_clock("_ts")
        ));
    }

    #[pg_test]
    fn m11_live_rows() {
        days();
        run("SET LOCAL ttl.preserve_ts = on");
        assert!(!has_live_row("p2"));
        run(
            "INSERT INTO p VALUES (1, '2020-01-01 12:00+00', NULL), (2, '2020-01-01 12:00+00', 3600)",
        );
        assert!(!has_live_row("p2"));
        run("INSERT INTO p VALUES (3, '2020-01-01 12:00+00', -1)");
        assert!(has_live_row("p2"));
        // The right to see expired rows ends with the look.
        assert_eq!(Spi::get_one::<i64>("SELECT count(*) FROM p"), Ok(Some(1)));
    }

    #[pg_test]
    fn m11_dropped_as_the_owners() {
        run("CREATE SCHEMA \"Sch ema\"");
        run("CREATE ROLE ttl_test_parent");
        run("CREATE ROLE ttl_test_leaf");
        run("GRANT USAGE, CREATE ON SCHEMA \"Sch ema\" TO ttl_test_parent, ttl_test_leaf");
        run("SET LOCAL search_path = public, \"Sch ema\"");
        run("CREATE TABLE \"Sch ema\".\"P\" (_ts timestamptz) PARTITION BY RANGE (_ts)");
        run(
            "CREATE TABLE \"Sch ema\".\"P '1\" PARTITION OF \"P\" FOR VALUES FROM (MINVALUE) TO ('2020-01-01')",
        );
        run("INSERT INTO \"P\" VALUES ('2019-01-01')");
        run("ALTER TABLE \"P\" OWNER TO ttl_test_parent");
        run("ALTER TABLE \"P '1\" OWNER TO ttl_test_leaf");
        let leaf = oid("\"P ''1\"");
        assert_eq!(partitions::sole_owner(leaf), None);
        run("ALTER TABLE \"P '1\" OWNER TO ttl_test_parent");
        assert!(partitions::sole_owner(leaf).is_some());
        // Who does what, as an event trigger sees it.
        run("CREATE TABLE ddl (tag text, role name)");
        run("GRANT INSERT ON ddl TO PUBLIC");
        run(
            "CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO ddl VALUES (tg_tag, current_user); END $$",
        );
        run("CREATE EVENT TRIGGER note ON ddl_command_start EXECUTE FUNCTION note()");
        assert_eq!(partitions::lock_for_drop(leaf), Some(oid("\"P\"")));
        drop_whole(leaf);
        assert!(!exists("\"P ''1\""));
        assert_eq!(partitions::lock_for_drop(leaf), None);
        assert_eq!(
            Spi::get_one::<String>("SELECT string_agg(tag || ' ' || role, ', ') FROM ddl")
                .expect("query")
                .as_deref(),
            Some("ALTER TABLE ttl_test_parent, DROP TABLE ttl_test_parent")
        );
        assert_eq!(
            Spi::get_one::<bool>("SELECT current_user = session_user"),
            Ok(Some(true))
        );
    }

    /// The other partitions, and the sessions' idea of the policy, stay as they are.
    #[pg_test]
    fn m11_the_others_stay() {
        days();
        run("SET LOCAL ttl.preserve_ts = on");
        run("INSERT INTO p VALUES (1, '2020-01-01 12:00+00', NULL), (2, '2020-02-01', -1)");
        drop_whole(oid("p2"));
        assert!(exists("p1") && exists("p3"));
        assert_eq!(Spi::get_one::<i32>("SELECT id FROM p"), Ok(Some(2)));
        assert!(cache::policy(oid("p3")).is_some());
    }

    #[pg_test(error = "table public.alone is not a partition")]
    fn m11_no_table_of_its_own_is_dropped() {
        run("SET LOCAL search_path = public");
        run("CREATE TABLE alone (_ts timestamptz)");
        drop_whole(oid("alone"));
    }

    #[pg_test(error = "cannot drop table p1 because other objects depend on it")]
    fn m11_a_view_keeps_it() {
        run("SET LOCAL search_path = public");
        days();
        run("CREATE VIEW seen AS SELECT * FROM p1");
        drop_whole(oid("p1"));
    }

    /// Expired or not, a row that others refer to stays.
    #[pg_test(error = "refused by the foreign key")]
    fn m11_a_foreign_key_keeps_it() {
        run("SET LOCAL search_path = public");
        run(
            "CREATE TABLE k (id integer, _ts timestamptz, PRIMARY KEY (id, _ts)) PARTITION BY RANGE (_ts)",
        );
        run("CREATE TABLE k1 PARTITION OF k FOR VALUES FROM (MINVALUE) TO ('2020-01-01')");
        run(
            "CREATE TABLE refers (id integer, _ts timestamptz, FOREIGN KEY (id, _ts) REFERENCES k)",
        );
        run("INSERT INTO k VALUES (1, '2019-01-01')");
        run("INSERT INTO refers VALUES (1, '2019-01-01')");
        run("SELECT ttl.enable('k', 60, ttl_column => NULL)");
        // Versions name the constraint in the message differently.
        PgTryBuilder::new(|| drop_whole(oid("k1")))
            .catch_when(PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION, |_| {
                error!("refused by the foreign key")
            })
            .execute();
    }
}
