//! C6: a new row cannot refer to an expired one, by whatever way PostgreSQL looks up the referenced
//! row: by a query, or, from 19 on, in the key's index (`docs/decisions/0079-foreign-keys-on-19.md`).

use ttl_ext_e2e::{Server, Session};

/// Of each table that is referred to, 1 and 100 to 299 are live, and 2 and 300 are expired.
const TABLES: &str = "
CREATE TABLE p (id integer PRIMARY KEY, a integer, b text, n numeric UNIQUE, UNIQUE (b, a));
CREATE TABLE parts (id integer PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (200);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (200) TO (1000);
CREATE TABLE dated (id integer PRIMARY KEY, at timestamptz);
CREATE INDEX dated_at_idx ON dated (at);
SELECT ttl.enable('p', 3600), ttl.enable('parts', 3600), ttl.expire_index('dated_at_idx', 0);
CREATE TABLE kid (PRIMARY KEY (id)) INHERITS (p);
CREATE FUNCTION live(i integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT i NOT IN (2, 300)';
CREATE FUNCTION moment(i integer) RETURNS timestamptz LANGUAGE sql AS
    $$ SELECT CASE WHEN live(i) THEN now() + interval '1 day' ELSE now() - interval '1 day' END $$;
SET ttl.preserve_ts = on;
INSERT INTO p SELECT i, i, 'b' || i, i, moment(i) FROM generate_series(1, 300) i;
INSERT INTO parts SELECT i, moment(i) FROM generate_series(1, 300) i;
INSERT INTO kid (id, _ts) SELECT i, moment(i) FROM generate_series(1, 300) i;
INSERT INTO dated SELECT i, moment(i) FROM generate_series(1, 300) i;
RESET ttl.preserve_ts";

/// How tables refer, by a column `r`.
const REFERRING: &[&str] = &[
    "r integer REFERENCES p",
    "r bigint REFERENCES p",
    "r integer REFERENCES p (n)",
    "r integer REFERENCES p DEFERRABLE INITIALLY DEFERRED",
    "r integer REFERENCES parts",
    "r integer REFERENCES parts_low",
    "r integer REFERENCES kid",
    "r integer REFERENCES dated ON UPDATE CASCADE",
    "r integer, s text GENERATED ALWAYS AS ('b' || r) STORED, FOREIGN KEY (r, s) REFERENCES p (a, b)",
    "r integer REFERENCES p MATCH FULL ON DELETE CASCADE",
];

/// Each writes the key `{}` into a row of table c, in which there is a row 1 that refers to 1.
const WRITES: &[&str] = &[
    "INSERT INTO c (id, r) VALUES (2, {})",
    "INSERT INTO c (id, r) VALUES (2, NULL), (3, 1), (4, {}), (5, 100)",
    "INSERT INTO c (id, r) SELECT 1000 + i, CASE i WHEN 150 THEN {} ELSE 100 + i % 100 END FROM generate_series(1, 200) i",
    "UPDATE c SET r = {} WHERE id = 1",
    "INSERT INTO c (id, r) VALUES (1, 100) ON CONFLICT (id) DO UPDATE SET r = {}",
    "MERGE INTO c USING (VALUES (1), (2)) AS v (id) ON c.id = v.id
        WHEN MATCHED THEN UPDATE SET r = 100 WHEN NOT MATCHED THEN INSERT (id, r) VALUES (v.id, {})",
    "WITH x AS (INSERT INTO c (id, r) VALUES (2, {}) RETURNING r) SELECT * FROM x",
    "DO $$ BEGIN BEGIN INSERT INTO c (id, r) VALUES (2, 1); RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN INSERT INTO c (id, r) VALUES (2, {}); END; END $$",
    "BEGIN; INSERT INTO c (id, r) VALUES (2, 1); SAVEPOINT s; UPDATE c SET r = {} WHERE id = 2; COMMIT",
];

fn build(session: &mut Session, column: &str, is_partitioned: bool) {
    session.run("ROLLBACK; DROP TABLE IF EXISTS c");
    session.run(&if is_partitioned {
        format!(
            "CREATE TABLE c (id integer PRIMARY KEY, {column}) PARTITION BY HASH (id);
             CREATE TABLE c_0 PARTITION OF c FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE c_1 PARTITION OF c FOR VALUES WITH (MODULUS 2, REMAINDER 1)"
        )
    } else {
        format!("CREATE TABLE c (id integer PRIMARY KEY, {column})")
    });
}

fn refill(session: &mut Session) {
    session.run("ROLLBACK; DELETE FROM c; INSERT INTO c (id, r) VALUES (1, 1)");
}

/// What a referring row refers to, on disk, is live.
#[track_caller]
fn check(session: &mut Session, what: &str) {
    session.run("ROLLBACK");
    let bad = session.value("SELECT count(*) FROM c WHERE NOT live(r::integer)");
    assert_eq!(bad, "0", "{what}");
}

#[test]
fn no_row_refers_to_an_expired_one() {
    let server = Server::start(&[("max_prepared_transactions", "2")]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(TABLES);
    for &column in REFERRING {
        for is_partitioned in [false, true] {
            build(&mut session, column, is_partitioned);
            for write in WRITES {
                let what = format!("{column}: {write}");
                refill(&mut session);
                let error = session.error(&write.replace("{}", "2"));
                assert_eq!(error.code().code(), "23503", "{what}: {error:?}");
                let constraint = error.constraint().unwrap_or_default();
                assert!(constraint.starts_with("c_"), "{what}: {error:?}");
                check(&mut session, &what);
                refill(&mut session);
                session.run(&write.replace("{}", "1"));
                refill(&mut session);
                let error = session.error(&write.replace("{}", "300"));
                assert_eq!(error.code().code(), "23503", "{what}: {error:?}");
            }
            refill(&mut session);
            // What is deferred fails after COPY has ended.
            match session.copy_in("COPY c (id, r) FROM STDIN", "2\t1\n3\t2\n") {
                Ok(_) => assert!(column.contains("DEFERRED"), "{column}: COPY"),
                Err(error) => {
                    let code = error.code().map(|code| code.code());
                    assert_eq!(code, Some("23503"), "{column}: COPY");
                }
            }
            check(&mut session, column);
        }
    }
}

/// In what else a look-up can be: deferred to the end of a transaction that is prepared, in a
/// cascade, as a table's own key, where triggers fire for replicated rows.
#[test]
fn wherever_a_reference_is_checked() {
    let server = Server::start(&[("max_prepared_transactions", "2")]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(TABLES);
    session.run(
        "CREATE TABLE late (r integer REFERENCES p DEFERRABLE INITIALLY DEFERRED);
         CREATE TABLE middle (id integer PRIMARY KEY);
         CREATE TABLE below (r integer REFERENCES middle ON UPDATE CASCADE REFERENCES p);
         CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree, at timestamptz);
         CREATE INDEX tree_at_idx ON tree (at); SELECT ttl.expire_index('tree_at_idx', 0);
         CREATE TABLE applied (r integer REFERENCES p);
         INSERT INTO middle VALUES (1); INSERT INTO below VALUES (1);
         INSERT INTO tree VALUES (1, NULL, now() + interval '1 hour'), (2, 1, now() - interval '1 hour')",
    );
    session.run(
        "DO $$ DECLARE t name; BEGIN FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'applied'::regclass
            LOOP EXECUTE format('ALTER TABLE applied ENABLE ALWAYS TRIGGER %I', t); END LOOP; END $$",
    );
    for statement in [
        "BEGIN; INSERT INTO late VALUES (2); PREPARE TRANSACTION 'late'",
        "BEGIN; INSERT INTO late VALUES (2); SET CONSTRAINTS ALL IMMEDIATE",
        "BEGIN; INSERT INTO late VALUES (1); SAVEPOINT s; INSERT INTO late VALUES (2); RELEASE s; COMMIT",
        "UPDATE middle SET id = 2",
        "INSERT INTO tree VALUES (3, 2, NULL)",
        "INSERT INTO tree VALUES (4, 4, now() + interval '1 hour'), (3, 2, NULL)",
        "BEGIN; SET LOCAL session_replication_role = replica; INSERT INTO applied VALUES (2)",
    ] {
        let error = session.error(statement);
        assert_eq!(error.code().code(), "23503", "{statement}: {error:?}");
        session.run("ROLLBACK");
        session.run(
            &statement
                .replace("(2)", "(1)")
                .replace("id = 2", "id = 1")
                .replace(", 2, ", ", 1, "),
        );
        session.run("ROLLBACK; DELETE FROM tree WHERE id > 2");
        let prepared = session.column("SELECT gid FROM pg_prepared_xacts");
        for gid in prepared {
            session.run(&format!("ROLLBACK PREPARED '{gid}'"));
        }
    }
    // Who sees what is on disk may refer to it, as a restore must.
    for physical in ["row_security = off", "ttl.show_expired = on"] {
        session.run(&format!(
            "BEGIN; SET LOCAL {physical}; INSERT INTO applied VALUES (2); ROLLBACK"
        ));
    }
    // A row that the transaction has locked while it was live stays (C15); one of its own, too.
    session.run_preserving("UPDATE p SET _ts = now() - interval '3598 seconds' WHERE id = 1");
    session.run(
        "BEGIN; SELECT 1 FROM p WHERE id = 1 FOR UPDATE; SELECT pg_sleep(3);
                 INSERT INTO applied VALUES (1); ROLLBACK",
    );
    let error = session.error("INSERT INTO applied VALUES (1)");
    assert_eq!(error.code().code(), "23503", "{error:?}");
}

/// A cast of the key runs code of users while the look-up runs: which looks up itself, makes the
/// table's description invalid, and fails.
#[test]
fn casts_that_run_in_a_look_up() {
    let server = Server::start(&[]);
    if server.major() < 19 {
        // There each cast that makes the query's plan invalid has it planned again: minutes.
        println!("SKIPPED: since PostgreSQL 19");
        return;
    }
    let database = server.database("app");
    let mut session = database.connect();
    session.run(TABLES);
    session.run(
        "CREATE TYPE key AS (k integer);
         CREATE TABLE other (r integer REFERENCES p);
         CREATE TABLE log (what text);
         CREATE FUNCTION to_integer(key) RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE size bigint;
         BEGIN
             IF current_setting('app.mode', true) = 'nested' THEN
                 INSERT INTO other VALUES (1);
                 BEGIN INSERT INTO other VALUES (2); RAISE 'accepted';
                 EXCEPTION WHEN foreign_key_violation THEN NULL; END;
             ELSIF current_setting('app.mode', true) = 'invalid' THEN
                 GRANT SELECT ON p TO PUBLIC;
                 PERFORM FROM p WHERE id = 1;
             ELSIF current_setting('app.mode', true) = 'undone' THEN
                 BEGIN GRANT SELECT ON p TO PUBLIC; RAISE division_by_zero;
                 EXCEPTION WHEN division_by_zero THEN NULL; END;
                 PERFORM FROM p WHERE id = 1;
             ELSIF current_setting('app.mode', true) = 'unseen' THEN
                 BEGIN GRANT SELECT ON p TO PUBLIC; RAISE division_by_zero;
                 EXCEPTION WHEN division_by_zero THEN NULL; END;
                 size := pg_relation_size('p');
             ELSIF current_setting('app.mode', true) = 'fails' THEN
                 RAISE division_by_zero;
             END IF;
             RETURN ($1).k;
         END $$;
         CREATE CAST (key AS integer) WITH FUNCTION to_integer(key) AS IMPLICIT;
         CREATE TABLE c (id integer, r key REFERENCES p)",
    );
    for cast in ["plain", "nested", "invalid", "undone"] {
        session.run(&format!("SET app.mode = '{cast}'"));
        for rows in [
            "SELECT 1, ROW(2)::key",
            "SELECT 1, ROW(1)::key UNION ALL SELECT 2, ROW(2)::key",
            "SELECT i, ROW(CASE i WHEN 90 THEN 300 ELSE 100 END)::key FROM generate_series(1, 100) i",
        ] {
            let error = session.error(&format!("INSERT INTO c {rows}"));
            assert_eq!(error.code().code(), "23503", "{cast}: {rows}: {error:?}");
        }
        session.run("INSERT INTO c SELECT i, ROW(i)::key FROM generate_series(100, 299) i");
    }
    // Here the look-up goes on in a way that no hook sees: then nothing is committed.
    session.run("SET app.mode = 'unseen'");
    let error = session.error("INSERT INTO c VALUES (1, ROW(1)), (2, ROW(2))");
    let expected = if server.major() < 19 {
        "23503"
    } else {
        "0A000"
    };
    assert_eq!(error.code().code(), expected, "{error:?}");
    session.run("SET app.mode = 'fails'");
    let error = session.error("INSERT INTO c VALUES (1, ROW(1))");
    assert_eq!(error.code().code(), "22012");
    session.run(
        "DO $$ BEGIN INSERT INTO c VALUES (1, ROW(1)); EXCEPTION WHEN division_by_zero THEN NULL; END $$;
         SET app.mode = 'plain'; INSERT INTO c VALUES (1, ROW(1))",
    );
    let error = session.error("INSERT INTO c VALUES (1, ROW(2))");
    assert_eq!(error.code().code(), "23503");
}

/// While the look-up waits for a row, another session makes it expire, or live again (C14).
#[test]
fn rows_that_change_while_they_are_waited_for() {
    let server = Server::start(&[]);
    let database = server.database("app");
    let (mut writer, mut session) = (database.connect(), database.connect());
    // A transaction keeps what it has once seen of other sessions.
    let mut watcher = database.connect();
    session.run(TABLES);
    session.run("CREATE TABLE c (r integer REFERENCES p)");
    for (to, refused) in [("now()", false), ("now() - interval '1 day'", true)] {
        session.run("DELETE FROM c");
        writer.run("BEGIN; SET LOCAL ttl.preserve_ts = on");
        // FOR KEY SHARE waits for an UPDATE of a key only.
        writer.run(&format!(
            "UPDATE p SET id = -1, _ts = {to} WHERE id = 1; UPDATE p SET id = 1 WHERE id = -1"
        ));
        let waiting = std::thread::scope(|scope| {
            let child = scope.spawn(|| session.try_run("INSERT INTO c VALUES (1)").map(|_| ()));
            ttl_ext_e2e::until("the look-up waits", 60, || {
                let waiting = watcher.value(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO c %'",
                );
                (waiting == "1").then_some(())
            });
            writer.run("COMMIT");
            child.join().expect("the thread ends")
        });
        match waiting {
            Err(error) if refused => assert_eq!(error.code().map(|c| c.code()), Some("23503")),
            Ok(()) if !refused => {}
            other => panic!("{to}: {other:?}"),
        }
    }
}

/// Sessions add references while others change the table that is referred to, and what is known of
/// it. `TTL_STATEMENTS` is their number.
#[test]
fn while_tables_change() {
    let count = std::env::var("TTL_STATEMENTS").map_or(6_000, |n| n.parse().expect("a number"));
    let server = Server::start(&[]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(TABLES);
    session.run("CREATE TABLE c (id bigserial PRIMARY KEY, r integer REFERENCES p, d integer REFERENCES dated)");
    let left = std::sync::atomic::AtomicI64::new(count);
    let next = || left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    let write = || {
        let mut session = database.connect();
        let (mut accepted, mut refused) = (0, 0);
        loop {
            let n = next();
            if n <= 0 {
                return (accepted, refused);
            }
            let key = [1, 2, 100 + n % 100, 300][(n / 7 % 4) as usize];
            let (column, other) = [("r", "d"), ("d", "r")][(n % 2) as usize];
            let statement = match n % 3 {
                0 => format!("INSERT INTO c ({column}, {other}) VALUES ({key}, 1)"),
                1 => format!(
                    "INSERT INTO c ({column}) SELECT CASE i WHEN 70 THEN {key} ELSE 1 END FROM generate_series(1, 100) i"
                ),
                _ => format!(
                    "BEGIN; INSERT INTO c ({column}) VALUES (1); UPDATE c SET {column} = {key} WHERE id = (SELECT currval('c_id_seq')); COMMIT"
                ),
            };
            match session.try_run(&statement) {
                Ok(_) => {
                    assert!(key != 2 && key != 300, "accepted: {statement}");
                    accepted += 1;
                }
                Err(error) => {
                    let code = error.code().map_or("", |code| code.code());
                    assert!(["23503", "40P01"].contains(&code), "{statement}: {error:?}");
                    assert!(
                        code == "40P01" || key == 2 || key == 300,
                        "refused: {statement}: {error:?}"
                    );
                    refused += 1;
                }
            }
            session.run("ROLLBACK");
        }
    };
    let change = || {
        let mut session = database.connect();
        let mut changes = 0;
        while left.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            for statement in [
                "ALTER TABLE p ADD COLUMN extra integer",
                "ALTER TABLE p DROP COLUMN extra",
                "SELECT ttl.set_default('p', 3601)",
                "GRANT SELECT ON p, dated TO PUBLIC",
                "ANALYZE p, dated",
                "CREATE INDEX extra ON dated (id) WHERE id > 5",
                "DROP INDEX extra",
                "SELECT ttl.set_default('p', 3600)",
                "BEGIN; ALTER TABLE dated ADD COLUMN extra text DEFAULT 'x'; ROLLBACK",
                "VACUUM p",
            ] {
                changes += u64::from(session.try_run(statement).is_ok());
                session.run("ROLLBACK");
            }
        }
        changes
    };
    let (written, changes) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|_| scope.spawn(write)).collect();
        let changes = scope.spawn(change);
        let written = writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer ends"));
        let written = written.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (written, changes.join().expect("the changes end"))
    });
    println!("{written:?} accepted and refused, under {changes} changes");
    assert!(written.0 > count / 4 && written.1 > count / 4 && changes > 10);
    let bad = session.value("SELECT count(*) FROM c WHERE NOT live(r) OR NOT live(d)");
    assert_eq!(bad, "0");
}
