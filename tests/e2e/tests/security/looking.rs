//! S2: `ttl.tables`, `ttl.problems`, `ttl_internal.rules` and `ttl.stats` run no user's code, wait for no
//! lock, and show a broken object as a problem beside the others.

use ttl_ext_e2e::{Database, Session, SqlState, hostile};

/// All queries that only look, at all tables and at a single trap.
const LOOKS: &[&str] = &[
    "SELECT * FROM ttl.tables",
    "SELECT relation, problems FROM ttl.tables",
    "SELECT relation, default_ttl FROM ttl.tables",
    "SELECT relation FROM ttl.tables",
    "SELECT relation, rules FROM ttl.tables",
    "SELECT * FROM ttl.stats",
    "SELECT ttl.problems('trap')",
    "SELECT ttl_internal.rules('trap')",
    "SELECT ttl_internal.policy('trap')",
];

/// A superuser's session with a short lock_timeout.
fn viewer(database: &Database<'_>) -> Session {
    let mut viewer = database.connect();
    viewer.run(
        "SET statement_timeout = '10s'; SET lock_timeout = '5s'; SET client_min_messages = error",
    );
    viewer
}

/// Tables whose TTL index, other indexes, CHECK, default and generated column call the function
/// `calling`; the statement names one of them `trap`.
fn lay_trap(attacker: &mut Session, calling: &str) {
    attacker.run(&format!(
        "CREATE TABLE trap (id int DEFAULT {calling}, d timestamptz, t text,
             g int GENERATED ALWAYS AS ({calling}) STORED, CHECK (id <> {calling} - 7));
         CREATE INDEX ON trap (id) WHERE id > {calling};
         CREATE INDEX ON trap (({calling} + id));
         CREATE UNIQUE INDEX ON trap (id, ({calling})) WHERE t = {calling}::text;
         SELECT ttl.enable('trap', 3600);
         CREATE INDEX expiring ON trap (d) WHERE t = 'x';
         SELECT ttl.expire_index('expiring', 60);
         CREATE INDEX named ON trap (d) WHERE id > {calling};"
    ));
}

/// The attacker stores labels that the extension's functions would refuse.
fn label_trap(attacker: &mut Session) {
    let label =
        attacker.value("SELECT label FROM pg_catalog.pg_seclabel WHERE objoid = 'trap'::regclass");
    let label = label.replace(
        r#""index":"expiring","#,
        r#""index":"named","expire_after_seconds":60},{"index":"expiring","#,
    );
    attacker.run(&format!(
        "SECURITY LABEL FOR ttl ON TABLE trap IS '{label}'"
    ));
}

/// S2. On f540154 each but `ttl.stats` made the attacker a superuser: PostgreSQL simplifies
/// the predicates of indexes that are opened, which ran `a_pure`.
#[test]
fn nobody_is_taken_over_by_looking() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut attacker = database.connect_as("attacker");
    lay_trap(&mut attacker, "public.a_pure('x')");
    label_trap(&mut attacker);
    for look in LOOKS {
        let mut viewer = viewer(&database);
        viewer.run("BEGIN");
        viewer.run(look);
        viewer.run("COMMIT");
        assert!(!hostile::attacker_is_superuser(&mut viewer), "{look}");
        let cursors = viewer.value("SELECT count(*) FROM pg_catalog.pg_cursors");
        assert_eq!(cursors, "0", "{look}");
    }
}

/// S2. On f540154 the viewer had the attacker's `search_path` from then on.
#[test]
fn a_viewers_session_stays_as_it_is() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE FUNCTION a_path() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
             IF session_user <> 'attacker' THEN PERFORM set_config('search_path', 'evil', false); END IF;
             RETURN 1; END$$",
    );
    lay_trap(&mut attacker, "public.a_path()");
    label_trap(&mut attacker);
    let mut viewer = viewer(&database);
    for look in LOOKS {
        viewer.run(look);
        assert_eq!(
            viewer.value("SELECT pg_catalog.current_setting('search_path')"),
            "\"$user\", public",
            "{look}"
        );
        assert_eq!(viewer.value("SHOW lock_timeout"), "5s", "{look}");
    }
}

