//! S1: whose code runs in a superuser's session, by a foreign key or a function, counts like whose session it is; and what was
//! handed over runs in no session of the new owner's.

use std::sync::OnceLock;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

/// A database where a superuser has a table `jobs` with a time to live, into which the attacker may write, and whose DELETE
/// trigger looks a function up by its name alone; and the attacker has the schema `evil`, with that function.
fn with_jobs() -> (Database<'static>, Session) {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run(
        "CREATE TABLE log (v text);
         CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO public.log SELECT upper(s) FROM (SELECT 'gone') AS x (s); RETURN OLD; END$$;
         CREATE TABLE jobs (id int PRIMARY KEY, v text);
         CREATE TRIGGER audit AFTER DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION audit();
         SELECT ttl.enable('jobs', 3600); GRANT INSERT ON jobs TO attacker;
         CREATE FUNCTION enqueue(n int, at timestamptz) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$BEGIN
           INSERT INTO public.jobs (id, v, _ts) VALUES (n, 'job', at); RETURN n; END$$;
         CREATE SCHEMA evil AUTHORIZATION attacker; GRANT USAGE ON SCHEMA evil TO PUBLIC",
    );
    owner(&database, "attacker").run(
        "CREATE FUNCTION evil.upper(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$BEGIN
           PERFORM public.a_su(); RETURN 'x'; END$$;
         CREATE FUNCTION evil.by_insert() RETURNS void LANGUAGE plpgsql AS $$BEGIN
           PERFORM pg_catalog.set_config('search_path', 'evil, pg_catalog, public', true), pg_catalog.set_config('ttl.preserve_ts', 'on', true);
           INSERT INTO public.jobs (id, v, _ts) VALUES (7, 'old', '2000-01-01'); INSERT INTO public.jobs (id, v) VALUES (7, 'new'); END$$;
         CREATE FUNCTION evil.by_definer() RETURNS void LANGUAGE plpgsql AS $$DECLARE n int; BEGIN
           PERFORM pg_catalog.set_config('search_path', 'evil, pg_catalog, public', true), pg_catalog.set_config('ttl.preserve_ts', 'on', true);
           n := public.enqueue(8, '2000-01-01'); n := public.enqueue(8, pg_catalog.now()); END$$",
    );
    (database, boss)
}

#[track_caller]
fn assert_nothing_ran(boss: &mut Session, what: &str) {
    assert!(!hostile::attacker_is_superuser(boss), "{what}");
    assert_eq!(boss.value("SELECT count(*) FROM log"), "0", "{what}");
}

