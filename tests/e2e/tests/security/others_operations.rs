//! S1: code of a table's owner that PostgreSQL itself runs in a session of a superuser's, restricted and as that owner: ANALYZE, of
//! autovacuum, too, REINDEX, REFRESH. It does not have code of others run there, as these, by names that it chooses.

use std::sync::OnceLock;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{PATIENCE, Server};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

/// What the attacker may do anyway, from a function in an index: an INSERT that takes the key of an expired row, whose deletion fires a
/// trigger; a DELETE of a row to which an expired one refers; a look at a table.
#[test]
fn no_code_of_another_owner_runs_in_an_operation() {
    for attempt in [
        "INSERT INTO public.tok (k, v, _ts) VALUES (n, 'old', '2000-01-01'); INSERT INTO public.tok (k, v) VALUES (n, 'new');",
        "INSERT INTO public.par VALUES (n); INSERT INTO public.tok (k, v, pid, _ts) VALUES (n, 'old', n, '2000-01-01'); DELETE FROM public.par WHERE id = n;",
        "PERFORM ttl.preview('public.looked', 60);",
    ] {
        let database = hostile::armed_database(server());
        let mut boss = database.connect();
        boss.run(
            "CREATE TABLE log (v text);
             CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
               INSERT INTO public.log SELECT upper(s) FROM (SELECT 'gone') AS x (s); RETURN OLD; END$$;
             CREATE TABLE par (id int PRIMARY KEY);
             CREATE TABLE tok (k int PRIMARY KEY, v text, pid int REFERENCES par);
             CREATE TRIGGER audit AFTER DELETE ON tok FOR EACH ROW EXECUTE FUNCTION audit();
             SELECT ttl.enable('tok', 3600); GRANT INSERT ON tok TO attacker; GRANT ALL ON par TO attacker;
             CREATE FUNCTION norm(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN upper(t); END$$;
             CREATE TABLE looked (id int); SELECT ttl.enable('looked', 3600);
             CREATE INDEX ON looked ((norm('x') || id)); GRANT SELECT ON looked TO attacker",
        );
        boss.run("CREATE SCHEMA evil AUTHORIZATION attacker; GRANT USAGE ON SCHEMA evil TO PUBLIC");
        let mut attacker = owner(&database, "attacker");
        attacker.run(&format!(
            "CREATE FUNCTION evil.upper(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$BEGIN
               PERFORM public.a_su(); RETURN 'x'; END$$;
             CREATE FUNCTION evil.attempt() RETURNS void LANGUAGE plpgsql AS $$DECLARE n int := (random() * 1000000000)::int; BEGIN
               PERFORM pg_catalog.set_config('search_path', 'evil, pg_catalog, public', true), pg_catalog.set_config('ttl.preserve_ts', 'on', true);
               {attempt} END$$;
             CREATE FUNCTION evil.ix(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
               IF session_user <> 'attacker' THEN PERFORM evil.attempt(); END IF; RETURN i; END$$;
             CREATE TABLE x (i int); CREATE INDEX ON x (evil.ix(i)); INSERT INTO x SELECT generate_series(1, 3)"
        ));
        for statement in ["ANALYZE x", "REINDEX TABLE x"] {
            let error = boss.error(statement);
            let code = error.code().code();
            assert!(["55006", "42501"].contains(&code), "{attempt}: {error}");
            assert!(!hostile::attacker_is_superuser(&mut boss), "{attempt}");
        }
        assert_eq!(boss.value("SELECT count(*) FROM log"), "0", "{attempt}");
    }
}

/// The same by the triggers of the attacker's own table, which fire restricted, as the attacker, where a superuser purges it.
#[test]
fn nor_in_a_purge() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run(
        "CREATE TABLE log (v text);
         CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.log VALUES (OLD.v); RETURN OLD; END$$;
         CREATE TABLE tok (k int PRIMARY KEY, v text); CREATE TRIGGER audit AFTER DELETE ON tok FOR EACH ROW EXECUTE FUNCTION audit();
         SELECT ttl.enable('tok', 3600); GRANT INSERT ON tok TO attacker",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           PERFORM set_config('ttl.preserve_ts', 'on', true);
           INSERT INTO public.tok (k, v, _ts) VALUES (1, 'old', '2000-01-01'); INSERT INTO public.tok (k, v) VALUES (1, 'new'); RETURN OLD; END$$;
         CREATE TABLE mine (id int PRIMARY KEY); SELECT ttl.enable('mine', 3600), ttl.pause('mine');
         CREATE TRIGGER t BEFORE DELETE ON mine FOR EACH ROW EXECUTE FUNCTION trap();
         BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO mine (id, _ts) VALUES (1, '2000-01-01'); COMMIT",
    );
    let error = boss.error("SELECT ttl.purge('mine')");
    assert_eq!(error.code().code(), "55006", "{error}");
    assert_eq!(boss.value("SELECT count(*) FROM log"), "0");
    // The owner's own code goes on.
    boss.run("ALTER TABLE tok OWNER TO attacker");
    attacker.run("DROP TRIGGER audit ON tok; SELECT ttl.resume('tok')");
    boss.run("SELECT ttl.purge('mine')");
}

/// A superuser's table refers to the attacker's, who deletes the row that an expired one refers to: PostgreSQL fires no trigger of
/// that one, and neither does the extension in the attacker's session, where names mean what the attacker wants.
#[test]
fn a_superusers_trigger_does_not_fire_in_anothers_session() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE par (id int PRIMARY KEY); INSERT INTO par VALUES (1), (2)");
    let mut boss = database.connect();
    boss.run(
        "CREATE TABLE log (v text);
         CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO public.log SELECT upper(s) FROM (SELECT 'gone') AS x (s); RETURN OLD; END$$;
         CREATE TABLE ch (id int PRIMARY KEY, pid int REFERENCES public.par); SELECT ttl.enable('ch', 3600), ttl.pause('ch');
         CREATE TRIGGER audit BEFORE DELETE ON ch FOR EACH ROW EXECUTE FUNCTION audit();
         CREATE SCHEMA evil AUTHORIZATION attacker;
         BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO ch (id, pid, _ts) VALUES (1, 1, '2000-01-01'); COMMIT",
    );
    attacker.run(
        "CREATE FUNCTION evil.upper(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$BEGIN
           PERFORM public.a_su(); RETURN 'x'; END$$;
         DO $$BEGIN EXECUTE format('ALTER ROLE attacker IN DATABASE %I SET search_path = evil, pg_catalog, public', current_database()); END$$;
         SET search_path = evil, pg_catalog, public",
    );
    let error = attacker.error("DELETE FROM public.par WHERE id = 1");
    assert_eq!(error.code().code(), "55006", "{error}");
    // Nor in the attacker's worker.
    attacker.run(
        "SELECT ttl.enable('public.par', 3600); SET ttl.preserve_ts = on; UPDATE public.par SET _ts = '2000-01-01'",
    );
    let mut disk = database.disk();
    disk.wait_until("SELECT array_agg(id)::text FROM par", "{1}", PATIENCE);
    disk.wait_until(
        "SELECT last_error LIKE '%has not been deleted yet%' FROM ttl.stats WHERE relation = 'par'::regclass",
        "t",
        PATIENCE,
    );
    assert!(!hostile::attacker_is_superuser(&mut boss));
    assert_eq!(boss.value("SELECT count(*) FROM log"), "0");
    // It goes by the superuser's own worker, and then what it has referred to.
    boss.run("SELECT ttl.resume('ch')");
    disk.wait_until("SELECT count(*) FROM log", "1", PATIENCE);
    assert!(!hostile::attacker_is_superuser(&mut boss));
}

