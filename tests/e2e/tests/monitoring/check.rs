//! `ttl.check()`: each of the commonest mistakes is shown in words, and what it says to run, pasted as it stands, ends it.

use ttl_ext_e2e::{Server, Session};

/// What `ttl.check()` says of a table, or with `∅` of the server, by how it begins: what to do. Whatever it
/// says of any is SQL, or nothing.
#[track_caller]
fn to_do(session: &mut Session, relation: &str, problem: &str) -> String {
    let found = session.rows("SELECT relation, problem, to_do FROM ttl.check()");
    for row in &found {
        assert!(row[2] == "∅" || is_sql(&row[2]), "{row:#?}");
    }
    let row = found
        .iter()
        .find(|row| row[0] == relation && row[1].starts_with(problem));
    let Some(row) = row else {
        panic!("no '{problem}' of {relation} in {found:#?}");
    };
    row[2].clone()
}

/// The statements of a text, without the comments around them.
fn statements(text: &str) -> Vec<&str> {
    let text = text.split(" -- ").next().unwrap_or_default();
    let text = text.split_once("*/ ").map_or(text, |(_, rest)| rest);
    text.split_inclusive(';').map(str::trim).collect()
}

/// Whether these are statements, each with its semicolon, and nothing is left for the reader to fill in.
fn is_sql(text: &str) -> bool {
    let is_statement = |statement: &&str| {
        let verb = statement.split(' ').next().unwrap_or_default();
        statement.ends_with(';') && !verb.is_empty() && verb.chars().all(|c| c.is_ascii_uppercase())
    };
    let all = statements(text);
    !all.is_empty() && all.iter().all(is_statement) && !text.contains(['…'])
}

/// Follows the advice as psql does, a statement at a time.
fn follow(session: &mut Session, advice: &str) {
    for statement in statements(advice) {
        session.run(statement);
    }
}

const NOTHING: [&str; 0] = [];

