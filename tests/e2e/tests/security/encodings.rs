//! S8: databases in other encodings than UTF-8: names with an é work like others, and a label with
//! one breaks nothing for other users.

use ttl_ext_e2e::{Database, Server, Session, fields, hostile};

/// A database in this encoding with the extension.
fn database<'a>(server: &'a Server, name: &str, encoding: &str) -> Database<'a> {
    server.connect("postgres", "postgres").run(&format!(
        "CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    ));
    let database = server.existing_database(name);
    database
        .connect()
        .run("CREATE EXTENSION ttl_ext; GRANT CREATE ON SCHEMA public TO victim, attacker");
    database
}

/// A table with an é in all its names, and everything that is done to a table.
fn everything_works(database: &Database<'_>, owner: &mut Session) {
    owner.run(
        "CREATE SCHEMA \"Caché\"; SET search_path = \"Caché\", public;
         CREATE TABLE \"été\" (id int PRIMARY KEY, \"né\" timestamptz, \"mémo\" text, doc jsonb,
             \"modifié\" timestamptz NOT NULL DEFAULT now());
         SELECT ttl.enable('\"été\"', 3600, 'modifié', 'durée', 'doc');
         CREATE INDEX \"né_à\" ON \"été\" (\"né\") WHERE \"mémo\" = 'né';
         SELECT ttl.expire_index('\"né_à\"', 0)",
    );
    let row = owner.value(
        "SELECT concat_ws('|', relation, ts_column, ttl_column, rules, problems) FROM ttl.tables
          WHERE relation = '\"été\"'::regclass",
    );
    assert_eq!(
        row,
        r#""été"|modifié|durée|[{"key": {"né": 1}, "name": "né_à", "expireAfterSeconds": 0, "partialFilterExpression": "(\"mémo\" = 'né'::text)"}]|{}"#
    );
    // Hidden, kept, and freed.
    owner.run(
        "BEGIN; SET LOCAL ttl.preserve_ts = on;
         INSERT INTO \"été\" (id, \"modifié\", \"né\", \"mémo\", doc) VALUES
             (1, now() - interval '1 day', NULL, NULL, NULL),
             (2, now() - interval '1 day', NULL, NULL, '{\"ttl\": 1, \"é\": \"à\"}'),
             (3, now(), now() - interval '1 day', 'né', NULL),
             (4, now(), now() - interval '1 day', 'ne', NULL);
         COMMIT;
         INSERT INTO \"été\" (id, doc) VALUES (5, '{\"é\": \"à\"}')",
    );
    assert_eq!(
        owner.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM \"été\""),
        "4 5"
    );
    assert_eq!(
        owner.copy_out("COPY \"été\" (id, \"mémo\") TO STDOUT (DELIMITER ' ')"),
        ["4 ne", "5 \\N"]
    );
    owner.run("SELECT * FROM ttl.preview('\"été\"')");
    let mut disk = database.connect();
    disk.run("SET ttl.show_expired = on; SET search_path = \"Caché\"");
    disk.wait_for_ids("\"été\"", "4 5");
    // The label follows the rename.
    owner.run(
        "ALTER TABLE \"été\" RENAME \"modifié\" TO \"changé\";
         ALTER INDEX \"né_à\" RENAME TO \"né_où\";
         ALTER TABLE \"été\" RENAME TO \"étés\"",
    );
    let row = owner.value(
        "SELECT concat_ws('|', relation, ts_column, rules -> 0 ->> 'name', problems) FROM ttl.tables
          WHERE relation = '\"étés\"'::regclass",
    );
    assert_eq!(row, "\"étés\"|changé|né_où|{}");
    owner.run(
        "SELECT ttl.create_index('\"étés\"', '{\"né\": 1}', '{\"name\": \"Ù\", \"expireAfterSeconds\": 5}');
         SELECT ttl.purge('\"étés\"');
         CREATE TABLE z (id int); DROP TABLE z CASCADE;
         SELECT ttl.expire_index('\"Ù\"', NULL);
         SELECT ttl.set_default('\"étés\"', 60)",
    );
    let error = owner.try_run("ALTER TABLE \"étés\" DROP COLUMN \"changé\"");
    let error = fields(&error.expect_err("the column is needed")).join("\n");
    assert!(error.contains("cannot drop column"), "{error}");
    owner.run("SELECT ttl.disable('\"étés\"'); DROP SCHEMA \"Caché\" CASCADE");
    assert_eq!(owner.value("SELECT count(*) FROM ttl.stats"), "0");
}

fn workers_are_well(server: &Server) {
    for bad in ["FATAL", "PANIC", "datum should be valid"] {
        let lines = server.log_lines(&[bad]);
        assert!(lines.is_empty(), "{lines:?}");
    }
}

/// On f540154 workers died every 5 seconds, and DROP … CASCADE failed for everybody.
#[test]
fn an_accent_in_latin1_is_a_letter() {
    let server = hostile::start(&[]);
    let database = database(&server, "latin", "LATIN1");
    everything_works(&database, &mut database.connect_as("postgres"));
    workers_are_well(&server);
}

/// An encoding for which PostgreSQL has a conversion.
#[test]
fn an_accent_in_latin9_is_a_letter() {
    let server = hostile::start(&[]);
    let database = database(&server, "latin", "LATIN9");
    everything_works(&database, &mut database.connect_as("postgres"));
    workers_are_well(&server);
}

/// Bytes that are not UTF-8, and names that would become equal if they were repaired.
#[test]
fn bytes_in_sql_ascii_are_kept() {
    let server = hostile::start(&[]);
    let database = database(&server, "bytes", "SQL_ASCII");
    let mut owner = database.connect_as("victim");
    // The same bytes as UTF-8.
    everything_works(&database, &mut database.connect_as("postgres"));
    let name = |byte: &str| format!("convert_from('\\x{byte}', 'SQL_ASCII')");
    for byte in ["e9", "ff"] {
        owner.run(&format!(
            "DO $$BEGIN EXECUTE format('CREATE TABLE %I (id int, %I timestamptz NOT NULL DEFAULT now())', {0}, {0});
               PERFORM ttl.enable(format('%I', {0})::regclass, 3600, {0}::name); END$$;
             BEGIN; SET LOCAL ttl.preserve_ts = on;
             DO $$BEGIN EXECUTE format('INSERT INTO %I (id, %I)
               SELECT n, now() - (3 - n) * interval ''1 day'' FROM generate_series(1, 3) AS n', {0}, {0}); END$$;
             COMMIT",
            name(byte)
        ));
    }
    let mut disk = database.disk();
    let count = format!(
        "CREATE FUNCTION pg_temp.left_in(relation text) RETURNS bigint LANGUAGE plpgsql AS $$
         DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM %I', relation) INTO n; RETURN n; END$$;
         SELECT pg_temp.left_in({}) + pg_temp.left_in({})",
        name("e9"),
        name("ff")
    );
    let (function, query) = count.split_once("$$;").expect("two statements");
    disk.run(&format!("{function}$$"));
    disk.wait_until(query, "2", ttl_ext_e2e::PATIENCE);
    assert_eq!(
        disk.value("SELECT count(*) FROM ttl.tables WHERE problems = '{}'"),
        "2"
    );
    workers_are_well(&server);
}
