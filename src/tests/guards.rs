//! C2, C6, C11: errors, and state that must not outlive them.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    fn run(statement: &str) {
        Spi::run(statement).expect("statement");
    }

    fn live_and_expired() {
        run("CREATE TABLE t (id integer)");
        run("SELECT ttl.enable('t', 60)");
        run("SET LOCAL ttl.preserve_ts = on");
        run("INSERT INTO t (id, _ts) VALUES (1, now()), (2, now() - interval '1 h')");
        run("SET LOCAL ttl.preserve_ts = off");
    }

    #[pg_test(error = "invalid default time to live: 0")]
    fn c2_zero_is_refused() {
        live_and_expired();
        run("SELECT ttl.set_default('t', 0)");
    }

    #[pg_test(error = "cannot drop column _ts because the time to live of table public.t needs it")]
    fn c11_column_is_kept() {
        run("SET LOCAL search_path = public");
        live_and_expired();
        run("ALTER TABLE t DROP COLUMN _ts");
    }

    #[pg_test(error = "new row for relation \"t\" violates check constraint \"t_ttl_check\"")]
    fn c3_zero_override_is_refused() {
        live_and_expired();
        run("INSERT INTO t (id, ttl) VALUES (3, 0)");
    }

    /// The extension's own query sees expired rows; one that fails leaves no
    /// such right to the next statement.
    #[pg_test]
    fn c6_failed_purge_leaves_nothing_behind() {
        live_and_expired();
        run(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$",
        );
        run("CREATE TRIGGER refuse BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION refuse()");
        run("DO $$ BEGIN PERFORM ttl.purge('t'); EXCEPTION WHEN raise_exception THEN NULL; END $$");
        assert_eq!(Spi::get_one::<i64>("SELECT count(*) FROM t"), Ok(Some(1)));
        let same = Spi::get_one::<bool>("SELECT current_user = session_user");
        assert_eq!(same, Ok(Some(true)));
        run("DROP TRIGGER refuse ON t");
        assert_eq!(Spi::get_one::<i64>("SELECT ttl.purge('t')"), Ok(Some(1)));
    }

    /// An own query that cannot even be planned must not hand its right on.
    #[pg_test]
    fn c6_unplannable_preview_leaves_nothing_behind() {
        live_and_expired();
        run("CREATE ROLE ttl_test_stranger");
        run(
            "DO $$ BEGIN SET LOCAL ROLE ttl_test_stranger; PERFORM * FROM ttl.preview('t');
             EXCEPTION WHEN insufficient_privilege THEN NULL; END $$",
        );
        run("RESET ROLE");
        assert_eq!(Spi::get_one::<i64>("SELECT count(*) FROM t"), Ok(Some(1)));
    }

    /// A setting that returns at the end of a subtransaction hides again.
    #[pg_test]
    fn c6_show_expired_ends_with_its_subtransaction() {
        live_and_expired();
        run(
            "CREATE FUNCTION n() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$",
        );
        assert_eq!(Spi::get_one::<i64>("SELECT n()"), Ok(Some(1)));
        run(
            "DO $$ BEGIN SET LOCAL ttl.show_expired = on; ASSERT n() = 2; RAISE 'undo';
             EXCEPTION WHEN raise_exception THEN NULL; END $$",
        );
        assert_eq!(Spi::get_one::<i64>("SELECT n()"), Ok(Some(1)));
    }

    /// An ALTER TABLE that fails in a subtransaction ends its validation mode.
    #[pg_test]
    fn failed_alter_table_leaves_nothing_behind() {
        live_and_expired();
        run(
            "DO $$ BEGIN ALTER TABLE t ADD CHECK (id > 1); EXCEPTION WHEN check_violation THEN NULL; END $$",
        );
        assert!(crate::visibility::referential::CONSTRAINT_DDL.is_empty());
        run("ALTER TABLE t ADD COLUMN x int");
        assert!(crate::visibility::referential::CONSTRAINT_DDL.is_empty());
    }

    /// Deletion reads referencing tables of the same owner only, and no query reads one that was given away
    /// meanwhile.
    #[pg_test]
    fn referencing_tables_of_others_are_not_read() {
        use crate::deletion::{job::Job, referred};
        use crate::pg::exec::query::{self, Sql};
        let oid = |name: &str| {
            Spi::get_one::<pg_sys::Oid>(&format!("SELECT '{name}'::regclass::oid"))
                .expect("query")
                .expect("oid")
        };
        run(
            "CREATE ROLE other; CREATE TABLE p (id int PRIMARY KEY); SELECT ttl.enable('p', 3600);
             CREATE TABLE own (id int REFERENCES p);
             CREATE TABLE partitioned (id int REFERENCES p) PARTITION BY LIST (id);
             CREATE TABLE cascading (id int REFERENCES p ON DELETE CASCADE);
             CREATE TABLE others (id int REFERENCES p)",
        );
        run("ALTER TABLE others OWNER TO other");
        let job = Job::of(oid("p")).expect("a policy");
        let referred = referred::by_catalog(job.relid).expect("a table");
        assert_eq!(referred.tables, [oid("p"), oid("own")]);
        let count = || {
            crate::pg::session::txn::nested(|| {
                crate::pg::session::gate::as_oneself(|visit| {
                    let text = "SELECT 1::bigint WHERE NOT EXISTS (SELECT 1 FROM ONLY public.own AS x WHERE x.id = p.id)";
                    let query = Sql::over(job.relid, text).among(&referred.tables);
                    Ok(query::first_value(visit, query, &[]).is_some())
                })
            })
        };
        run("INSERT INTO p VALUES (1)");
        assert!(count().expect("no error"));
        run("ALTER TABLE own OWNER TO other");
        let failure = count().expect_err("given away");
        assert_eq!(failure.sqlstate(), "55000", "{failure:?}");
        assert!(failure.message.contains("is not a table of"), "{failure:?}");
        run(
            "ALTER TABLE own OWNER TO CURRENT_USER; ALTER TABLE own RENAME TO former;
             CREATE TABLE own (id int)",
        );
        let failure = count().expect_err("another table");
        assert!(failure.message.contains("another table"), "{failure:?}");
    }

    /// What began in a failed subtransaction ends with it; what began outside goes on.
    #[pg_test]
    fn scopes_end_with_their_subtransaction() {
        static RUNNING: crate::pg::session::scoped::Scoped<i32> =
            crate::pg::session::scoped::Scoped::new();
        let outer = RUNNING.enter(1);
        let failed = crate::pg::session::txn::nested(|| {
            let inner = RUNNING.enter(2);
            RUNNING.enter(3);
            assert_eq!(RUNNING.leave(inner), Some(2));
            RUNNING.enter(4);
            run("SELECT 1 / 0");
            Ok(())
        });
        assert!(failed.is_err());
        assert_eq!(RUNNING.current(), Some(1));
        assert_eq!(RUNNING.leave(outer), Some(1));
        assert!(RUNNING.is_empty());
    }

    /// A database's session remembers policies, negative ones too, until they change.
    #[pg_test]
    fn c8_cache_follows_changes() {
        let relid = || {
            Spi::get_one::<pg_sys::Oid>("SELECT 't'::regclass::oid")
                .expect("query")
                .expect("oid")
        };
        run("CREATE TABLE t (id integer)");
        assert!(crate::store::cache::policy(relid()).is_none());
        run("SELECT ttl.enable('t', 60)");
        assert_eq!(
            crate::store::cache::policy(relid()).and_then(|p| p.label.default_ttl),
            Some(60)
        );
        run("SELECT ttl.set_default('t', 61)");
        assert_eq!(
            crate::store::cache::policy(relid()).and_then(|p| p.label.default_ttl),
            Some(61)
        );
        run("SECURITY LABEL FOR ttl ON TABLE t IS NULL");
        assert!(crate::store::cache::policy(relid()).is_none());
        assert!(crate::store::cache::policy(pg_sys::RelationRelationId).is_none());
    }
}
