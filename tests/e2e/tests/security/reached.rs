//! S1: whose code a deletion reaches by foreign keys. A stranger's does not run, as no role and in
//! no session; what it stands in the way of stays, and it is named. A table in which no row refers
//! to the deleted one stops nothing.

use std::sync::OnceLock;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{Database, PATIENCE, Server, Session, SqlState};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

/// The boss's `par` with rows 1 and 2, and the attacker's `ch`, whose row 1 refers to row 1; REFERENCES
/// is all that the attacker has. Both tables wait.
fn family(database: &Database<'_>, actions: &str) -> (Session, Session) {
    let mut boss = database.connect();
    boss.run(
        "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 3600), ttl.pause('par');
         INSERT INTO par VALUES (1), (2); GRANT REFERENCES ON par TO attacker",
    );
    let mut attacker = owner(database, "attacker");
    attacker.run(&format!(
        "CREATE TABLE ran (what text); GRANT ALL ON ran TO PUBLIC;
         CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO public.ran VALUES (current_user || ' in a session of ' || session_user);
           PERFORM set_config('search_path', 'evil', false), public.a_su(), public.a_vol();
           RETURN coalesce(OLD, NEW); END$$;
         CREATE TABLE ch (id int PRIMARY KEY, pid int REFERENCES par {actions});
         SELECT ttl.enable('ch', 3600), ttl.pause('ch'); INSERT INTO ch VALUES (1, 1)"
    ));
    (boss, attacker)
}

/// For the next [`family`] in this database.
fn part(boss: &mut Session) {
    boss.run("DROP TABLE ch, par, ran CASCADE; DROP FUNCTION trap() CASCADE");
}

/// Rows with these keys have expired.
fn expire(session: &mut Session, table: &str, condition: &str) {
    session.run(&format!(
        "BEGIN; SET LOCAL ttl.preserve_ts = on; UPDATE {table} SET _ts = '2000-01-01' WHERE {condition}; COMMIT"
    ));
}

const DEFERRED: &str = "CREATE CONSTRAINT TRIGGER evil AFTER DELETE ON ch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trap()";
const BEFORE: &str = "CREATE TRIGGER evil BEFORE DELETE ON ch FOR EACH ROW EXECUTE FUNCTION trap()";
const STATEMENT: &str =
    "CREATE TRIGGER evil AFTER DELETE ON ch FOR EACH STATEMENT EXECUTE FUNCTION trap()";

#[track_caller]
fn assert_nothing_ran(boss: &mut Session, what: &str) {
    assert!(!hostile::attacker_is_superuser(boss), "{what}");
    assert_eq!(boss.value("SELECT count(*) FROM ran"), "0", "{what}");
    assert_eq!(boss.value("SELECT count(*) FROM pg_cursors"), "0", "{what}");
    assert_ne!(boss.value("SHOW search_path"), "evil", "{what}");
}

/// The trap is further away: behind one or two tables of the attacker's without any code, which a user's
/// DELETE of a live row reaches by expired rows.
#[test]
fn a_trap_behind_tables_without_code_runs_nothing() {
    let database = hostile::armed_database(server());
    let actions = ["", "ON DELETE CASCADE", "ON DELETE SET NULL"];
    let traps = [
        "CREATE TRIGGER evil AFTER DELETE OR UPDATE ON far FOR EACH ROW EXECUTE FUNCTION trap()",
        "CREATE CONSTRAINT TRIGGER evil AFTER DELETE OR UPDATE ON far DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trap()",
        "CREATE TABLE a (LIKE far); CREATE TRIGGER evil AFTER INSERT ON a FOR EACH ROW EXECUTE FUNCTION trap();
         SELECT ttl.archive_to('far', 'a')",
        "CREATE FUNCTION spy(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO public.ran VALUES (current_user || ' in a session of ' || session_user); RETURN $1; END$$;
         ALTER TABLE far ADD UNIQUE (id); CREATE INDEX ON far ((1)) WHERE id = 7",
    ];
    for between in [false, true] {
        for action in actions {
            for trap in traps {
                let what = format!("{between}, {action}, {trap}");
                let (mut boss, mut attacker) = family(&database, "");
                let near = if between {
                    attacker.run(&format!(
                        "CREATE TABLE mid (id int PRIMARY KEY, pid int REFERENCES ch {action});
                         SELECT ttl.enable('mid', 3600), ttl.pause('mid'); INSERT INTO mid VALUES (1, 1)"
                    ));
                    expire(&mut attacker, "mid", "true");
                    "mid"
                } else {
                    "ch"
                };
                attacker.run(&format!(
                    "CREATE TABLE far (id int, pid int REFERENCES {near} {action});
                     SELECT ttl.enable('far', 3600), ttl.pause('far'); INSERT INTO far VALUES (1, 1)"
                ));
                expire(&mut attacker, "far", "true");
                expire(&mut attacker, "ch", "true");
                attacker.run(trap);
                let done = boss.try_run("DELETE FROM par WHERE id = 1");
                if let Err(error) = &done {
                    let error = error.as_db_error().expect("an error of the server");
                    assert_eq!(
                        error.code(),
                        &SqlState::INSUFFICIENT_PRIVILEGE,
                        "{what}: {error}"
                    );
                }
                assert_nothing_ran(&mut boss, &what);
                boss.run(
                    "DROP TABLE IF EXISTS far, mid, a CASCADE; DROP FUNCTION IF EXISTS spy(int)",
                );
                part(&mut boss);
            }
        }
    }
}

