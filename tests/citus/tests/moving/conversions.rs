//! Every way in which a table is converted, in every form of the call: rows keep their times, all shards have the
//! trigger, what is refused is refused. (A conversion was recognised by the form of the statement.)

use ttl_ext_citus::{Application, Session, SqlState, ids};

use crate::{cluster, contents, fill, works};

/// Ways to call `{f}(TABLE, {rest})`; `{t}` is the table's name.
const FORMS: [(&str, &str); 12] = [
    ("plain", "SELECT {f}('{t}'{rest})"),
    ("cast", "SELECT {f}('{t}'::text::regclass{rest})"),
    (
        "from_catalog",
        "SELECT {f}(oid::regclass{rest}) FROM pg_class WHERE relname = '{t}' AND relnamespace = 'public'::regnamespace",
    ),
    ("from_values", "SELECT {f}(x.t::regclass{rest}) FROM (VALUES ('{t}')) AS x (t)"),
    ("in_where", "SELECT 1 WHERE {f}('{t}'{rest}) IS NOT NULL"),
    ("cte", "WITH c AS MATERIALIZED (SELECT {f}('{t}'{rest}) AS done) SELECT count(*) FROM c"),
    ("nested", "SELECT coalesce((SELECT {f}('{t}'{rest})::text), '')"),
    ("prepared", "PREPARE p (regclass) AS SELECT {f}($1{rest}); EXECUTE p ('{t}'); DEALLOCATE p"),
    ("block", "DO $$ BEGIN PERFORM {f}('{t}'{rest}); END $$"),
    (
        "variable",
        "DO $$ DECLARE t regclass := '{t}'; r text; BEGIN r := {f}(t{rest}); END $$",
    ),
    (
        "function",
        "CREATE FUNCTION convert_it(t regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM {f}(t{rest}); END $$;
         SELECT convert_it('{t}')",
    ),
    (
        "sql_function",
        "CREATE FUNCTION convert_it(t regclass) RETURNS text LANGUAGE sql AS $$ SELECT {f}(t{rest})::text $$;
         SELECT convert_it('{t}')",
    ),
];

fn call(form: &str, function: &str, rest: &str) -> String {
    form.replace("{f}", function)
        .replace("{t}", "o")
        .replace("{rest}", rest)
}

/// The rows that live, as they are on disk.
#[track_caller]
fn live(rows: &[String]) -> Vec<String> {
    rows[rows.len() - 20..].to_vec()
}

/// Many sessions a node, as soon as there is more than one thing to do.
const PARALLEL: &str =
    "SET citus.executor_slow_start_interval = 0; SET citus.force_max_query_parallelization = on";

/// An application, in which each form gets a table of its own.
fn app(name: &str) -> (Application<'static>, Session) {
    let app = cluster().application(name);
    let mut session = app.coordinator();
    session.run(PARALLEL);
    (app, session)
}

/// The table anew, with TTL, an index for deletion, and a key, and so with a trigger, which Citus refuses: as it is on disk.
fn plain(app: &Application<'_>, session: &mut Session) -> Vec<String> {
    session.run("DROP TABLE IF EXISTS o; DROP FUNCTION IF EXISTS convert_it");
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text); SELECT ttl.enable('o', 3600, index => 'btree')");
    fill(session);
    let mut disk = app.database(0).disk();
    disk.column("SELECT row_to_json(o)::text FROM o ORDER BY id")
}

/// The same, distributed: what lives of it.
fn shared(app: &Application<'_>, session: &mut Session) -> Vec<String> {
    let rows = plain(app, session);
    session.run("SELECT create_distributed_table('o', 'id')");
    live(&rows)
}

#[test]
fn altered() {
    let (app, mut session) = app("altered");
    for (name, form) in FORMS {
        let before = shared(&app, &mut session);
        session.run(&call(form, "alter_distributed_table", ", shard_count => 6"));
        assert_eq!(app.placements("o").len(), 6, "{name}");
        assert_eq!(live(&contents(&app, "o")), before, "{name}");
        works(&app, &mut session);
    }
}

#[track_caller]
fn plain_works(app: &Application<'_>, session: &mut Session, before: &[String], name: &str) {
    let mut disk = app.database(0).disk();
    let after = disk.column("SELECT row_to_json(o)::text FROM o ORDER BY id");
    assert_eq!(live(&after), before, "{name}");
    assert_eq!(app.problems(0, "o"), "", "{name}");
    session.run("INSERT INTO o (id, v) SELECT n, 'new' FROM generate_series(1, 10) AS n");
    let seen = session.column("SELECT id FROM o ORDER BY id").join(" ");
    assert_eq!(seen, format!("{} {}", ids(1..=10), ids(21..=40)), "{name}");
    let trigger = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'o'::regclass AND tgname = '~ttl_free_expired_keys'";
    assert_eq!(session.value(trigger), "1", "{name}");
}

#[test]
fn undistributed() {
    let (app, mut session) = app("undistributed");
    for (name, form) in FORMS {
        let before = shared(&app, &mut session);
        session.run(&call(form, "undistribute_table", ""));
        plain_works(&app, &mut session, &before, name);
    }
}