/// Nor one that comes while the attacker's statement waits for the table.
#[test]
fn nor_does_one_that_comes_meanwhile() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE par (id int PRIMARY KEY); INSERT INTO par VALUES (1)");
    let mut boss = database.connect();
    boss.run(
        "CREATE TABLE log (v text);
         CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO public.log SELECT upper(s) FROM (SELECT 'gone') AS x (s); RETURN OLD; END$$;
         CREATE TABLE ch (id int PRIMARY KEY, pid int REFERENCES public.par); SELECT ttl.enable('ch', 3600), ttl.pause('ch');
         CREATE SCHEMA evil AUTHORIZATION attacker;
         BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO ch (id, pid, _ts) VALUES (1, 1, '2000-01-01'); COMMIT",
    );
    attacker.run(
        "CREATE FUNCTION evil.upper(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$BEGIN
           PERFORM public.a_su(); RETURN 'x'; END$$;
         SET search_path = evil, pg_catalog, public",
    );
    // The session knows by now that no code is set off, and has a plan, for which nothing need be locked again.
    attacker.run("INSERT INTO public.par VALUES (2); DELETE FROM public.par WHERE id = 2");
    boss.run(
        "BEGIN; CREATE TRIGGER audit BEFORE DELETE ON ch FOR EACH ROW EXECUTE FUNCTION audit()",
    );
    let running = std::thread::spawn(move || attacker.try_run("DELETE FROM public.par"));
    let mut other = database.connect();
    other.wait_until(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'ch'::regclass",
        "1",
        PATIENCE,
    );
    boss.run("COMMIT");
    let deleted = running.join().expect("the statement");
    assert!(!hostile::attacker_is_superuser(&mut boss));
    assert_eq!(boss.value("SELECT count(*) FROM log"), "0");
    let code = deleted.expect_err("the row is kept").code().cloned();
    assert_eq!(
        code.map(|code| code.code().to_owned()),
        Some("55006".to_owned())
    );
}