/// How a table comes to have a problem, the table, how the problem begins.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "SELECT ttl.pause('t')",
        "t",
        "nothing is deleted: paused without an end",
    ),
    (
        "DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR ttl ON TABLE t IS %L',
             (SELECT label FROM pg_seclabel WHERE objoid = 't'::regclass AND provider = 'ttl')); END $$",
        "t",
        "nothing is deleted: restored from a dump",
    ),
    (
        "SET row_security = off; DROP TRIGGER \"~ttl_free_expired_keys\" ON t; RESET row_security",
        "t",
        "trigger \"~ttl_free_expired_keys\" of public.t is missing",
    ),
    (
        "UPDATE pg_trigger SET tgenabled = 'D' WHERE tgrelid = 't'::regclass AND tgname LIKE '~%'",
        "t",
        "trigger \"~ttl_free_expired_keys\" of public.t is not enabled ALWAYS",
    ),
    (
        "SET row_security = off; DROP INDEX t_expiry_key_idx; RESET row_security",
        "t",
        "no valid index on (ttl.expiry_key(_ts, ttl))",
    ),
    (
        "SET row_security = off; ALTER TABLE t DROP CONSTRAINT t_ttl_check; RESET row_security",
        "t",
        "column ttl takes any number",
    ),
    (
        "SET row_security = off; ALTER TABLE t ALTER COLUMN _ts DROP NOT NULL; RESET row_security;
         SET ttl.preserve_ts = on; INSERT INTO t VALUES (1);
         SET session_replication_role = replica; UPDATE t SET _ts = NULL;
         RESET session_replication_role; RESET ttl.preserve_ts",
        "t",
        "column _ts may be NULL",
    ),
    (
        "ALTER TABLE t ALTER COLUMN _ts DROP DEFAULT",
        "t",
        "column _ts has no default",
    ),
    (
        "CREATE FUNCTION as_is() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
         CREATE TRIGGER \"~~1\" BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION as_is()",
        "t",
        "trigger \"~~1\" of public.t fires after",
    ),
    // Nothing is known of what it was, but that there was a time to live.
    (
        "CREATE TABLE copy (LIKE t INCLUDING DEFAULTS INCLUDING CONSTRAINTS)",
        "copy",
        "no row expires: the table has constraint t_ttl_check",
    ),
    // Parents without a time to live get that of the table.
    (
        "CREATE TABLE ev_old (id int, at timestamptz NOT NULL);
         SELECT ttl.expire_after('ev_old', 'at', '1 day');
         CREATE TABLE ev (LIKE ev_old) PARTITION BY RANGE (at);
         ALTER TABLE ev ATTACH PARTITION ev_old DEFAULT",
        "ev_old",
        "rows of public.ev expire only in public.ev_old",
    ),
    (
        "CREATE TABLE \"Day\" (at timestamp NOT NULL, done boolean, s text);
         CREATE INDEX ON \"Day\" (at) WHERE done;
         SELECT ttl.expire_index('\"Day_at_idx\"', 60, time_zone => 'Asia/Tokyo', hidden => false);
         CREATE INDEX iso ON \"Day\" (ttl.from_iso8601(s));
         SELECT ttl.expire_index('iso', 0);
         CREATE TABLE days (LIKE \"Day\") PARTITION BY LIST (done);
         ALTER TABLE days ATTACH PARTITION \"Day\" DEFAULT",
        "\"Day\"",
        "rows of public.days expire only in public.\"Day\"",
    ),
    (
        "CREATE TABLE above (a int);
         CREATE TABLE middle () INHERITS (above);
         CREATE TABLE below () INHERITS (middle);
         SELECT ttl.enable('below', 7200, ttl_column => NULL)",
        "below",
        "no INSERT or UPDATE through public.above",
    ),
    (
        "CREATE TABLE p (a int) PARTITION BY LIST (a);
         CREATE TABLE p1 PARTITION OF p DEFAULT;
         SELECT ttl.enable('p', 3600, index => 'btree');
         SET row_security = off; DROP INDEX p_expiry_key_idx; RESET row_security",
        "p",
        "no valid index on (ttl.expiry_key(_ts, ttl))",
    ),
    (
        "SELECT ttl.set_option('p', 'drop_partitions', 'true')",
        "p",
        "drop_partitions has no effect",
    ),
    (
        "DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR ttl ON TABLE p1 IS %L',
             (SELECT label FROM pg_seclabel WHERE objoid = 'p'::regclass AND provider = 'ttl')); END $$",
        "p1",
        "not in effect: public.p has its own time to live",
    ),
    (
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ev_at_idx'::regclass;
         CREATE TABLE i (at timestamptz); SELECT ttl.expire_after('i', 'at', 0);
         UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'ev_at_idx'::regclass;
         UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'i_at_idx'::regclass",
        "i",
        "no row expires by a TTL index: index i_at_idx is not valid",
    ),
    (
        "CREATE TABLE e (at text); CREATE INDEX e_iso ON e (ttl.from_iso8601(at)); SELECT ttl.expire_index('e_iso', 0);
         CREATE TABLE e_child () INHERITS (e)",
        "e",
        "no row expires by a TTL index: table public.e_child",
    ),
    (
        "CREATE TABLE s (id int); CREATE TABLE ar (LIKE s); SELECT ttl.enable('s', 60); ALTER TABLE ar ADD _ts timestamptz, ADD ttl int;
         SELECT ttl.archive_to('s', 'ar'); ALTER TABLE ar RENAME TO archive_of_s",
        "s",
        "the archive public.ar is now public.archive_of_s",
    ),
    (
        "CREATE ROLE other_owner; GRANT ALL ON SCHEMA public TO other_owner;
         ALTER TABLE s OWNER TO other_owner; ALTER TABLE archive_of_s OWNER TO other_owner; SELECT ttl.resume('s')",
        "s",
        "nothing is deleted: cannot archive rows of table public.s in public.archive_of_s. When the archive was chosen",
    ),
    (
        "SELECT ttl.enable('archive_of_s', 60, ttl_column => NULL)",
        "s",
        "archived rows are expired in public.archive_of_s, too",
    ),
    (
        "CREATE TABLE r (id int PRIMARY KEY); SELECT ttl.enable('r', 60);
         CREATE SCHEMA closed; CREATE TABLE closed.refers (id int REFERENCES r ON DELETE CASCADE);
         ALTER TABLE closed.refers OWNER TO other_owner",
        "r",
        "deletion fails at a foreign key",
    ),
];