/// S2. On f540154 `ttl.tables` failed for everybody, or never ended.
#[test]
fn functions_that_fail_or_never_end_are_not_called() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE FUNCTION a_error() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
             IF session_user <> 'attacker' THEN RAISE 'not for you'; END IF; RETURN 1; END$$;
         CREATE FUNCTION a_loop() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
             WHILE session_user <> 'attacker' LOOP END LOOP; RETURN 1; END$$",
    );
    victims_table(&database);
    for function in ["public.a_error()", "public.a_loop()"] {
        lay_trap(&mut attacker, function);
        label_trap(&mut attacker);
        let mut viewer = viewer(&database);
        for look in LOOKS {
            viewer.run(look);
        }
        assert_victims_row_is_right(&mut viewer);
        let expected = "no row expires by a TTL index: index named has a predicate that uses";
        let problems = viewer.value("SELECT ttl.problems('trap')::text");
        assert!(problems.contains(expected), "{problems}");
        attacker.run("DROP TABLE trap");
    }
}

fn victims_table(database: &Database<'_>) {
    database.connect_as("victim").run(
        "CREATE TABLE good (id int, d timestamptz, t text);
         SELECT ttl.enable('good', 100);
         CREATE INDEX good_d ON good (d) WHERE t = 'x' AND id > 3;
         SELECT ttl.expire_index('good_d', 60)",
    );
}

#[track_caller]
fn assert_victims_row_is_right(session: &mut Session) {
    let row = session.column(
        "SELECT default_ttl, ts_column, ttl_column, hidden, rules, array_remove(problems, 'deletion is off: ttl.enabled')
           FROM ttl.tables WHERE relation = 'good'::regclass",
    );
    let rules = r#"[{"key": {"d": 1}, "name": "good_d", "expireAfterSeconds": 60, "partialFilterExpression": "((t = 'x'::text) AND (id > 3))"}]"#;
    assert_eq!(row, [format!("100|_ts|ttl|t|{rules}|{{}}")]);
    let stats = "SELECT count(*) FROM ttl.stats WHERE relation = 'good'::regclass";
    assert_eq!(session.value(stats), "1");
}

/// S2. On f540154 `ttl.tables` waited for the lock as long as it was held.
#[test]
fn looking_waits_for_no_lock() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    victims_table(&database);
    let mut attacker = database.connect_as("attacker");
    attacker.run("CREATE TYPE pair AS (a int, b int)");
    lay_trap(&mut attacker, "1");
    attacker.run(
        "CREATE TABLE held (id int, d timestamptz, p pair);
         CREATE INDEX held_d ON held (d) WHERE (p).a = 1;
         SELECT ttl.expire_index('held_d', 60);
         CREATE TABLE parted (id int) PARTITION BY RANGE (id);
         CREATE TABLE part PARTITION OF parted FOR VALUES FROM (1) TO (2);
         SELECT ttl.enable('parted', 10)",
    );
    let mut stranger = database.connect_as("attacker");
    stranger.run("BEGIN; LOCK TABLE trap, parted, part IN ACCESS EXCLUSIVE MODE");
    // The row type of a column that a predicate names.
    let mut another = database.connect_as("attacker");
    another.run("BEGIN; ALTER TYPE pair ADD ATTRIBUTE c int");
    let mut viewer = viewer(&database);
    viewer.run("SET statement_timeout = '3s'; SET lock_timeout = 0");
    for look in LOOKS {
        viewer.run(look);
    }
    assert_victims_row_is_right(&mut viewer);
    let problems = viewer.value("SELECT ttl.problems('trap')::text");
    let expected = "the condition of TTL index expiring cannot be shown: the table is locked";
    assert!(problems.contains(expected), "{problems}");
    let rules = "SELECT ttl_internal.rules('trap')::text";
    let without = viewer.value(rules);
    assert!(
        without.contains("expiring") && !without.contains("partialFilterExpression"),
        "{without}"
    );
    stranger.run("ROLLBACK");
    let with = viewer.value(rules);
    assert!(with.contains("(t = 'x'::text)"), "{with}");
}

/// S2. On f540154: "relation with OID … does not exist", for every ordinary user, until a
/// worker had looked again.
#[test]
fn stats_are_shown_after_a_drop() {
    let server = hostile::start(&[("ttl.naptime", "3600")]);
    let database = hostile::armed_database(&server);
    victims_table(&database);
    let mut attacker = database.connect_as("attacker");
    attacker.run("CREATE TABLE gone (id int); SELECT ttl.enable('gone', 1)");
    let mut reader = database.connect_as("reader");
    let swept = "SELECT count(*) FROM ttl_internal.table_stats() WHERE relid = 'gone'::regclass AND passes > 0";
    attacker.wait_until(swept, "1", ttl_ext_e2e::PATIENCE);
    // The worker that would remove the entry is stopped.
    server.reload(&[("ttl.enabled", "off")]);
    attacker.run("DROP TABLE gone");
    reader.run("SELECT * FROM ttl.stats");
    reader.run("SELECT * FROM ttl_internal.table_stats()");
    assert_victims_row_is_right(&mut reader);
}

