//! S1: a schema can be renamed at any time, by its owner, and nothing locks it. No code runs, and nothing is changed, of a table, a view or an operator
//! that takes a name in a statement of the extension.

use std::sync::OnceLock;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{Database, Server, Session, race_seconds};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

/// `ttl.disable` removes what `ttl.enable` has added: the other table keeps its columns, constraints, indexes and views.
#[test]
fn nothing_of_a_table_that_takes_the_name_is_dropped() {
    let database = hostile::armed_database(server());
    let mut boss = renaming_boss(&database);
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

/// A superuser in whose session the schema `other` becomes `one` when a statement of the kind `test.tag` begins: after the extension has
/// found the table, and before PostgreSQL looks the name up.
fn renaming_boss(database: &Database<'_>) -> Session {
    let mut boss = database.connect();
    boss.run(
        "CREATE FUNCTION rename() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
             IF current_setting('test.tag', true) = tg_tag AND to_regnamespace('former') IS NULL THEN
                 ALTER SCHEMA one RENAME TO former; ALTER SCHEMA other RENAME TO one;
             END IF; END$$;
         CREATE EVENT TRIGGER rename ON ddl_command_start EXECUTE FUNCTION rename()",
    );
    boss
}

/// What `ttl.enable` adds is evaluated for the rows of the table: casts of the other table's types do not run as the superuser who calls it.
#[test]
fn nothing_of_a_table_that_takes_the_name_is_evaluated() {
    let database = hostile::armed_database(server());
    let mut boss = renaming_boss(&database);
    boss.run("DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO attacker', current_database()); END$$");
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE TYPE pair AS (a int);
         CREATE FUNCTION number(pair) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_su(); RETURN 5; END$$;
         CREATE FUNCTION document(pair) RETURNS jsonb IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.a_su(); RETURN '{}'; END$$;
         CREATE CAST (pair AS int) WITH FUNCTION number(pair) AS IMPLICIT; CREATE CAST (pair AS jsonb) WITH FUNCTION document(pair) AS IMPLICIT",
    );
    let clock = "id int, _ts timestamptz NOT NULL DEFAULT now()";
    // The columns of the table and of the other one, what is called before, and the call.
    let of_document = "ttl.enable('one.t', 3600, document_column => 'doc')";
    for (columns, others, before, call) in [
        ("ttl int", "ttl pair", "", "ttl.enable('one.t', 3600)"),
        ("doc jsonb", "doc pair", "", of_document),
        (
            "doc jsonb",
            "doc pair, ttl int",
            "SELECT ttl.enable('one.t', 3600)",
            of_document,
        ),
    ] {
        attacker.run("DROP SCHEMA IF EXISTS former, one, other CASCADE");
        attacker.run(&format!(
            "CREATE SCHEMA one; CREATE TABLE one.t ({clock}, {columns});
             CREATE SCHEMA other; CREATE TABLE other.t ({clock}, {others}); INSERT INTO other.t DEFAULT VALUES; {before}"
        ));
        let column = others.split(' ').next().unwrap_or_default();
        attacker.run(&format!("UPDATE other.t SET {column} = ROW(1)"));
        let error = boss.error(&format!(
            "BEGIN; SET LOCAL test.tag = 'ALTER TABLE'; SELECT {call}; COMMIT"
        ));
        boss.run("ROLLBACK");
        assert_eq!(error.code().code(), "55000", "{columns}, {call}: {error}");
        assert!(
            !hostile::attacker_is_superuser(&mut boss),
            "{columns}, {call}"
        );
        // And without a change of names.
        boss.run(&format!("SELECT {call}"));
    }
}

/// What is added as the owner of the table needs no right that the owner of a table usually lacks; and is told of what it needs.
#[test]
fn a_superuser_enables_others_tables_in_any_schema() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run("CREATE SCHEMA one AUTHORIZATION attacker; GRANT USAGE ON SCHEMA one TO victim");
    for columns in [
        "id int",
        "id int, ttl int",
        "id int, doc jsonb",
        "id int, _ts timestamptz NOT NULL",
    ] {
        let call = match columns.contains("doc") {
            true => "ttl.enable('one.t', 60, document_column => 'doc')",
            false => "ttl.enable('one.t', 60, index => 'btree')",
        };
        boss.run(&format!(
            "CREATE TABLE one.t ({columns}, PRIMARY KEY (id)); ALTER TABLE one.t OWNER TO victim; SELECT {call};
             SELECT ttl.disable('one.t', drop_columns => true); REVOKE USAGE ON SCHEMA one FROM victim"
        ));
        let error = boss.error(&format!("SELECT {call}"));
        assert_eq!(error.code().code(), "42501", "{columns}: {error}");
        let hint = error.hint().unwrap_or_default();
        boss.run(hint.trim_start_matches("First run: "));
        boss.run(&format!("SELECT {call}; DROP TABLE one.t"));
    }
}

/// All that inherits is altered with the table, and so is its owner's: the error names the table that is not.
#[test]
fn a_family_of_several_owners_is_told_what_it_needs() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run("CREATE SCHEMA one AUTHORIZATION attacker; GRANT USAGE ON SCHEMA one TO victim");
    for child in ["PARTITION OF one.t DEFAULT", "() INHERITS (one.t)"] {
        let partitioned = match child.starts_with("PARTITION") {
            true => " PARTITION BY LIST (id)",
            false => "",
        };
        boss.run(&format!(
            "CREATE TABLE one.t (id int){partitioned}; ALTER TABLE one.t OWNER TO victim; CREATE TABLE one.child {child}"
        ));
        for call in [
            "ttl.enable('one.t', 60)",
            "ttl.disable('one.t', drop_columns => true)",
        ] {
            let error = boss.error(&format!("SELECT {call}"));
            assert_eq!(error.code().code(), "42501", "{child}: {error}");
            let hint = error.hint().unwrap_or_default();
            assert!(
                hint.contains("ALTER TABLE one.child OWNER TO victim"),
                "{child}: {hint}"
            );
            boss.run(hint.trim_start_matches("First run: "));
            boss.run(&format!(
                "SELECT {call}; ALTER TABLE one.child OWNER TO postgres"
            ));
        }
        boss.run("DROP TABLE one.t CASCADE");
    }
}

/// COPY of a table is a query of it, which is no query of a view, even if that reads the table.
#[test]
fn a_copied_table_is_no_view() {
    for from in ["public.own", "one.t"] {
        let database = hostile::armed_database(server());
        let mut boss = database.connect();
        boss.run("DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO attacker', current_database()); END$$");
        let mut attacker = owner(&database, "attacker");
        attacker.run(&format!(
            "CREATE TABLE own (id int); INSERT INTO own VALUES (1);
             CREATE SCHEMA one; CREATE TABLE one.t (id text); SELECT ttl.enable('one.t', 3600); INSERT INTO one.t VALUES (1);
             CREATE SCHEMA other; CREATE VIEW other.t AS SELECT public.a_su() AS id, now() AS _ts, 1 AS ttl FROM {from}"
        ));
        while_names_change(attacker, || {
            let _ = boss.try_run("COPY one.t TO '/dev/null'");
        });
        assert!(!hostile::attacker_is_superuser(&mut boss), "{from}");
        // Which of the two has the name now, is chance; a table is copied.
        boss.run("CREATE SCHEMA quiet; CREATE TABLE quiet.t (id int); SELECT ttl.enable('quiet.t', 3600); COPY quiet.t TO '/dev/null'");
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