#[test]
fn distributed() {
    let (app, mut session) = app("distributed");
    for (name, form) in FORMS {
        let before = plain(&app, &mut session);
        session.run(&call(form, "create_distributed_table", ", 'id'"));
        assert_eq!(contents(&app, "o"), before, "{name}");
        works(&app, &mut session);
    }
}

#[test]
fn into_metadata() {
    let (app, mut session) = app("metadata");
    for (name, form) in FORMS {
        let before = plain(&app, &mut session);
        session.run(&call(form, "citus_add_local_table_to_metadata", ""));
        assert_eq!(contents(&app, "o"), before, "{name}");
        works(&app, &mut session);
    }
}

/// Refused in every form, and nothing is changed.
#[test]
fn to_columnar() {
    let app = cluster().application("columnar");
    let mut session = app.coordinator();
    session.run("CREATE EXTENSION IF NOT EXISTS citus_columnar");
    session.run("CREATE TABLE o (id int, v text); SELECT ttl.enable('o', 3600)");
    session.run("INSERT INTO o (id) VALUES (1)");
    for (name, form) in FORMS {
        session.run("BEGIN");
        let statements = call(form, "alter_table_set_access_method", ", 'columnar'");
        let error = session.error(&statements);
        assert_eq!(
            *error.code(),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{name}: {error:?}"
        );
        assert!(error.hint().is_some(), "{name}: {error:?}");
        session.run("ROLLBACK");
    }
    session.run("BEGIN");
    let error = session.error("ALTER TABLE o SET ACCESS METHOD columnar");
    assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    session.run("ROLLBACK");
    let method =
        "SELECT amname FROM pg_am JOIN pg_class c ON relam = pg_am.oid WHERE c.oid = 'o'::regclass";
    assert_eq!(session.value(method), "heap");
    assert_eq!(app.problems(0, "o"), "");
}

/// Tables that go with the one that is named.
#[test]
fn together() {
    let (app, mut session) = app("colocated");
    let before = shared(&app, &mut session);
    session.run("CREATE TABLE p (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('p', 'id', colocate_with => 'o')");
    session
        .run("SELECT alter_distributed_table('p', shard_count => 6, cascade_to_colocated => true)");
    assert_eq!(live(&contents(&app, "o")), before);
    assert_eq!(app.placements("o").len(), 6);
    works(&app, &mut session);
}

#[test]
fn by_foreign_keys() {
    let (app, mut session) = app("by_foreign_keys");
    shared(&app, &mut session);
    session.run("CREATE TABLE r (id int PRIMARY KEY)");
    session.run("SELECT create_reference_table('r')");
    session.run("ALTER TABLE o ADD COLUMN r int REFERENCES r (id)");
    let before = live(&contents(&app, "o"));
    session.run("SELECT undistribute_table('r', cascade_via_foreign_keys => true)");
    plain_works(&app, &mut session, &before, "by foreign keys");
}

/// Statements that make Citus give a table back: its last foreign key to a reference table goes.
#[test]
fn by_a_statement() {
    let (app, mut session) = app("by_a_statement");
    for statement in [
        "ALTER TABLE o DROP CONSTRAINT o_r_fkey",
        "DROP TABLE r CASCADE",
    ] {
        session.run("DROP TABLE IF EXISTS o; DROP TABLE IF EXISTS r");
        session.run("CREATE TABLE r (id int PRIMARY KEY)");
        session.run("SELECT create_reference_table('r')");
        // Citus takes it into its metadata by itself, as it has no key yet.
        session.run("CREATE TABLE o (id int, v text, r int)");
        session.run("ALTER TABLE o ADD CONSTRAINT o_r_fkey FOREIGN KEY (r) REFERENCES r");
        session.run("ALTER TABLE o ADD PRIMARY KEY (id)");
        session.run("SELECT ttl.enable('o', 3600)");
        fill(&mut session);
        let before = live(&contents(&app, "o"));
        session.run(statement);
        let is_plain = "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'o'::regclass";
        assert_eq!(session.value(is_plain), "0", "{statement}");
        plain_works(&app, &mut session, &before, statement);
    }
}

/// Into a distributed schema, and out of it.
#[test]
fn by_schema() {
    let (app, mut session) = app("by_schema");
    let before = plain(&app, &mut session);
    session.run("SET citus.enable_schema_based_sharding = on; CREATE SCHEMA tenant");
    session.run("ALTER TABLE o SET SCHEMA tenant");
    assert_eq!(contents(&app, "tenant.o"), before);
    assert_eq!(app.problems(0, "tenant.o"), "");
    session.run(
        "SET search_path = tenant; INSERT INTO o SELECT n, 'new' FROM generate_series(1, 5) AS n",
    );
    assert_eq!(session.value("SELECT count(*) FROM o"), "25");
    let kept = contents(&app, "tenant.o");
    session.run("SET search_path = public; ALTER TABLE tenant.o SET SCHEMA public");
    let mut disk = app.database(0).disk();
    let after = disk.column("SELECT row_to_json(o)::text FROM o ORDER BY id");
    assert_eq!(after[after.len() - 20..], kept[kept.len() - 20..]);
    assert_eq!(app.problems(0, "o"), "");
}