/// The trap is set while the deletion waits for a row of the attacker's table, which had no code when the
/// deletion came to it.
#[test]
fn a_trap_that_is_set_meanwhile_runs_nothing() {
    let database = hostile::armed_database(server());
    for action in ["", "ON DELETE CASCADE"] {
        let (mut boss, mut attacker) = family(&database, "");
        attacker.run(&format!(
            "CREATE TABLE far (id int, pid int REFERENCES ch {action});
             SELECT ttl.enable('far', 3600), ttl.pause('far'); INSERT INTO far VALUES (1, 1)"
        ));
        expire(&mut attacker, "far", "true");
        expire(&mut attacker, "ch", "true");
        let mut holder = owner(&database, "attacker");
        holder.run("SET row_security = off; BEGIN");
        assert_eq!(
            holder.column("SELECT id FROM ch FOR KEY SHARE"),
            ["1"],
            "the row is locked"
        );
        let pid = boss.value("SELECT pg_backend_pid()");
        std::thread::scope(|scope| {
            let deletion = scope.spawn(|| boss.try_run("DELETE FROM par WHERE id = 1").map(drop));
            database.connect().wait_until(
                &format!("SELECT wait_event_type FROM pg_stat_activity WHERE pid = {pid}"),
                "Lock",
                PATIENCE,
            );
            holder.run(
                "CREATE TRIGGER evil AFTER DELETE ON far FOR EACH ROW EXECUTE FUNCTION trap(); COMMIT",
            );
            if let Err(error) = deletion.join().unwrap() {
                let code = error.code().cloned();
                assert_eq!(code, Some(SqlState::INSUFFICIENT_PRIVILEGE), "{error}");
            }
        });
        assert_nothing_ran(&mut boss, action);
        boss.run("DROP TABLE far");
        part(&mut boss);
    }
}

/// A referring table with TTL was deleted from by its owner's triggers as the referenced table's
/// owner, in the worker.
#[test]
fn a3_an_expired_referring_row_of_a_stranger_runs_nothing_in_the_worker() {
    let database = hostile::armed_database(server());
    for actions in [
        "ON DELETE RESTRICT",
        "ON DELETE NO ACTION",
        "ON DELETE SET NULL",
        "ON DELETE CASCADE",
    ] {
        for trap in [DEFERRED, BEFORE, STATEMENT] {
            let what = format!("{actions}, {trap}");
            let (mut boss, mut attacker) = family(&database, actions);
            attacker.run(trap);
            expire(&mut attacker, "ch", "true");
            expire(&mut boss, "par", "id = 1");
            boss.run("SELECT ttl.resume('par')");
            boss.wait_until(
                "SELECT last_error LIKE '%trigger evil of table public.ch, which belongs to attacker%'
                   FROM ttl.stats WHERE relation = 'par'::regclass",
                "t",
                PATIENCE,
            );
            assert_nothing_ran(&mut boss, &what);
            boss.run("SET ttl.show_expired = on");
            assert_eq!(boss.value("SELECT count(*) FROM par"), "2", "{what}");
            boss.run("RESET ttl.show_expired");
            // Without the trigger all goes.
            attacker.run("DROP TRIGGER evil ON ch");
            boss.run("SELECT ttl.purge('par')");
            boss.run("SET ttl.show_expired = on");
            assert_eq!(boss.value("SELECT count(*) FROM par"), "1", "{what}");
            let left = if actions.contains("SET NULL") {
                "SELECT count(pid) FROM ch"
            } else {
                "SELECT count(*) FROM ch"
            };
            assert_eq!(boss.value(left), "0", "{what}");
            part(&mut boss);
        }
    }
}

