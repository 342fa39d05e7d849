//! S1: whose code runs in a superuser's session, by a foreign key or a function, counts like whose session it is; and what was
//! handed over runs in no session of the new owner's.

use std::sync::OnceLock;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{Database, PATIENCE, Server, Session, race_seconds};

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

/// The same while `ttl.disable` removes what `ttl.enable` has added: the other table keeps its columns, constraints, indexes and views.
#[test]
fn nothing_of_a_table_that_takes_the_name_is_dropped() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    // When the name is looked up, after ttl.disable has found the table.
    boss.run(
        "CREATE FUNCTION rename() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
             IF current_setting('test.tag', true) = tg_tag THEN
                 PERFORM set_config('test.tag', '', true);
                 ALTER SCHEMA one RENAME TO former; ALTER SCHEMA other RENAME TO one;
             END IF; END$$;
         CREATE EVENT TRIGGER rename ON ddl_command_start EXECUTE FUNCTION rename()",
    );
    let shapes = "SELECT string_agg(concat_ws(' ', c.oid, c.relkind, a.attname, a.attisdropped, a.atthasdef, c.relchecks), ', ' ORDER BY c.oid, a.attnum)
                    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
                   WHERE c.relnamespace IN ('one'::regnamespace, 'other'::regnamespace)";
    for (columns, arguments, tag) in [
        ("id int", "", "ALTER TABLE"),
        ("id int", ", index => 'btree'", "DROP INDEX"),
        (
            "id int, _ts timestamptz NOT NULL, ttl int",
            "",
            "ALTER TABLE",
        ),
        (
            "id int, _ts timestamptz NOT NULL DEFAULT now(), ttl int",
            "",
            "ALTER TABLE",
        ),
        ("id int", "", "DROP VIEW"),
    ] {
        boss.run("DROP SCHEMA IF EXISTS one, other CASCADE");
        for schema in ["one", "other"] {
            boss.run(&format!(
                "CREATE SCHEMA {schema}; CREATE TABLE {schema}.t ({columns}); SELECT ttl.enable('{schema}.t', 3600{arguments})"
            ));
            if tag == "DROP VIEW" {
                boss.run(&format!(
                    "SELECT ttl.create_live_view('{schema}.t', '{schema}.v', drop_with_policy => true)"
                ));
            }
        }
        let before = boss.value(shapes);
        let error = boss.error(&format!(
            "BEGIN; SET LOCAL test.tag = '{tag}'; SELECT ttl.disable('one.t', drop_columns => true); COMMIT"
        ));
        boss.run("ROLLBACK");
        assert_eq!(error.code().code(), "55000", "{columns}, {tag}: {error}");
        assert!(
            error.message().starts_with("another table has become"),
            "{columns}, {tag}: {error}"
        );
        assert_eq!(boss.value(shapes), before, "{columns}, {tag}");
    }
}