/// The attacker's code runs as the attacker in a superuser's session: by a foreign key's action, by a function with SECURITY
/// DEFINER, by an index's function. It writes to the superuser's table, or calls a function with SECURITY DEFINER that does.
#[test]
fn no_code_of_an_owner_runs_where_anothers_acts() {
    for attempt in ["by_insert", "by_definer"] {
        let (database, mut boss) = with_jobs();
        boss.run("CREATE TABLE par (id int PRIMARY KEY); INSERT INTO par VALUES (1), (2); GRANT REFERENCES ON par TO attacker");
        owner(&database, "attacker").run(&format!(
            "CREATE FUNCTION evil.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
               IF session_user <> 'attacker' THEN PERFORM evil.{attempt}(); END IF; RETURN COALESCE(NEW, OLD); END$$;
             CREATE TABLE evil.ch (id int REFERENCES public.par ON DELETE CASCADE ON UPDATE CASCADE); INSERT INTO evil.ch VALUES (1), (2);
             CREATE TRIGGER t BEFORE DELETE OR UPDATE ON evil.ch FOR EACH ROW EXECUTE FUNCTION evil.trap();
             CREATE FUNCTION evil.definer() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN PERFORM evil.{attempt}(); END$$;
             CREATE FUNCTION evil.ix(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
               IF session_user <> 'attacker' THEN PERFORM evil.{attempt}(); END IF; RETURN i; END$$;
             CREATE TABLE evil.x (i int); CREATE INDEX ON evil.x (evil.ix(i)); INSERT INTO evil.x SELECT generate_series(1, 3)"
        ));
        for statement in [
            "DELETE FROM par WHERE id = 1",
            "UPDATE par SET id = 3 WHERE id = 2",
            "SELECT evil.definer()",
            "DO $$DECLARE x text; BEGIN x := evil.definer(); END$$",
            "ANALYZE evil.x",
            "REINDEX TABLE evil.x",
        ] {
            let error = boss.error(statement);
            let what = format!("{attempt}, {statement}: {error}");
            assert!(["55006", "42501"].contains(&error.code().code()), "{what}");
            assert_nothing_ran(&mut boss, &what);
        }
        // The superuser's own functions go on: the worker deletes the row.
        boss.run("BEGIN; SET LOCAL ttl.preserve_ts = on; SELECT enqueue(9, '2000-01-01'); COMMIT; SELECT enqueue(9, now())");
        assert_eq!(boss.value("SELECT v FROM log"), "GONE");
    }
}

/// A table that has belonged to the attacker, and to which deletion leads, runs nothing in the new owner's session, either.
#[test]
fn what_was_handed_over_waits_in_sessions() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run(
        "CREATE SCHEMA evil AUTHORIZATION attacker; GRANT CREATE ON SCHEMA public TO attacker;
         CREATE TABLE q (id int PRIMARY KEY); SELECT ttl.enable('q', 3600), ttl.pause('q');
         CREATE TABLE qa (LIKE q); SELECT ttl.archive_to('q', 'qa');
         CREATE TABLE r (id int PRIMARY KEY); SELECT ttl.enable('r', 3600), ttl.pause('r');
         CREATE TABLE rf (id int REFERENCES r ON DELETE CASCADE);
         CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1);
         CREATE TABLE pf (id int PRIMARY KEY, pid int REFERENCES p); SELECT ttl.enable('pf', 3600), ttl.pause('pf');
         BEGIN; SET LOCAL ttl.preserve_ts = on;
         INSERT INTO q (id, _ts) VALUES (1, '2000-01-01'); INSERT INTO r (id, _ts) VALUES (1, '2000-01-01');
         INSERT INTO pf (id, pid, _ts) VALUES (1, 1, '2000-01-01'); COMMIT;
         SET ttl.show_expired = on; INSERT INTO rf VALUES (1); RESET ttl.show_expired;
         ALTER TABLE qa OWNER TO attacker; ALTER TABLE rf OWNER TO attacker; ALTER TABLE pf OWNER TO attacker",
    );
    owner(&database, "attacker").run(
        "CREATE FUNCTION evil.take() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_su(); RETURN COALESCE(NEW, OLD); END$$;
         CREATE TRIGGER t BEFORE INSERT ON qa FOR EACH ROW EXECUTE FUNCTION evil.take();
         CREATE TRIGGER t BEFORE DELETE ON rf FOR EACH ROW EXECUTE FUNCTION evil.take();
         CREATE TRIGGER t BEFORE DELETE ON pf FOR EACH ROW EXECUTE FUNCTION evil.take()",
    );
    boss.run("ALTER TABLE qa OWNER TO postgres; ALTER TABLE rf OWNER TO postgres; ALTER TABLE pf OWNER TO postgres");
    for statement in [
        "INSERT INTO q VALUES (1)",
        "INSERT INTO r VALUES (1)",
        "DELETE FROM p",
    ] {
        let error = boss.error(statement);
        assert_eq!(error.code().code(), "55006", "{statement}: {error}");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("ttl.resume("), "{statement}: {hint}");
        assert!(!hostile::attacker_is_superuser(&mut boss), "{statement}");
    }
    // Who has looked at the triggers, and dropped them, goes on.
    boss.run(
        "DROP TRIGGER t ON qa; DROP TRIGGER t ON rf; DROP TRIGGER t ON pf;
         SELECT ttl.resume('q'), ttl.resume('r'), ttl.resume('pf');
         INSERT INTO q VALUES (1); INSERT INTO r VALUES (1); DELETE FROM p",
    );
    assert_eq!(boss.value("SELECT count(*) FROM qa"), "1");
}