#[test]
fn of_tables() {
    let server = Server::start_sweeping(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    let of_none = to_do(
        &mut session,
        "∅",
        "no table of this database has a time to live",
    );
    assert_eq!(of_none, "∅");
    session.run(
        "CREATE TABLE t (id int PRIMARY KEY, who text);
         SELECT ttl.enable('t', 3600, index => 'btree');",
    );
    let all = "SELECT problem FROM ttl.check()";
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);

    for (mistake, table, problem) in MISTAKES {
        session.run("SET allow_system_table_mods = on");
        session.run(mistake);
        let advice = to_do(&mut session, table, problem);
        assert!(is_sql(&advice), "{mistake}: {advice}");
        // Nothing of what was chosen is replaced by something made up.
        assert!(!advice.contains("30 days"), "{mistake}: {advice}");
        follow(&mut session, &advice);
        assert_eq!(session.column(all), NOTHING, "{mistake}: {advice}");
    }
    // The parents have what the tables had.
    let rules = r#"SELECT concat_ws(' ', relation, default_ttl, ttl_column, hidden, rule->'key', rule->'expireAfterSeconds',
                                    rule->'timeZone', rule->'partialFilterExpression')
                     FROM ttl.tables LEFT JOIN jsonb_array_elements(rules) AS rule ON true
                    WHERE relation::text IN ('ev', 'days', 'above') ORDER BY 1"#;
    assert_eq!(
        session.column(rules),
        [
            "above 7200 t",
            r#"days f {"at": 1} 60 "Asia/Tokyo" "done""#,
            r#"days f {"ttl.from_iso8601(s)": 1} 0"#,
            r#"ev t {"at": 1} 86400"#,
        ]
    );
}

#[test]
fn of_a_row_that_is_referred_to() {
    let server = Server::start_sweeping(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(
        "CREATE TABLE t (id int PRIMARY KEY);
         SELECT ttl.enable('t', 1);
         CREATE TABLE child (id int REFERENCES t);
         INSERT INTO t VALUES (1);
         INSERT INTO child VALUES (1);",
    );
    session.wait_until(
        "SELECT count(*) FROM ttl.check() WHERE problem LIKE '1 expired rows of public.t cannot be deleted: %'",
        "1",
        60,
    );
    let advice = to_do(&mut session, "t", "1 expired rows");
    assert_eq!(
        advice,
        "/* To have the referring rows deleted with them: */ \
         ALTER TABLE public.child DROP CONSTRAINT child_id_fkey, \
         ADD CONSTRAINT child_id_fkey FOREIGN KEY (id) REFERENCES public.t(id) ON DELETE CASCADE;"
    );
    follow(&mut session, &advice);
    assert_eq!(session.value("SELECT ttl.purge('t')"), "1");
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);
}

/// PostgreSQL has no other action for a foreign key with PERIOD (18): none is proposed.
#[test]
fn of_a_key_with_period() {
    let server = Server::start_sweeping(&[]);
    if server.major() < 18 {
        println!("SKIPPED: since PostgreSQL 18");
        return;
    }
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(
        "CREATE TABLE t (id int4range, v daterange, PRIMARY KEY (id, v WITHOUT OVERLAPS));
         SELECT ttl.enable('t', 1);
         CREATE TABLE child (id int4range, v daterange, FOREIGN KEY (id, PERIOD v) REFERENCES t (id, PERIOD v));
         INSERT INTO t VALUES ('[1,2)', '[2020-01-01,2021-01-01)');
         INSERT INTO child VALUES ('[1,2)', '[2020-02-01,2020-03-01)');",
    );
    session.wait_until(
        "SELECT count(*) FROM ttl.check() WHERE problem LIKE '1 expired rows of public.t cannot be deleted: %'",
        "1",
        60,
    );
    let advice = to_do(&mut session, "t", "1 expired rows");
    assert!(advice.starts_with("SELECT last_error"), "{advice}");
}

