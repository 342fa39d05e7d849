//! S1: code of a table's owner that would run with another's rights: a table that is given to another owner, or copied by
//! another; and code of the owner that would run in a session where its meaning is another user's choice.

use std::sync::OnceLock;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{PATIENCE, Server};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

const TRAP: &str = "
    CREATE TABLE ran (what text); GRANT ALL ON ran TO PUBLIC;
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      IF session_user <> 'attacker' THEN INSERT INTO public.ran VALUES (current_user); PERFORM public.a_vol(); END IF;
      RETURN OLD; END$$;";

/// Deletion waits until the new owner says that it may go on.
#[test]
fn a_table_that_is_given_to_another_owner_waits() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run(TRAP);
    attacker.run(
        "CREATE TABLE bt (id int PRIMARY KEY); SELECT ttl.enable('bt', 2);
         CREATE TRIGGER t BEFORE DELETE ON bt FOR EACH ROW EXECUTE FUNCTION trap();
         CREATE TABLE bi (id int PRIMARY KEY); SELECT ttl.enable('bi', 2);
         CREATE TABLE br (id int PRIMARY KEY); SELECT ttl.enable('br', 2);
         CREATE TRIGGER t BEFORE DELETE ON br FOR EACH ROW EXECUTE FUNCTION trap()",
    );
    let mut boss = database.connect();
    boss.run("ALTER TABLE bt OWNER TO postgres; ALTER TABLE bi OWNER TO postgres");
    // A function in an index that runs as soon as somebody plans.
    boss.run("SET row_security = off; CREATE INDEX ON bi ((1)); INSERT INTO bt VALUES (1); INSERT INTO bi VALUES (1)");
    attacker.run("INSERT INTO br VALUES (1)");
    boss.run("REASSIGN OWNED BY attacker TO victim");
    boss.run("CREATE TABLE own (id int PRIMARY KEY); SELECT ttl.enable('own', 1); INSERT INTO own VALUES (1)");
    let mut disk = database.disk();
    disk.wait_until("SELECT count(*) FROM own", "0", PATIENCE);
    std::thread::sleep(std::time::Duration::from_secs(4));
    for table in ["bt", "bi", "br"] {
        assert_eq!(
            disk.value(&format!("SELECT count(*) FROM {table}")),
            "1",
            "{table}"
        );
        let problem = format!(
            "SELECT count(*) FROM ttl.check() WHERE relation = '{table}'::regclass AND to_do LIKE '%ttl.resume%'"
        );
        assert_eq!(disk.value(&problem), "1", "{table}");
    }
    assert!(!hostile::attacker_is_superuser(&mut boss));
    assert_eq!(boss.value("SELECT count(*) FROM ran"), "0");
    boss.run("DROP TRIGGER t ON bt; SELECT ttl.resume('bt')");
    disk.wait_until("SELECT count(*) FROM bt", "0", PATIENCE);
    // Who could act as the new owner anyway hands over nothing new.
    boss.run(
        "CREATE TABLE down (id int PRIMARY KEY); SELECT ttl.enable('down', 1);
         ALTER TABLE down OWNER TO victim; INSERT INTO down VALUES (1)",
    );
    disk.wait_until("SELECT count(*) FROM down", "0", PATIENCE);
}

/// A partition is given away, and its triggers stay; those of the table above, too, are of the former owner's making.
#[test]
fn a_partition_that_is_given_to_another_owner_waits() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run(TRAP);
    attacker.run(
        "CREATE TABLE pt (id int PRIMARY KEY) PARTITION BY RANGE (id); SELECT ttl.enable('pt', 2);
         CREATE TABLE p1 PARTITION OF pt FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF pt FOR VALUES FROM (10) TO (20);
         CREATE TRIGGER t BEFORE DELETE ON pt FOR EACH ROW EXECUTE FUNCTION trap()",
    );
    let mut boss = database.connect();
    boss.run("ALTER TABLE p1 OWNER TO postgres; INSERT INTO pt VALUES (1), (11)");
    let mut disk = database.disk();
    disk.wait_until("SELECT count(*) FROM p2", "0", PATIENCE);
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(disk.value("SELECT count(*) FROM p1"), "1");
    // Nor does the owner of the table above become the owner of the partition in a session of their own.
    attacker.run(
        "CREATE OR REPLACE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_su(); RETURN OLD; END$$",
    );
    for call in ["ttl.purge('pt')", "ttl.set_default('pt', 100)"] {
        let error = attacker.error(&format!("SELECT {call}"));
        assert_eq!(error.code().code(), "42501", "{call}: {error}");
    }
    assert_eq!(
        disk.value("SELECT count(*) FROM ttl.check() WHERE relation = 'pt'::regclass AND to_do IS NULL AND problem LIKE '%give both the same owner'"),
        "1"
    );
    assert!(!hostile::attacker_is_superuser(&mut boss));
}

