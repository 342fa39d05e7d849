//! What the attacker's code tries when it runs in somebody else's session.

/// One attempt: the body of the function that every carrier calls.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) name: &'static str,
    body: &'static str,
    /// Errors are caught, so that the surrounding statement continues.
    caught: bool,
    /// Where an attempt can be detected, which decides which visitors it is tried on.
    pub(super) trace: Trace,
}

/// Where an attempt leaves its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    /// In the database: rights, and what ran as whom.
    Database,
    /// In the visitor's session after the statement, or that of whoever is next in a process.
    Session,
    /// In a process whose next user is another owner: state that no session resets.
    Process,
    /// In the visitor's transaction after the statement.
    Transaction,
    /// In the duration of the visit, beyond the visitor's time limit.
    Time,
}

const fn attempt(name: &'static str, trace: Trace, body: &'static str) -> Attempt {
    Attempt {
        name,
        body,
        caught: true,
        trace,
    }
}

const fn raw(name: &'static str, trace: Trace, body: &'static str) -> Attempt {
    Attempt {
        name,
        body,
        caught: false,
        trace,
    }
}

/// Only shows whether code runs, and as whom. Where it does not run, no attempt can do more.
pub(super) const PROBE: usize = 0;

/// The loops end by themselves, long after they should have been cancelled.
const STUBBORN: &str = "WHILE clock_timestamp() < statement_timestamp() + interval '2.5 s' LOOP
        BEGIN PERFORM pg_sleep(0.1); EXCEPTION WHEN query_canceled THEN NULL; END;
    END LOOP;";

pub(super) static ATTEMPTS: [Attempt; 26] = [
    attempt("probe", Trace::Database, "NULL;"),
    attempt("rights", Trace::Database, "PERFORM arms.bite();"),
    attempt(
        "reset_role",
        Trace::Database,
        "EXECUTE 'RESET ROLE'; PERFORM arms.bite();",
    ),
    attempt(
        "reset_session",
        Trace::Database,
        "EXECUTE 'RESET SESSION AUTHORIZATION'; PERFORM arms.bite();",
    ),
    attempt(
        "become_superuser",
        Trace::Database,
        "EXECUTE 'SET SESSION AUTHORIZATION postgres'; PERFORM arms.bite();",
    ),
    attempt(
        "cursor",
        Trace::Database,
        "EXECUTE 'DECLARE evil CURSOR WITH HOLD FOR SELECT arms.bite()';",
    ),
    attempt(
        "deferred",
        Trace::Database,
        "INSERT INTO arms.later VALUES (1);",
    ),
    attempt(
        "advisory",
        Trace::Database,
        "PERFORM pg_try_advisory_lock(4711);",
    ),
    attempt(
        "prepare",
        Trace::Session,
        "EXECUTE 'PREPARE evil AS SELECT arms.bite()';",
    ),
    attempt(
        "temp_table",
        Trace::Session,
        "EXECUTE 'CREATE TEMP TABLE evil (i integer)';",
    ),
    attempt(
        "temp_function",
        Trace::Session,
        "EXECUTE 'CREATE FUNCTION pg_temp.evil() RETURNS text LANGUAGE sql AS $q$SELECT arms.bite()$q$';",
    ),
    attempt("listen", Trace::Session, "EXECUTE 'LISTEN evil';"),
    attempt(
        "set_search_path",
        Trace::Session,
        "PERFORM set_config('search_path', 'arms, pg_catalog', false);",
    ),
    attempt(
        "set_role",
        Trace::Session,
        "PERFORM set_config('role', '{a}', false);",
    ),
    attempt(
        "set_session_authorization",
        Trace::Session,
        "PERFORM set_config('session_authorization', '{a}', false);",
    ),
    attempt(
        "set_row_security",
        Trace::Session,
        "PERFORM set_config('row_security', 'off', false);",
    ),
    attempt(
        "set_custom",
        Trace::Session,
        "PERFORM set_config('evil.mark', 'here', false);",
    ),
    attempt("setseed", Trace::Process, "PERFORM setseed(0.42);"),
    attempt(
        "set_local_search_path",
        Trace::Transaction,
        "PERFORM set_config('search_path', 'arms, pg_catalog', true);",
    ),
    attempt(
        "set_local_row_security",
        Trace::Transaction,
        "PERFORM set_config('row_security', 'off', true);",
    ),
    attempt("recursion", Trace::Database, "PERFORM arms.deeper(1);"),
    // One that the table's owner may end by itself, but which keeps its place until then.
    attempt(
        "hold_table",
        Trace::Database,
        "LOCK TABLE {s}.t IN ACCESS EXCLUSIVE MODE;",
    ),
    raw("error", Trace::Database, "RAISE EXCEPTION 'evil';"),
    raw("loop", Trace::Time, "LOOP NULL; END LOOP;"),
    raw("sleep", Trace::Time, "PERFORM pg_sleep(3600);"),
    raw("stubborn", Trace::Time, STUBBORN),
];

impl Attempt {
    /// The function that carriers call, with this attempt in it; nothing happens in the
    /// session that makes the case.
    pub(super) fn arm(&self) -> String {
        let body = if self.caught {
            format!(
                "BEGIN\n        {}\n    EXCEPTION WHEN OTHERS THEN NULL;\n    END;",
                self.body
            )
        } else {
            self.body.to_owned()
        };
        format!(
            "CREATE OR REPLACE FUNCTION arms.pay() RETURNS void LANGUAGE plpgsql AS $pay$\nBEGIN\n    \
             IF current_setting('application_name') = 'builder' THEN RETURN; END IF;\n    PERFORM arms.ran();\n    {body}\nEND $pay$;"
        )
    }
}