/// PostgreSQL's own query of a foreign key, too, names its table, and is analyzed again whenever a schema is renamed. Two schemas change
/// their names all the time, while rows are deleted: no code of the relation runs that has the name then.
#[test]
fn a_foreign_keys_query_meets_no_other_table() {
    // A foreign key, and what takes its table's name.
    let cases = [
        // A column with a cast of its owner's, and another foreign key.
        (
            "REFERENCES public.jobs)",
            "CREATE TABLE other.ch (id int, jid public.pair, jobs int REFERENCES public.jobs); INSERT INTO other.ch VALUES (1, ROW(1))",
        ),
        (
            "REFERENCES public.jobs ON DELETE CASCADE)",
            "CREATE TABLE other.ch (id int, jid public.pair, jobs int REFERENCES public.jobs); INSERT INTO other.ch VALUES (1, ROW(1))",
        ),
        // A table from which another inherits, which has a trigger.
        (
            "REFERENCES public.jobs ON DELETE CASCADE) PARTITION BY LIST (id)",
            "CREATE TABLE other.ch (id int, jid int, jobs int REFERENCES public.jobs);
             CREATE TABLE other.below () INHERITS (other.ch); INSERT INTO other.below SELECT n, n FROM generate_series(1, 2000) AS n;
             CREATE TRIGGER t BEFORE DELETE ON other.below FOR EACH ROW EXECUTE FUNCTION public.note()",
        ),
        (
            "REFERENCES public.jobs)",
            "CREATE TABLE other.own (id int); INSERT INTO other.own VALUES (1); CREATE VIEW other.ch AS SELECT public.note(id) AS jid FROM other.own",
        ),
    ];
    let mut failed = vec![];
    for (key, other) in cases {
        let database = hostile::armed_database(server());
        let mut boss = database.connect();
        boss.run(
            "CREATE TABLE jobs (id int PRIMARY KEY); SELECT ttl.enable('jobs', 3600), ttl.pause('jobs'); GRANT REFERENCES ON jobs TO attacker;
             DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO attacker', current_database()); END$$",
        );
        let mut attacker = owner(&database, "attacker");
        attacker.run(&format!(
            "CREATE SEQUENCE ran; GRANT ALL ON ran TO PUBLIC; CREATE TYPE pair AS (a int);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM nextval('public.ran'); RETURN OLD; END$$;
             CREATE FUNCTION note(int) RETURNS int LANGUAGE plpgsql AS $$BEGIN PERFORM nextval('public.ran'); RETURN 0; END$$;
             CREATE FUNCTION note(pair) RETURNS int LANGUAGE plpgsql AS $$BEGIN PERFORM nextval('public.ran'); RETURN 0; END$$;
             CREATE CAST (pair AS int) WITH FUNCTION note(pair) AS IMPLICIT;
             CREATE SCHEMA one; CREATE TABLE one.ch (id int, jid int {key};
             CREATE SCHEMA other; {other}"
        ));
        while_names_change(attacker, || {
            boss.run("BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO jobs (id, _ts) SELECT n, '2000-01-01' FROM generate_series(1, 2000) AS n; COMMIT");
            // It fails where it meets another table.
            while boss.try_run("SELECT ttl.purge('jobs')").is_err() {}
        });
        boss.run("SELECT ttl.purge('jobs')");
        if boss.value("SELECT is_called FROM ran") == "t" {
            failed.push((key, other));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// For two seconds, or `TTL_RACE_SECONDS`, the schemas `one` and `other`, which belong to the attacker, change their names, and `work` is
/// done again and again. In six seconds most cases caught the code from before they were mended.
fn while_names_change(mut attacker: Session, mut work: impl FnMut()) {
    let renaming = std::thread::spawn(move || {
        attacker.run("SET synchronous_commit = off");
        attacker.run(&format!(
            "DO $$DECLARE ends timestamptz := clock_timestamp() + interval '{} s'; BEGIN WHILE clock_timestamp() < ends LOOP
               ALTER SCHEMA one RENAME TO former; ALTER SCHEMA other RENAME TO one; ALTER SCHEMA former RENAME TO other; COMMIT;
             END LOOP; END$$",
            race_seconds(2)
        ))
    });
    while !renaming.is_finished() {
        work();
    }
    renaming.join().expect("the schemas' names");
}

/// Operators have names, too: those of an extension in a schema of the attacker's, by which keys are compared and rows expire.
#[test]
fn no_operator_of_anothers_is_called() {
    // The table, others that it has to do with, and what else the attacker has in the other schema.
    let cases = [
        (
            "par",
            "CREATE TABLE par (id one.number PRIMARY KEY); CREATE TABLE ch (id int PRIMARY KEY, pid one.number REFERENCES par);
             SELECT ttl.enable('par', 3600), ttl.pause('par'), ttl.enable('ch', 3600), ttl.pause('ch')",
            "",
        ),
        (
            "par",
            "CREATE TABLE par (id one.number PRIMARY KEY); CREATE TABLE ch (id int PRIMARY KEY, pid one.number REFERENCES par);
             SELECT ttl.enable('par', 3600), ttl.pause('par'); ALTER TABLE ch ADD _ts timestamptz",
            "",
        ),
        (
            "par",
            "CREATE TABLE par (id one.number PRIMARY KEY, _ts timestamptz); CREATE TABLE ch (id int PRIMARY KEY, pid one.number, _ts timestamptz);
             CREATE INDEX ends ON par (_ts) WHERE id OPERATOR(one.=) '1'; SELECT ttl.expire_index('ends', 0), ttl.pause('par')",
            "",
        ),
        // The referenced table itself is in that schema.
        (
            "one.par",
            "CREATE TABLE one.par (id int PRIMARY KEY); CREATE TABLE ch (id int PRIMARY KEY, pid int REFERENCES one.par, _ts timestamptz);
             SELECT ttl.enable('one.par', 3600), ttl.pause('one.par')",
            "; CREATE TABLE other.own (id int); INSERT INTO other.own VALUES (1); GRANT SELECT ON other.own TO PUBLIC;
             CREATE FUNCTION other.note(int) RETURNS int LANGUAGE plpgsql AS $$BEGIN PERFORM nextval('public.ran'); RETURN 0; END$$;
             CREATE VIEW other.par AS SELECT other.note(id) AS id FROM other.own; GRANT ALL ON other.par TO PUBLIC",
        ),
    ];
    let mut failed = vec![];
    for (par, tables, others) in cases {
        let database = hostile::armed_database(server());
        let mut boss = database.connect();
        boss.run(
            "CREATE SCHEMA one; CREATE TYPE one.number;
             CREATE FUNCTION one.number_in(cstring) RETURNS one.number LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
             CREATE FUNCTION one.number_out(one.number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
             CREATE TYPE one.number (INPUT = one.number_in, OUTPUT = one.number_out, LIKE = int);
             CREATE FUNCTION one.equal(one.number, one.number) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
             CREATE FUNCTION one.compare(one.number, one.number) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
             CREATE OPERATOR one.= (LEFTARG = one.number, RIGHTARG = one.number, FUNCTION = one.equal, COMMUTATOR = OPERATOR(one.=), RESTRICT = eqsel, JOIN = eqjoinsel, MERGES);
             CREATE OPERATOR CLASS one.numbers DEFAULT FOR TYPE one.number USING btree AS OPERATOR 3 one.=, FUNCTION 1 one.compare(one.number, one.number);
             CREATE CAST (int AS one.number) WITHOUT FUNCTION AS ASSIGNMENT;
             DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO attacker', current_database()); END$$",
        );
        boss.run(tables);
        boss.run("ALTER SCHEMA one OWNER TO attacker; GRANT USAGE ON SCHEMA one TO PUBLIC");
        let mut attacker = owner(&database, "attacker");
        attacker.run(&format!(
            "CREATE SEQUENCE ran; GRANT ALL ON ran TO PUBLIC; CREATE SCHEMA other;
             CREATE FUNCTION other.equal(one.number, one.number) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN PERFORM nextval('public.ran'); RETURN true; END$$;
             CREATE OPERATOR other.= (LEFTARG = one.number, RIGHTARG = one.number, FUNCTION = other.equal) {others}"
        ));
        // PostgreSQL's look for a referenced row names the operator, too: all rows are there before.
        boss.run(&format!(
            "BEGIN; SET LOCAL ttl.preserve_ts = on;
             INSERT INTO {par} (id, _ts) SELECT n, '2000-01-01' FROM generate_series(1, 200000) AS n;
             INSERT INTO {par} (id, _ts) SELECT -n, '2200-01-01' FROM generate_series(1, 10) AS n;
             INSERT INTO ch (id, pid, _ts) SELECT n, -n, '2000-01-01' FROM generate_series(1, 10) AS n; COMMIT"
        ));
        let purge = format!(
            "SELECT ttl.purge({}::oid)",
            boss.value(&format!("SELECT '{par}'::regclass::oid"))
        );
        while_names_change(attacker, || while boss.try_run(&purge).is_err() {});
        boss.run(&format!("SET statement_timeout = 0; {purge}"));
        if boss.value("SELECT is_called FROM ran") == "t" {
            failed.push((par, tables));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Names of tables are the attacker's; what an administrator pastes is not.
#[test]
fn advice_is_no_ones_statement() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    let mut attacker = owner(&database, "attacker");
    let names = [
        "x\n; ALTER ROLE attacker SUPERUSER; --",
        "x*/ ALTER ROLE attacker SUPERUSER; /*",
        "x'); ALTER ROLE attacker SUPERUSER; --",
    ];
    for name in names {
        attacker.run(&format!(
            "CREATE TABLE \"{name}\" (id int PRIMARY KEY); SELECT ttl.enable('\"{}\"', 3600), ttl.pause('\"{}\"');
             ALTER TABLE \"{name}\" ALTER _ts DROP NOT NULL; SET ttl.preserve_ts = on; INSERT INTO \"{name}\" (id, _ts) VALUES (1, NULL);
             RESET ttl.preserve_ts",
            name.replace('\'', "''"),
            name.replace('\'', "''")
        ));
    }
    let advice = boss.rows("SELECT problem, to_do FROM ttl.check() WHERE to_do IS NOT NULL");
    assert!(advice.len() >= names.len(), "{advice:#?}");
    for row in advice {
        // What helps only the owner is told to the owner.
        assert!(!row[1].contains("UPDATE"), "{row:#?}");
        boss.run(&row[1]);
        assert!(!hostile::attacker_is_superuser(&mut boss), "{row:#?}");
    }
}