/// COPY of a table plans nothing, so the query in its place runs no code of its owner's in another's session: neither as a
/// superuser, who may have functions compiled by it, nor as one who reads all tables.
#[test]
fn copy_runs_no_code_of_the_owner() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE TABLE ct (id int PRIMARY KEY); CREATE INDEX ON ct (id) WHERE id > a_pure('x'); SELECT ttl.enable('ct', 3600);
         SET ttl.preserve_ts = on; INSERT INTO ct (id, _ts) VALUES (1, now()), (2, now() - interval '1 day')",
    );
    let mut boss = database.connect();
    boss.run("GRANT pg_read_all_data TO reader");
    let mut reader = database.connect_as("reader");
    for session in [&mut boss, &mut reader] {
        let error = session.error("COPY ct (id) TO STDOUT");
        assert_eq!(error.code().code(), "42501", "{error}");
        assert_eq!(session.value("SELECT count(*) FROM pg_cursors"), "0");
    }
    boss.run("REVOKE pg_read_all_data FROM reader");
    // By an expression of PostgreSQL's own it is copied.
    attacker.run("DROP INDEX ct_id_idx; CREATE INDEX ON ct ((id + 1)) WHERE id > abs(-5)");
    boss.run("COPY ct (id) TO '/dev/null'");
    assert!(!hostile::attacker_is_superuser(&mut boss));
}

/// The victim's trigger is compiled in the attacker's session, where `text` is a domain of the attacker's: it does
/// not run there as the victim. The row is left to the victim's worker.
#[test]
fn code_that_a_stranger_has_compiled_does_not_run_as_its_owner() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run(
        "CREATE TABLE tok (k int PRIMARY KEY, v text); SELECT ttl.enable('tok', 3600); GRANT INSERT, SELECT ON tok TO attacker;
         CREATE TABLE log (v text);
         CREATE FUNCTION norm(t text) RETURNS text LANGUAGE plpgsql AS $$DECLARE m text; BEGIN m := t; RETURN m; END$$;
         CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO public.log VALUES (public.norm(OLD.v)); RETURN OLD; END$$;
         CREATE TRIGGER audit AFTER DELETE ON tok FOR EACH ROW EXECUTE FUNCTION audit()",
    );
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE FUNCTION f(t pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_su(); RETURN true; END$$;
         CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (public.f(VALUE)); SELECT norm('compiled')",
    );
    attacker.run(
        "BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO tok (k, v, _ts) VALUES (11, 'old', '2000-01-01'); COMMIT",
    );
    // The worker deletes it meanwhile, or has done so before.
    attacker.run("INSERT INTO tok (k, v) VALUES (11, 'new')");
    assert_eq!(attacker.value("SELECT v FROM tok"), "new");
    assert!(!hostile::attacker_is_superuser(&mut boss));
    assert_eq!(boss.column("SELECT v FROM log"), ["old"]);
    // A row of the same transaction is seen by no worker.
    let error = attacker.error(
        "SET ttl.preserve_ts = on; BEGIN; INSERT INTO tok (k, v, _ts) VALUES (12, 'old', '2000-01-01');
         INSERT INTO tok (k, v) VALUES (12, 'new')",
    );
    assert_eq!(error.code().code(), "55006", "{error}");
    attacker.run("ROLLBACK; RESET ttl.preserve_ts");
    // No worker comes for the time being: the session does not wait for one.
    let now = "(now() AT TIME ZONE current_setting('TimeZone'))";
    let elsewhen = format!(
        "to_char({now} + interval '6 hours', 'HH24:MI-') || to_char({now} + interval '7 hours', 'HH24:MI')"
    );
    for (number, (rests, over)) in [
        ("SELECT ttl.pause('tok')", "SELECT ttl.resume('tok')"),
        (
            "SELECT ttl.set_option('tok', 'keep_expired', '100000000')",
            "SELECT ttl.set_option('tok', 'keep_expired', '0')",
        ),
        (
            &*format!("SELECT ttl.set_option('tok', 'delete_between', {elsewhen})"),
            "SELECT ttl.set_option('tok', 'delete_between', NULL)",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let key = 13 + number;
        boss.run(rests);
        attacker.run(&format!(
            "BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO tok (k, v, _ts) VALUES ({key}, 'old', now() - interval '1 year'); COMMIT;
             SET statement_timeout = '4s'"
        ));
        let error = attacker.error(&format!("INSERT INTO tok (k, v) VALUES ({key}, 'new')"));
        assert_eq!(error.code().code(), "55006", "{rests}: {error}");
        // The owner need not wait.
        boss.run(&format!("INSERT INTO tok (k, v) VALUES ({key}, 'new')"));
        boss.run(over);
    }
    assert!(!hostile::attacker_is_superuser(&mut boss));
}

