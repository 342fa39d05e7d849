//! Cached plans, to see whether a change of policy reaches them.

use crate::session::Session;

/// Plans over a table `t` that a session has cached: by PREPARE, in a function
/// in plpgsql, and by the extended protocol.
#[derive(Debug)]
pub struct CachedPlans(postgres::Statement);

impl CachedPlans {
    /// A table with a row that was written now and one written two hours ago,
    /// and a function that counts its rows.
    pub const TABLE: &str = "
        CREATE TABLE t (id integer PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
        INSERT INTO t VALUES (1, now()), (2, now() - interval '2 hours');
        CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN
            RETURN (SELECT count(*) FROM t);
        END $$;";

    /// Let the session cache its plans.
    ///
    /// # Panics
    /// If the table or the function is not there.
    pub fn of(session: &mut Session) -> CachedPlans {
        session.run(
            "SET plan_cache_mode = force_generic_plan; PREPARE seen AS SELECT count(*) FROM t",
        );
        let prepared = session.client.prepare("SELECT count(*) FROM t");
        let plans = CachedPlans(prepared.expect("the table t"));
        // Several runs, so that plpgsql's plan is a generic one too.
        for _ in 0..7 {
            plans.count(session);
        }
        plans
    }

    /// How many rows the cached plans see.
    ///
    /// # Panics
    /// If they disagree with each other or with a new plan.
    #[track_caller]
    pub fn count(&self, session: &mut Session) -> i64 {
        let rows = session
            .client
            .query(&self.0, &[])
            .expect("prepared statement");
        let count: i64 = rows[0].get(0);
        let others = ["EXECUTE seen", "SELECT seen()", "SELECT count(*) FROM t"];
        for other in others {
            assert_eq!(session.value(other), count.to_string(), "{other}");
        }
        count
    }
}