/// The owner of one partition gives it no policy of its own, by which nobody could write through the table above any more.
#[test]
fn a_partition_of_anothers_table_gets_no_label() {
    let database = hostile::armed_database(server());
    owner(&database, "victim").run(
        "CREATE TABLE t (id int, tenant int, created timestamptz) PARTITION BY LIST (tenant);
         CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1); CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
         CREATE TABLE above (id int, created timestamptz); CREATE TABLE below () INHERITS (above)",
    );
    let mut boss = database.connect();
    boss.run("ALTER TABLE t1 OWNER TO attacker; ALTER TABLE below OWNER TO attacker");
    let mut attacker = owner(&database, "attacker");
    for table in ["t1", "below"] {
        let error = attacker.error(&format!(
            "SECURITY LABEL FOR ttl ON TABLE {table} IS '{{\"ts_column\":\"created\",\"ttl_column\":null,\"default_ttl\":1}}'"
        ));
        assert_eq!(error.code().code(), "42501", "{table}: {error}");
    }
    assert_eq!(
        attacker
            .error("SELECT ttl.enable('below', 1)")
            .code()
            .code(),
        "42501"
    );
    owner(&database, "victim").run("INSERT INTO t VALUES (1, 2, now()); UPDATE above SET id = 2");
    // One that is there already goes on.
    let mut boss = database.connect();
    boss.run("CREATE TABLE over (id int); CREATE TABLE under () INHERITS (over); SELECT ttl.enable('under', 60); ALTER TABLE over OWNER TO victim; ALTER TABLE under OWNER TO attacker");
    attacker.run("SELECT ttl.resume('under'), ttl.set_default('under', 120)");
}

/// A condition is read as the caller's names have it. Constants in it run no code of the table's owner.
#[test]
fn a_constant_in_a_condition_runs_nothing() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE FUNCTION probe(int) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_su(); RETURN true; END$$;
         CREATE DOMAIN d AS int CHECK (probe(value));
         CREATE TABLE t (id int PRIMARY KEY, tags d[]); SELECT ttl.enable('t', 3600)",
    );
    let error = boss.error("SELECT ttl.revive('t', $$tags = '{1}'$$)");
    assert_eq!(error.code().code(), "42501", "{error}");
    assert!(!hostile::attacker_is_superuser(&mut boss));
    boss.run("SELECT ttl.revive('t', 'id = 1')");
    attacker.run("SELECT ttl.revive('t', $$tags = '{1}'$$)");
    // A condition of an index, too.
    let create = |tags| {
        format!(
            r#"SELECT ttl.create_index('t', '{{"created": 1}}', '{{"expireAfterSeconds": 60, "partialFilterExpression": "{tags} = ''{{1}}''"}}')"#
        )
    };
    attacker.run("ALTER TABLE t ADD created timestamptz, ADD plain int[]");
    let error = boss.error(&create("tags"));
    assert_eq!(error.code().code(), "42501", "{error}");
    assert!(!hostile::attacker_is_superuser(&mut boss));
    boss.run(&create("plain"));
    attacker.run(&create("tags"));
}

/// A schema that is renamed between the look at a table and its query: the query does not run on the table that has the name then.
#[test]
fn a_table_that_takes_the_name_is_not_deleted_from() {
    let (database, mut boss) = with_jobs();
    boss.run(
        "GRANT REFERENCES ON jobs TO attacker; SELECT ttl.pause('jobs');
         DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO attacker', current_database()); END$$;
         INSERT INTO jobs (id) VALUES (1)",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE TABLE ran (what text); GRANT ALL ON ran TO PUBLIC;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.ran VALUES (session_user); RETURN NULL; END$$;
         CREATE TABLE evil.ch (id int PRIMARY KEY, jid int REFERENCES public.jobs); SELECT ttl.enable('evil.ch', 3600), ttl.pause('evil.ch');
         BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO evil.ch (id, jid, _ts) VALUES (1, 1, '2000-01-01'); COMMIT;
         BEGIN; LOCK TABLE evil.ch IN SHARE MODE",
    );
    boss.run("BEGIN; SET LOCAL ttl.preserve_ts = on; UPDATE jobs SET _ts = '2000-01-01'; COMMIT");
    let mut purging = database.connect();
    let running = std::thread::spawn(move || purging.error("SELECT ttl.purge('jobs')"));
    boss.wait_until(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'evil.ch'::regclass",
        "1",
        PATIENCE,
    );
    owner(&database, "attacker").run(
        "ALTER SCHEMA evil RENAME TO former; CREATE SCHEMA evil; CREATE TABLE evil.ch (LIKE former.ch);
         CREATE TRIGGER t BEFORE DELETE ON evil.ch FOR EACH STATEMENT EXECUTE FUNCTION public.note()",
    );
    attacker.run("COMMIT");
    let error = running.join().expect("the statement");
    assert_eq!(error.code().code(), "55000", "{error}");
    assert_eq!(boss.value("SELECT count(*) FROM ran"), "0");
    assert_nothing_ran(&mut boss, "after a schema was renamed");
}