/// A reader of a table whose index calls a function of its owner's.
#[test]
fn a_preview_runs_no_code_of_the_owner() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run(
        "CREATE FUNCTION norm(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$DECLARE m text; BEGIN m := t; RETURN m; END$$;
         CREATE TABLE xt (k int PRIMARY KEY, v text); CREATE INDEX ON xt ((v || norm('suffix'))); SELECT ttl.enable('xt', 3600);
         GRANT SELECT ON xt TO attacker",
    );
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE FUNCTION f(t pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_su(); RETURN true; END$$;
         CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (public.f(VALUE)); SELECT norm('compiled')",
    );
    let error = attacker.error("SELECT * FROM ttl.preview('xt', 60)");
    assert_eq!(error.code().code(), "42501", "{error}");
    assert!(!hostile::attacker_is_superuser(&mut boss));
    boss.run("SELECT * FROM ttl.preview('xt', 60)");
}

/// A foreign key's query makes the victim the current user in a session of the attacker's.
#[test]
fn a_foreign_keys_query_lends_no_session() {
    let database = hostile::armed_database(server());
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE TABLE ran (what text, who text); GRANT ALL ON ran TO PUBLIC; CREATE TABLE ap (id int PRIMARY KEY);
         INSERT INTO ap VALUES (1), (2); GRANT REFERENCES ON ap TO victim",
    );
    database
        .connect()
        .run("CREATE SCHEMA evil AUTHORIZATION attacker");
    attacker.run(
        "CREATE FUNCTION evil.note(t text) RETURNS void LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.ran VALUES (t, current_user); END$$;
         GRANT USAGE ON SCHEMA evil TO PUBLIC",
    );
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE FUNCTION public.note(t text) RETURNS void LANGUAGE plpgsql AS $$BEGIN END$$;
         CREATE FUNCTION vtr() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM note(OLD.v); RETURN OLD; END$$;
         CREATE TABLE vc (id int, v text, pid int REFERENCES ap ON DELETE SET NULL, k int);
         CREATE UNIQUE INDEX ON vc ((coalesce(pid, 0)));
         SELECT ttl.enable('vc', 3600), ttl.pause('vc');
         CREATE TRIGGER d BEFORE DELETE ON vc FOR EACH ROW EXECUTE FUNCTION vtr();
         BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO vc (id, v, pid, _ts) VALUES (1, 'expired secret', NULL, '2000-01-01'); COMMIT;
         INSERT INTO vc (id, v, pid) VALUES (2, 'live', 1)",
    );
    let _ = attacker.try_run("SET search_path = evil, public; DELETE FROM ap WHERE id = 1");
    let ran = attacker.rows("SELECT what, who FROM public.ran");
    assert!(ran.is_empty(), "{ran:?}");
}

/// Whether a former owner could act as the new one is decided by the statement. That the role loses its rights later, or goes,
/// stops nothing.
#[test]
fn what_was_accepted_stays_accepted() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run(
        "CREATE ROLE former_boss SUPERUSER; SET ROLE former_boss; CREATE TABLE kept (id int PRIMARY KEY); SELECT ttl.enable('kept', 3600);
         RESET ROLE; ALTER TABLE kept OWNER TO victim; ALTER ROLE former_boss NOSUPERUSER",
    );
    let mut victim = owner(&database, "victim");
    victim.insert_expired("kept", 1, 10);
    victim.wait_for_none("kept");
    boss.run("DROP OWNED BY former_boss; DROP ROLE former_boss");
    victim.insert_expired("kept", 1, 10);
    victim.wait_for_none("kept");
}

/// What a table has brought from a stranger is not forgotten when it comes back to its owner over a superuser.
#[test]
fn a_table_that_comes_back_over_a_superuser_waits() {
    let database = hostile::armed_database(server());
    let mut victim = owner(&database, "victim");
    victim.run("CREATE TABLE back (id int PRIMARY KEY); SELECT ttl.enable('back', 3600)");
    let mut boss = database.connect();
    boss.run("ALTER TABLE back OWNER TO attacker");
    owner(&database, "attacker").run(
        "CREATE TABLE ran (who text); GRANT ALL ON ran TO PUBLIC;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.ran VALUES (current_user); RETURN OLD; END$$;
         CREATE TRIGGER e BEFORE DELETE ON back FOR EACH ROW EXECUTE FUNCTION note()",
    );
    boss.run("ALTER TABLE back OWNER TO postgres");
    boss.run("ALTER TABLE back OWNER TO victim");
    victim.insert_expired("back", 1, 3);
    assert_eq!(
        boss.value("SELECT count(*) FROM ttl.check() WHERE relation = 'back'::regclass AND problem LIKE '%has belonged to another owner%'"),
        "1"
    );
    victim.run("SELECT ttl.resume('back')");
    victim.wait_for_none("back");
}
