//! S3: PostgreSQL's own foreign-key queries are recognised, in every form that this version writes.
//! If one is not, a row that refers to nothing stays on disk, or a valid statement fails.

use std::sync::OnceLock;

use ttl_ext_e2e::{Server, Session, hostile};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[("ttl.enabled", "off")]))
}

/// A foreign key of `c` on `p`.
struct Shape {
    /// `{}`: its actions.
    tables: &'static str,
    /// The statement that changes the key 1 of `p`.
    change: &'static str,
    /// Rows of `p` with the keys 0 and 1, of `c` with the key 1.
    rows: &'static str,
}

const fn shape(tables: &'static str, change: &'static str, rows: &'static str) -> Shape {
    Shape {
        tables,
        change,
        rows,
    }
}

const CHANGE: &str = "UPDATE p SET k = 5 WHERE k = 1";
const ROWS: &str = "INSERT INTO p (k) VALUES (0), (1); INSERT INTO c (k) VALUES (1)";
const TEXT_CHANGE: &str = "UPDATE p SET k = 'five' WHERE k = '1'";
const TEXT_ROWS: &str = "INSERT INTO p (k) VALUES ('0'), ('1'); INSERT INTO c (k) VALUES ('1')";

const SHAPES: [Shape; 18] = [
    shape("CREATE TABLE p (k int PRIMARY KEY); CREATE TABLE c (k int DEFAULT 0 REFERENCES p {})", CHANGE, ROWS),
    shape("CREATE TABLE p (k bigint PRIMARY KEY); CREATE TABLE c (k int DEFAULT 0 REFERENCES p {})", CHANGE, ROWS),
    shape("CREATE TABLE p (k numeric PRIMARY KEY); CREATE TABLE c (k int DEFAULT 0 REFERENCES p {})", CHANGE, ROWS),
    shape("CREATE DOMAIN d AS int; CREATE TABLE p (k d PRIMARY KEY); CREATE TABLE c (k d DEFAULT 0 REFERENCES p {})", CHANGE, ROWS),
    shape(
        "CREATE TABLE p (k varchar(9) PRIMARY KEY); CREATE TABLE c (k text DEFAULT '0' REFERENCES p {})",
        TEXT_CHANGE, TEXT_ROWS,
    ),
    shape(
        "CREATE TABLE p (k text COLLATE \"C\" PRIMARY KEY); CREATE TABLE c (k text COLLATE \"POSIX\" DEFAULT '0' REFERENCES p {})",
        TEXT_CHANGE, TEXT_ROWS,
    ),
    shape("CREATE TABLE p (gone int, k int UNIQUE) ; ALTER TABLE p DROP gone; CREATE TABLE c (gone int, k int DEFAULT 0 REFERENCES p (k) MATCH FULL {}); ALTER TABLE c DROP gone", CHANGE, ROWS),
    shape(
        "CREATE SCHEMA \"A b\"; CREATE TABLE \"A b\".\"p \"\"x\" (\"$1\" int PRIMARY KEY); CREATE VIEW p AS SELECT \"$1\" AS k FROM \"A b\".\"p \"\"x\";
         CREATE TABLE c (\"K\"\"\" int DEFAULT 0 REFERENCES \"A b\".\"p \"\"x\" {})",
        CHANGE, "INSERT INTO p VALUES (0), (1); INSERT INTO c VALUES (1)",
    ),
    shape(
        "CREATE TABLE p (a int, b text, PRIMARY KEY (b, a)); CREATE TABLE c (x int DEFAULT 0, y text DEFAULT '0', FOREIGN KEY (y, x) REFERENCES p (b, a) {})",
        "UPDATE p SET a = 5 WHERE a = 1", "INSERT INTO p VALUES (0, '0'), (1, '1'); INSERT INTO c VALUES (1, '1')",
    ),
    shape(
        "CREATE TABLE p (k int PRIMARY KEY); CREATE TABLE c (id int, k int DEFAULT 0 REFERENCES p {}) PARTITION BY RANGE (id);
         CREATE TABLE c1 PARTITION OF c DEFAULT", CHANGE, ROWS,
    ),
    shape(
        "CREATE TABLE p (k int PRIMARY KEY) PARTITION BY HASH (k); CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE p1 (gone int, k int NOT NULL); ALTER TABLE p1 DROP gone; ALTER TABLE p ATTACH PARTITION p1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
         CREATE TABLE c (k int DEFAULT 0 REFERENCES p {})", CHANGE, ROWS,
    ),
    shape(
        "CREATE TABLE p (k bigint PRIMARY KEY) PARTITION BY RANGE (k); CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (3); CREATE TABLE p1 PARTITION OF p DEFAULT;
         CREATE TABLE c (id int DEFAULT 1, k int DEFAULT 0 REFERENCES p {}) PARTITION BY LIST (id); CREATE TABLE c1 PARTITION OF c DEFAULT PARTITION BY LIST (id);
         CREATE TABLE c11 PARTITION OF c1 DEFAULT", CHANGE, ROWS,
    ),
    shape(
        "CREATE TABLE c (id int UNIQUE, k int DEFAULT 0 REFERENCES c (id) {}); CREATE VIEW p AS SELECT id AS k, k AS r FROM c WHERE _ts > '2001-01-01'",
        CHANGE, "INSERT INTO c (id, k) VALUES (0, NULL), (1, NULL), (9, 1)",
    ),
    shape(
        "CREATE TABLE p (k text COLLATE pg_catalog.\"C\" PRIMARY KEY); CREATE TABLE c (k text COLLATE \"C\" DEFAULT '0' REFERENCES p {})",
        TEXT_CHANGE, TEXT_ROWS,
    ),
    // With modifiers of the types.
    shape("CREATE TABLE p (k numeric(6, 2) PRIMARY KEY); CREATE TABLE c (k numeric(5, 1) DEFAULT 0 REFERENCES p {})", CHANGE, ROWS),
    shape("CREATE TABLE p (k numeric PRIMARY KEY); CREATE TABLE c (k numeric(5, 1) DEFAULT 0 REFERENCES p {})", CHANGE, ROWS),
    shape("CREATE TABLE p (k char(5) PRIMARY KEY); CREATE TABLE c (k char(4) DEFAULT '0' REFERENCES p {})", TEXT_CHANGE, TEXT_ROWS),
    shape(
        "CREATE DOMAIN d AS char(5); CREATE TABLE p (k d PRIMARY KEY); CREATE TABLE c (k varchar(6) DEFAULT '0' REFERENCES p {})",
        TEXT_CHANGE, TEXT_ROWS,
    ),
];

/// What is written after REFERENCES, and whether the parent is deleted.
const ACTIONS: [(&str, bool); 11] = [
    ("", true),
    ("ON DELETE RESTRICT", true),
    ("ON DELETE CASCADE", true),
    ("ON DELETE SET NULL", true),
    ("ON DELETE SET DEFAULT", true),
    ("", false),
    ("ON UPDATE RESTRICT", false),
    ("ON UPDATE CASCADE", false),
    ("ON UPDATE SET NULL", false),
    ("ON UPDATE SET DEFAULT", false),
    ("DEFERRABLE INITIALLY DEFERRED", true),
];

/// Creates the tables again, as the attacker; the referencing row is expired.
fn build(session: &mut Session, shape: &Shape, actions: &str) {
    let tables = shape.tables.replace("{}", actions);
    let (create, view) = tables
        .split_once("; CREATE VIEW")
        .map_or((&tables[..], None), |(create, view)| {
            (create, Some(format!("CREATE VIEW{view}")))
        });
    // A view over `c` needs the columns that TTL adds.
    let enable = "SELECT ttl.enable('c', 3600)";
    let script = match view {
        Some(view) if !create.contains("TABLE p") && !view.contains("CREATE TABLE") => {
            format!("{create}; {enable}; {view}")
        }
        _ => format!("{tables}; {enable}"),
    };
    session.run("DROP SCHEMA IF EXISTS s CASCADE; DROP SCHEMA IF EXISTS \"A b\" CASCADE; CREATE SCHEMA s; SET search_path = s");
    session.run(&script);
    session.run(shape.rows);
    let row = if shape.rows.contains("(9, 1)") {
        "id = 9"
    } else {
        "true"
    };
    session.run(&format!("SET ttl.preserve_ts = on; UPDATE c SET _ts = '2000-01-01' WHERE {row}; RESET ttl.preserve_ts"));
}

#[test]
fn actions_of_every_kind_remove_the_expired_row() {
    let database = hostile::armed_database(server());
    let mut session = database.connect();
    for shape in &SHAPES {
        for (actions, deletes) in ACTIONS {
            build(&mut session, shape, actions);
            let changed = shape.change;
            let statement = match changed.split_once(" WHERE ") {
                Some((_, condition)) if deletes => format!("DELETE FROM p WHERE {condition}"),
                _ => changed.to_owned(),
            };
            session.run(&statement);
            let left = session.value("SET ttl.show_expired = on; SELECT count(*) FROM c WHERE _ts < '2001-01-01'; RESET ttl.show_expired");
            assert_eq!(left, "0", "{statement}\n{actions}\n{}", shape.tables);
        }
    }
}

/// ON DELETE SET NULL of some of the columns.
#[test]
fn some_columns_are_set() {
    let database = hostile::armed_database(server());
    let mut session = database.connect();
    let shape = &SHAPES[8];
    for actions in ["ON DELETE SET NULL (x)", "ON DELETE SET DEFAULT (x)"] {
        build(&mut session, shape, actions);
        session.run("DELETE FROM p WHERE a = 1");
        let left = session
            .value("SET ttl.show_expired = on; SELECT count(*) FROM c; RESET ttl.show_expired");
        assert_eq!(left, "0", "{actions}");
    }
}

/// Collations in which different texts are equal; none without ICU.
#[test]
fn collations_that_are_not_deterministic() {
    let database = hostile::armed_database(server());
    let mut session = database.connect();
    let created = session.try_run(
        "CREATE COLLATION public.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    );
    if created.is_err() || server().major() >= 18 {
        println!("SKIPPED: no ICU, or no such foreign keys");
        return;
    }
    let shape = shape(
        "CREATE TABLE p (k text COLLATE public.ci PRIMARY KEY); CREATE TABLE c (k text COLLATE \"C\" DEFAULT '0' REFERENCES p {})",
        TEXT_CHANGE,
        TEXT_ROWS,
    );
    for actions in [
        "ON DELETE CASCADE",
        "ON DELETE SET NULL",
        "",
        "ON UPDATE CASCADE",
    ] {
        build(&mut session, &shape, actions);
        session.run(if actions.contains("UPDATE") {
            shape.change
        } else {
            "DELETE FROM p WHERE k = '1'"
        });
        let left = session
            .value("SET ttl.show_expired = on; SELECT count(*) FROM c; RESET ttl.show_expired");
        assert_eq!(left, "0", "{actions}");
    }
}

/// Foreign keys with PERIOD (18). Rows that replace the deleted one count, if they are live.
#[test]
fn periods() {
    if server().major() < 18 {
        println!("SKIPPED: since PostgreSQL 18");
        return;
    }
    let database = hostile::armed_database(server());
    let mut session = database.connect();
    session.run(
        "CREATE TABLE p (id int4range, v daterange, PRIMARY KEY (id, v WITHOUT OVERLAPS));
         CREATE TABLE c (id int4range, v daterange, FOREIGN KEY (id, PERIOD v) REFERENCES p (id, PERIOD v));
         SELECT ttl.enable('c', 3600);
         INSERT INTO p VALUES ('[1,2)', '[2020-01-01,2021-01-01)'), ('[1,2)', '[2021-01-01,2022-01-01)');
         INSERT INTO c VALUES ('[1,2)', '[2020-06-01,2021-06-01)');
         SET ttl.preserve_ts = on; UPDATE c SET _ts = '2000-01-01'; RESET ttl.preserve_ts;
         DELETE FROM p WHERE v @> '2020-06-01'::date",
    );
    let left = "SET ttl.show_expired = on; SELECT count(*) FROM c; RESET ttl.show_expired";
    assert_eq!(session.value(left), "0");
    // Validation, and the look-up for users who may not read both tables.
    session.run("SELECT ttl.enable('p', 3600); SET ttl.preserve_ts = on; UPDATE p SET _ts = '2000-01-01'; RESET ttl.preserve_ts;
                 CREATE TABLE d (id int4range, v daterange); INSERT INTO d VALUES ('[1,2)', '[2021-06-01,2021-07-01)');
                 ALTER TABLE d OWNER TO attacker; ALTER TABLE p OWNER TO victim; GRANT REFERENCES ON p TO attacker; SET ROLE attacker;
                 ALTER TABLE d ADD FOREIGN KEY (id, PERIOD v) REFERENCES p (id, PERIOD v); RESET ROLE");
}

/// Rows that refer to an expired row on disk are no violation.
#[test]
fn validation_sees_every_row() {
    let database = hostile::armed_database(server());
    let mut session = database.connect();
    for shape in &SHAPES {
        if shape.rows.contains("(9, 1)") || shape.tables.contains("VIEW") {
            continue;
        }
        build(&mut session, shape, "");
        // Now the referenced row is expired and the referencing one is live.
        session.run("SELECT ttl.enable('p', 3600); SET ttl.preserve_ts = on; UPDATE p SET _ts = '2000-01-01'; UPDATE c SET _ts = now(); RESET ttl.preserve_ts");
        let add = session.value("SET ttl.show_expired = on; SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass AND contype = 'f' AND conparentid = 0 LIMIT 1; RESET ttl.show_expired");
        let name = session.value("SELECT conname FROM pg_constraint WHERE conrelid = 'c'::regclass AND contype = 'f' AND conparentid = 0");
        session.run(&format!("ALTER TABLE c DROP CONSTRAINT {name}; ALTER TABLE c ADD {add}; ALTER TABLE c DROP CONSTRAINT {name}"));
        if !shape.tables.contains("PARTITION") {
            session.run(&format!("ALTER TABLE c ADD CONSTRAINT x {add} NOT VALID; ALTER TABLE c VALIDATE CONSTRAINT x"));
        }
        // If the user may not read the referenced table, PostgreSQL checks row by row.
        session.run(&format!(
            "ALTER TABLE c DROP CONSTRAINT IF EXISTS x; ALTER TABLE c OWNER TO attacker; ALTER TABLE p OWNER TO victim;
             GRANT USAGE ON SCHEMA s TO attacker, victim; GRANT REFERENCES ON p TO attacker; GRANT SELECT ON c TO attacker;
             SET ROLE attacker; ALTER TABLE c ADD {add}; RESET ROLE"
        ));
    }
}

#[test]
fn changed_types_and_partitions() {
    let database = hostile::armed_database(server());
    let mut session = database.connect();
    let expire = |table: &str| {
        format!(
            "SELECT ttl.enable('{table}', 3600); SET ttl.preserve_ts = on; UPDATE {table} SET _ts = '2000-01-01'; RESET ttl.preserve_ts;"
        )
    };
    // The foreign key of another table is created again, here on a type that several tables have.
    session.run(&format!(
        "CREATE TABLE p (k int PRIMARY KEY); CREATE TABLE c (k int REFERENCES p); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1); {}
         ALTER TABLE p ALTER k TYPE bigint; ALTER TABLE c ALTER k TYPE bigint; DROP TABLE c, p",
        expire("p")
    ));
    session.run("CREATE TYPE t AS (k int, _ts timestamptz, ttl int); CREATE TABLE p OF t (PRIMARY KEY (k)); CREATE TABLE c OF t (FOREIGN KEY (k) REFERENCES p);
         SET ttl.preserve_ts = on; INSERT INTO p (k) VALUES (1); INSERT INTO c (k) VALUES (1); SELECT ttl.enable('p', 3600);
         UPDATE p SET _ts = '2000-01-01'; RESET ttl.preserve_ts; ALTER TYPE t ALTER ATTRIBUTE k TYPE bigint CASCADE; DROP TABLE c, p");
    // ATTACH on the referencing side, two levels deep.
    session.run(&format!(
        "CREATE TABLE p (k int PRIMARY KEY); CREATE TABLE c (k int REFERENCES p) PARTITION BY RANGE (k);
         CREATE TABLE c1 PARTITION OF c FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (k);
         CREATE TABLE c11 (k int); INSERT INTO p VALUES (1); INSERT INTO c11 VALUES (1); {}
         ALTER TABLE c1 ATTACH PARTITION c11 FOR VALUES FROM (0) TO (10); DROP TABLE c, p",
        expire("p")
    ));
    // DETACH on the referenced side: an expired row refers to a row of the partition, and goes before.
    session.run(&format!(
        "CREATE TABLE p (k int PRIMARY KEY) PARTITION BY RANGE (k); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
         CREATE TABLE c (k int REFERENCES p); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1); {}",
        expire("c")
    ));
    session.run("ALTER TABLE p DETACH PARTITION p1");
}