/// S6. On f540154 a label could name any number of indexes, all of which everybody read.
#[test]
fn giant_labels_are_refused() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut attacker = database.connect_as("attacker");
    attacker.run("CREATE TABLE big (id int, d timestamptz)");
    let rules = |count: usize| {
        let rule = |n| format!(r#"{{"index":"i{n}","expire_after_seconds":1}}"#);
        let rules: Vec<String> = (0..count).map(rule).collect();
        format!(
            r#"SECURITY LABEL FOR ttl ON TABLE big IS '{{"ts_column":null,"ttl_column":null,"rules":[{}]}}'"#,
            rules.join(",")
        )
    };
    attacker.run(&rules(100));
    let error = attacker.error(&rules(101));
    assert_eq!(*error.code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert!(error.detail().is_some() && error.hint().is_some());
    let error = attacker.error(&rules(40_000));
    assert_eq!(*error.code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    // The functions refuse one more.
    attacker.run("CREATE INDEX one_more ON big (d)");
    let error = attacker.error("SELECT ttl.expire_index('one_more', 60)");
    assert_eq!(*error.code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    attacker.run(
        "SECURITY LABEL FOR ttl ON TABLE big IS NULL; SELECT ttl.expire_index('one_more', 60)",
    );
}

/// S6, S8. Invalid labels are problems of their own tables only. On f540154 `ttl.tables` failed for
/// all if one label was not JSON, and a large label made DROP … CASCADE of other objects take
/// seconds.
#[test]
fn labels_that_cannot_be_read_disturb_nobody() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    victims_table(&database);
    let mut superuser = database.connect();
    superuser.run("SET allow_system_table_mods = on");
    let rule = "'{\"index\":\"i' || n || '\",\"expire_after_seconds\":1}'";
    let rules = |count: i32| {
        format!("(SELECT string_agg({rule}, ',') FROM generate_series(1, {count}) AS n)")
    };
    let broken = [
        ("no_json", "'{no json'".to_owned()),
        ("no_number", r#"'{"default_ttl": "soon"}'"#.to_owned()),
        ("newer", r#"'{"version": 99, "default_ttl": 5}'"#.to_owned()),
        (
            "deep",
            "repeat('[', 10000) || repeat(']', 10000)".to_owned(),
        ),
        (
            "long",
            r#"'{"default_ttl": 5' || repeat(' ', 20000000) || '}'"#.to_owned(),
        ),
        (
            "many",
            format!(
                r#"'{{"ts_column":null,"ttl_column":null,"rules":[' || {} || ']}}'"#,
                rules(200)
            ),
        ),
        (
            "giant",
            format!(
                r#"'{{"ts_column":null,"ttl_column":null,"rules":[' || {} || ']}}'"#,
                rules(40_000)
            ),
        ),
    ];
    let mut attacker = database.connect_as("attacker");
    for (name, label) in &broken {
        attacker.run(&format!(
            "CREATE TABLE {name} (id int, d timestamptz); SELECT ttl.enable('{name}', 5)"
        ));
        superuser.run(&format!(
            "UPDATE pg_catalog.pg_seclabel SET label = {label}
              WHERE provider = 'ttl' AND objoid = '{name}'::regclass"
        ));
    }
    let mut viewer = database.connect_as("reader");
    viewer.run("SET statement_timeout = '5s'");
    for (name, _) in &broken {
        let row = viewer.column(&format!(
            "SELECT default_ttl, ts_column, hidden, rules, problems[1] LIKE 'the label cannot be read, so no row expires: %'
               FROM ttl.tables WHERE relation = '{name}'::regclass"
        ));
        assert_eq!(row, ["∅|∅|∅|[]|t"], "{name}");
    }
    assert_victims_row_is_right(&mut viewer);
    // Any DROP … CASCADE reads all labels.
    let mut victim = database.connect_as("victim");
    victim.run("SET statement_timeout = '2s'; CREATE TABLE z (id int); DROP TABLE z CASCADE");
    // Workers too: the rows of others are deleted.
    let mut disk = database.disk();
    disk.insert_expired("good", 1, 3);
    disk.wait_for_none("good");
}