/// Settings that were made to last: whatever they are for, the statement ends them.
#[test]
fn of_lasting_settings() {
    let server = Server::start_sweeping(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run("CREATE ROLE \"an auditor\"; CREATE TABLE t (id int); SELECT ttl.enable('t', 60)");
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);
    for (setting, of) in [
        (
            "DATABASE app SET ttl.show_expired = on",
            "ttl.show_expired is on for database app",
        ),
        (
            "DATABASE app SET ttl.preserve_ts = yes",
            "ttl.preserve_ts is on for database app",
        ),
        (
            "ROLE ALL SET ttl.preserve_ts = on",
            "ttl.preserve_ts is on for all roles",
        ),
        (
            "DATABASE app SET row_security = off",
            "row_security is off for database app",
        ),
        (
            "SYSTEM SET row_security = off",
            "row_security is off for all sessions, by the configuration",
        ),
        (
            "ROLE \"an auditor\" SET ttl.show_expired = 1",
            "ttl.show_expired is on for role \"an auditor\"",
        ),
        (
            "ROLE \"an auditor\" IN DATABASE app SET ttl.show_expired = true",
            "ttl.show_expired is on for role \"an auditor\" in database app",
        ),
        (
            "SYSTEM SET ttl.preserve_ts = on",
            "ttl.preserve_ts is on for all sessions, by the configuration",
        ),
    ] {
        session.run(&format!("ALTER {setting}"));
        session.run("SELECT pg_reload_conf()");
        session.wait_until("SELECT count(*) FROM ttl.check()", "1", 10);
        let advice = to_do(&mut session, "∅", of);
        follow(&mut session, &advice);
        session.wait_until("SELECT count(*) FROM ttl.check()", "0", 10);
    }
    // What is said to be off, or for another database, or the choice of a role that imports, is none.
    for setting in [
        "DATABASE postgres SET ttl.show_expired = on",
        "DATABASE app SET ttl.show_expired = off",
        "ROLE \"an auditor\" SET ttl.preserve_ts = on",
        "ROLE \"an auditor\" SET row_security = off",
    ] {
        session.run(&format!("ALTER {setting}"));
        assert_eq!(
            session.column("SELECT problem FROM ttl.check()"),
            NOTHING,
            "{setting}"
        );
    }
}

/// What concerns all tables is one row.
#[test]
fn of_the_server() {
    let server = Server::start(&[]);
    server.database("app");
    let mut session = server.connect("app", "postgres");
    session.run(
        "CREATE ROLE reader;
         CREATE TABLE a (id int);
         CREATE TABLE b (id int);
         SELECT ttl.enable('a', 60), ttl.enable('b', 60);",
    );
    // Everybody may ask.
    session.run("SET ROLE reader");
    assert_eq!(
        session.column("SELECT concat_ws('|', relation, problem) FROM ttl.check()"),
        ["deletion is off: ttl.enabled"]
    );
    let advice = to_do(&mut session, "∅", "deletion is off");
    session.run("RESET ROLE");
    follow(&mut session, &advice);
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);

    server.reload(&[("ttl.timeline", "77")]);
    let advice = to_do(&mut session, "∅", "deletion is off: after a recovery");
    assert_eq!(
        advice,
        "/* If the data is what it should be: */ ALTER SYSTEM SET ttl.timeline = 1; SELECT pg_reload_conf();"
    );
    follow(&mut session, &advice);
    session.wait_until("SELECT count(*) FROM ttl.check()", "0", 30);

    // One for the launcher's place, and none for it: PostgreSQL's own comes first.
    server.configure(&[("max_worker_processes", "0")]);
    drop(session);
    server.restart();
    let mut session = server.connect("app", "postgres");
    let advice = to_do(
        &mut session,
        "∅",
        "deletion is off: its launcher is not running",
    );
    assert_eq!(
        advice,
        "ALTER SYSTEM SET max_worker_processes = 8; -- then restart the server"
    );
}