/// What comes to a table while a query on it is planned for somebody else: a lock on an index makes the planner wait between
/// the table's indexes, which it has read, and its statistics.
#[test]
fn what_comes_while_a_query_is_planned_does_not_run() {
    for (who, statement) in [
        // A foreign key's query, in a deletion from the referenced table.
        ("postgres", "SELECT ttl.purge('par')"),
        // COPY of a table, which plans nothing in PostgreSQL.
        ("reader", "COPY ch (id) TO STDOUT"),
        ("postgres", "COPY ch (id) TO STDOUT"),
    ] {
        let database = hostile::armed_database(server());
        let mut boss = database.connect();
        boss.run(
            "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 3600), ttl.pause('par'); GRANT REFERENCES ON par TO attacker;
             BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO par (id, _ts) VALUES (1, '2000-01-01'); COMMIT;
             GRANT pg_read_all_data TO reader",
        );
        let mut attacker = owner(&database, "attacker");
        attacker.run(
            "CREATE TABLE ran (what text); GRANT ALL ON ran TO PUBLIC;
             CREATE FUNCTION note() RETURNS void LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.ran VALUES (current_user); END$$;
             CREATE FUNCTION st(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
               IF session_user <> 'attacker' THEN PERFORM public.note(); END IF; RETURN 1; END$$;
             CREATE TABLE ch (id int, pid int REFERENCES par); SELECT ttl.enable('ch', 3600); CREATE INDEX chi ON ch (pid)",
        );
        attacker.run("BEGIN; ALTER INDEX chi SET TABLESPACE pg_default");
        let mut session = database.connect_as(who);
        let running = std::thread::spawn(move || session.error(statement));
        boss.wait_until(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'chi'::regclass",
            "1",
            PATIENCE,
        );
        database
            .connect_as("attacker")
            .run("CREATE STATISTICS s ON (id + st(1)) FROM ch");
        attacker.run("COMMIT");
        let error = running.join().expect("the statement");
        assert_eq!(error.code().code(), "42501", "{statement}: {error}");
        let message = error.message();
        assert!(message.contains("st(integer) would run"), "{message}");
        let ran = boss.rows("SELECT what FROM ran");
        assert!(ran.is_empty(), "{statement}: {ran:?}");
        boss.run("REVOKE pg_read_all_data FROM reader");
    }
}

/// Every reader runs the predicate of a TTL index. An operator on a function of PostgreSQL's brings its negator.
#[test]
fn the_predicate_of_a_ttl_index_brings_no_operator() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE FUNCTION aeq(int, int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_vol(); RETURN $1 = $2; END$$;
         CREATE OPERATOR <>! (PROCEDURE = int4ne, LEFTARG = int, RIGHTARG = int, NEGATOR = OPERATOR(public.==!));
         CREATE OPERATOR ==! (PROCEDURE = aeq, LEFTARG = int, RIGHTARG = int, NEGATOR = OPERATOR(public.<>!));
         CREATE TABLE t (id int, at timestamptz); CREATE INDEX ti ON t (at) WHERE NOT (id OPERATOR(public.<>!) 7)",
    );
    let error = attacker.error("SELECT ttl.expire_index('ti', 3600)");
    assert_eq!(error.code().code(), "42809", "{error}");
    // A label may name any index.
    attacker.run(
        "INSERT INTO t VALUES (7, now()), (1, now());
         SECURITY LABEL FOR ttl ON TABLE t IS '{\"ts_column\": null, \"ttl_column\": null, \"rules\": [{\"index\": \"ti\", \"expire_after_seconds\": 3600}]}'",
    );
    let mut boss = database.connect();
    boss.run("SELECT * FROM t");
    assert_eq!(boss.value("SELECT count(*) FROM pg_cursors"), "0");
    assert!(!hostile::attacker_is_superuser(&mut boss));
}