/// The same in the session of who needs the key, or deletes.
#[test]
fn a3_an_expired_referring_row_of_a_stranger_runs_nothing_in_a_session() {
    let database = hostile::armed_database(server());
    for actions in [
        "ON DELETE RESTRICT",
        "ON DELETE NO ACTION",
        "ON DELETE SET NULL",
        "ON DELETE CASCADE",
    ] {
        for trap in [DEFERRED, BEFORE, STATEMENT] {
            for statement in [
                "INSERT INTO par VALUES (1)",
                "INSERT INTO par VALUES (1) ON CONFLICT (id) DO NOTHING",
                "SELECT ttl.purge('par')",
            ] {
                let what = format!("{actions}, {trap}, {statement}");
                let (mut boss, mut attacker) = family(&database, actions);
                attacker.run(trap);
                expire(&mut attacker, "ch", "true");
                expire(&mut boss, "par", "id = 1");
                let done = boss.try_run(statement);
                // The new row takes the place of the old one.
                if actions.contains("NO ACTION") && statement.starts_with("INSERT") {
                    done.expect(&what);
                } else {
                    let error = done.expect_err(&what);
                    let error = error.as_db_error().expect("an error of the server").clone();
                    assert_eq!(
                        error.code(),
                        &SqlState::INSUFFICIENT_PRIVILEGE,
                        "{what}: {error}"
                    );
                    assert!(
                        error
                            .message()
                            .contains("table public.ch, which belongs to attacker"),
                        "{what}: {error}"
                    );
                    assert!(
                        error.detail().is_some() && error.hint().is_some(),
                        "{what}: {error}"
                    );
                }
                assert_nothing_ran(&mut boss, &what);
                part(&mut boss);
            }
        }
    }
    // A user's own DELETE of a live row; that of an expired one deletes nothing.
    for trap in [DEFERRED, BEFORE, STATEMENT] {
        let (mut boss, mut attacker) = family(&database, "");
        attacker.run(trap);
        expire(&mut attacker, "ch", "true");
        let error = boss.error("DELETE FROM par WHERE id = 1");
        assert_eq!(
            error.code(),
            &SqlState::INSUFFICIENT_PRIVILEGE,
            "{trap}: {error}"
        );
        assert_nothing_ran(&mut boss, trap);
        part(&mut boss);
    }
}

/// An empty referring table with a trigger stopped deletion, and all else that deletes.
#[test]
fn a13_a_table_without_such_rows_stops_nothing() {
    let database = hostile::armed_database(server());
    for actions in [
        "ON DELETE RESTRICT",
        "",
        "ON DELETE SET NULL",
        "ON DELETE CASCADE",
    ] {
        for trap in [DEFERRED, BEFORE, STATEMENT] {
            for rows in [
                "DELETE FROM ch",
                "UPDATE ch SET pid = 2",
                "UPDATE ch SET pid = NULL",
            ] {
                let what = format!("{actions}, {trap}, {rows}");
                let (mut boss, mut attacker) = family(&database, actions);
                attacker.run(&format!("{rows}; {trap}"));
                expire(&mut boss, "par", "id = 1");
                boss.run("INSERT INTO par VALUES (1)");
                expire(&mut boss, "par", "id = 1");
                assert_eq!(boss.value("SELECT ttl.purge('par')"), "1", "{what}");
                boss.run("INSERT INTO par VALUES (1)");
                expire(&mut boss, "par", "id = 1");
                boss.run("SET ttl.show_expired = on; SELECT ttl.resume('par')");
                boss.wait_until("SELECT count(*) FROM par", "1", PATIENCE);
                boss.run("RESET ttl.show_expired; SELECT ttl.disable('par')");
                assert_nothing_ran(&mut boss, &what);
                part(&mut boss);
            }
        }
    }
}

/// Who may only INSERT read the expired row by a DELETE trigger, which wrote to a temporary table of
/// that session, or to one in the session's `search_path`. Now the row is left to the owner's worker.
#[test]
fn a11_a_trigger_finds_what_its_owner_finds() {
    for exists in [true, false] {
        for path in [false, true] {
            let what = format!("audit table: {exists}, search_path: {path}");
            let database = hostile::armed_database(server());
            let mut victim = owner(&database, "victim");
            victim.run(
                "CREATE TABLE tok (id int PRIMARY KEY, secret text); SELECT ttl.enable('tok', 3600);
                 GRANT INSERT ON tok TO reader; INSERT INTO tok VALUES (1, 'hidden');
                 CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
                   INSERT INTO tok_audit VALUES (OLD.id, OLD.secret); RETURN OLD; END$$;
                 CREATE TRIGGER audit BEFORE DELETE ON tok FOR EACH ROW EXECUTE FUNCTION audit()",
            );
            expire(&mut victim, "tok", "true");
            if exists {
                victim.run("CREATE TABLE tok_audit (id int, secret text)");
            }
            let mut boss = database.connect();
            boss.run("CREATE SCHEMA mine AUTHORIZATION reader");
            let mut reader = database.connect_as("reader");
            reader.run(
                "CREATE TABLE mine.tok_audit (id int, secret text); GRANT ALL ON mine.tok_audit TO PUBLIC;
                 GRANT USAGE ON SCHEMA mine TO PUBLIC",
            );
            if path {
                reader.run("SET search_path = mine, public");
            } else {
                reader.run("CREATE TEMP TABLE tok_audit (id int, secret text); GRANT ALL ON pg_temp.tok_audit TO PUBLIC");
            }
            let inserted = reader.try_run("INSERT INTO public.tok VALUES (1, 'new')");
            assert_eq!(inserted.is_ok(), exists, "{what}: {:?}", inserted.err());
            assert_eq!(
                reader.value("SELECT count(*) FROM mine.tok_audit"),
                "0",
                "{what}"
            );
            assert_eq!(
                reader.value("SELECT count(*) FROM tok_audit"),
                "0",
                "{what}"
            );
            if exists {
                assert_eq!(
                    victim.value("SELECT secret FROM tok_audit"),
                    "hidden",
                    "{what}"
                );
            }
        }
    }
}
