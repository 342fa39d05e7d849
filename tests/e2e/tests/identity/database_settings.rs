//! S1, S4: settings that a database's owner chooses neither stop deletion nor make it run the
//! owner's code as superuser.

use ttl_ext_e2e::hostile;

/// Functions and operators with the names of PostgreSQL's own, which record who runs them.
const SHADOWS: &str = "
CREATE TABLE evil.log (pid integer DEFAULT pg_catalog.pg_backend_pid(), what text, me text);
GRANT INSERT ON evil.log TO PUBLIC;
CREATE FUNCTION evil.note(what text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO evil.log (what, me) VALUES (what, current_user);
    RETURN true;
END $$;
CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS
    $$SELECT 'infinity'::timestamptz WHERE evil.note('now')$$;
CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
    $$SELECT 'infinity'::timestamptz WHERE evil.note('clock_timestamp')$$;
CREATE FUNCTION evil.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS
    $$SELECT 'SELECT 1' WHERE evil.note('format')$$;
CREATE FUNCTION evil.eq(oid, oid) RETURNS boolean LANGUAGE sql AS $$SELECT evil.note('= (oid)')$$;
CREATE OPERATOR evil.= (FUNCTION = evil.eq, LEFTARG = oid, RIGHTARG = oid);
CREATE FUNCTION evil.eq(text, text) RETURNS boolean LANGUAGE sql AS $$SELECT evil.note('= (text)')$$;
CREATE OPERATOR evil.= (FUNCTION = evil.eq, LEFTARG = text, RIGHTARG = text);
CREATE FUNCTION evil.le(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS $$SELECT evil.note('<=')$$;
CREATE OPERATOR evil.<= (FUNCTION = evil.le, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE FUNCTION evil.eq(tid, tid) RETURNS boolean LANGUAGE sql AS $$SELECT evil.note('= (tid)')$$;
CREATE OPERATOR evil.= (FUNCTION = evil.eq, LEFTARG = tid, RIGHTARG = tid);
CREATE FUNCTION evil.live(timestamptz, integer) RETURNS boolean LANGUAGE sql AS $$SELECT evil.note('live')$$;
CREATE TABLE evil.pg_class (id integer);
CREATE TABLE evil.pg_seclabel (id integer);";

/// What every session of the database begins with.
const SETTINGS: [&str; 12] = [
    "search_path = evil, pg_catalog",
    "default_transaction_read_only = on",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "statement_timeout = '1ms'",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '1ms'",
    "row_security = off",
    "datestyle = 'German, DMY'",
    "enable_indexscan = off",
    "ttl.preserve_ts = on",
    "check_function_bodies = off",
];

/// The test's own sessions use normal settings.
const USUAL: &str = "-c search_path=pg_catalog -c default_transaction_read_only=off \
    -c default_transaction_isolation=read\\ committed -c statement_timeout=0 -c lock_timeout=0 \
    -c idle_in_transaction_session_timeout=0 -c row_security=off";

#[test]
fn neither_stop_nor_subvert_deletion() {
    let server = hostile::start(&[]);
    let database = hostile::two_schemas(&server, "app");
    let mut attacker = database.connect_as("attacker");
    attacker.run(SHADOWS);
    attacker.run("CREATE TABLE evil.t (id integer PRIMARY KEY); SELECT ttl.enable('evil.t', 3600)");
    drop(attacker);
    let mut admin = server.connect("postgres", "postgres");
    admin.run("ALTER DATABASE app OWNER TO attacker");
    for setting in SETTINGS {
        admin.run(&format!("ALTER DATABASE app SET {setting}"));
    }
    // Workers that start with these settings.
    server.restart();
    for by_sql in [false, true] {
        let mut victim = server.connect_with("app", "victim", USUAL);
        let mut attacker = server.connect_with("app", "attacker", USUAL);
        if by_sql {
            for (session, schema, table) in [
                (&mut victim, "good", "good.t"),
                (&mut attacker, "evil", "evil.t"),
            ] {
                session.run(&format!(
                    "CREATE FUNCTION {schema}.nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
                     CREATE TRIGGER nothing BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {schema}.nothing()"
                ));
            }
        }
        victim.insert_expired("good.t", 1, 100);
        victim.wait_for_none("good.t");
        attacker.insert_expired("evil.t", 1, 100);
        attacker.wait_for_none("evil.t");
        let others = attacker.rows(
            "SELECT DISTINCT what, me FROM evil.log WHERE me OPERATOR(pg_catalog.<>) 'attacker'",
        );
        assert!(others.is_empty(), "{others:#?}");
    }
}
