//! S9, C26: an archive is a table that its owner has chosen, and not a name: a user who has a table of that
//! name, or has had one of the two tables, gets no row, and no code of theirs is run.

use std::path::PathBuf;

use ttl_ext_e2e::{Database, PATIENCE, Session, hostile};

/// A table of the victim's and its archive, which takes its rows.
pub(crate) const TABLES: &str = "
    CREATE TABLE t (id integer PRIMARY KEY, what text); SELECT ttl.enable('t', 3600);
    CREATE TABLE gone (id integer, what text, _ts timestamptz, ttl integer);
    GRANT INSERT, SELECT ON t TO PUBLIC;
    SELECT ttl.archive_to('t', 'gone')";

/// A table of the attacker's that takes what it gets, and a trigger with what there is to take.
fn trap(table: &str) -> String {
    format!(
        "CREATE TABLE {table} (id integer, what text, _ts timestamptz, ttl integer);
         GRANT INSERT ON {table} TO PUBLIC;
         {}",
        trigger(table)
    )
}

pub(crate) fn trigger(table: &str) -> String {
    format!(
        "CREATE SEQUENCE IF NOT EXISTS sprung; GRANT ALL ON SEQUENCE sprung TO PUBLIC;
         CREATE OR REPLACE FUNCTION sprung() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER AS $$BEGIN
           PERFORM nextval('public.sprung');
           IF current_user <> 'attacker' THEN PERFORM public.a_su(); END IF;
           RETURN NEW; END$$;
         CREATE TRIGGER sprung BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION sprung()"
    )
}

/// What `ttl.problems` says of the archive.
pub(crate) fn problem(table: &str) -> String {
    format!(
        "SELECT COALESCE(string_agg(p, '; '), '') FROM unnest(ttl.problems('{table}')) AS p
          WHERE p LIKE '%archive%'"
    )
}

/// Waits until a worker has found why the rows stay, and the view says it, too.
#[track_caller]
pub(crate) fn wait_for_refusal(session: &mut Session, table: &str, reason: &str) {
    session.wait_until(
        &format!(
            "SELECT COALESCE(bool_or(last_error LIKE '%{reason}%'), false) FROM ttl.stats WHERE relation = '{table}'::regclass"
        ),
        "t",
        PATIENCE,
    );
    let told = session.value(&problem(table));
    assert!(told.contains("nothing is deleted"), "{told}");
}

/// Every statement that would have a row archived is refused, with the call to make.
#[track_caller]
fn assert_refused(session: &mut Session, table: &str, insert: &str) {
    for statement in [insert.to_owned(), format!("SELECT ttl.purge('{table}')")] {
        let error = session.error(&statement);
        assert_eq!(error.code().code(), "55000", "{statement}: {error:?}");
        let call = format!("SELECT ttl.archive_to('public.{table}', 'public.gone');");
        assert!(
            error.hint().is_some_and(|hint| hint.contains(&call)),
            "{statement}: {error:?}"
        );
    }
}

pub(crate) fn is_sprung(session: &mut Session) -> bool {
    session.value("SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'sprung' AND relkind = 'S')")
        == "t"
        && session.value("SELECT is_called FROM sprung") == "t"
}

fn dump(source: &Database<'_>, arguments: &[&str]) -> PathBuf {
    let file = source.server().dir().join("archives.dump");
    let mut dump = source.tool("pg_dump");
    source
        .server()
        .must_run(dump.arg("-Fc").args(arguments).arg("-f").arg(&file));
    file
}

/// A9: the label of a restored table names an archive that was not restored; the attacker makes a table of that
/// name. Not one row goes there, neither for a key nor by a worker.
#[test]
fn a9_a_restored_label_leads_to_nobodys_table() {
    let server = hostile::start(&[]);
    let source = hostile::armed_database(&server);
    let mut victim = hostile::owner(&source, "victim");
    victim.run(TABLES);
    victim.run("SELECT ttl.pause('t')");
    victim.insert_expired("t", 1, 50);
    let file = dump(&source, &["-t", "public.t"]);
    let target = hostile::armed_database(&server);
    let mut attacker = target.connect_as("attacker");
    attacker.run(&trap("gone"));
    let mut restore = target.tool("pg_restore");
    server.must_run(restore.arg("-d").arg(&target.name).arg(&file));
    let mut victim = hostile::owner(&target, "victim");
    let mut reader = target.connect_as("reader");
    // Before ttl.resume, by the key; then by the worker.
    let insert = "INSERT INTO t (id) VALUES (1)";
    let error = reader.error(insert);
    assert_eq!(error.code().code(), "55006", "{error:?}");
    assert_eq!(attacker.value("SELECT count(*) FROM gone"), "0");
    victim.run("SELECT ttl.resume('t')");
    wait_for_refusal(&mut victim, "t", "cannot archive rows");
    assert_refused(&mut victim, "t", insert);
    assert_eq!(attacker.value("SELECT count(*) FROM gone"), "0");
    assert!(!is_sprung(&mut attacker));
    assert_eq!(victim.count("t"), 50);
    // The call that the hint says is refused, also to a superuser.
    for session in [&mut victim, &mut target.connect()] {
        let error = session.error("SELECT ttl.archive_to('public.t', 'public.gone')");
        assert_eq!(error.code().code(), "42501", "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("OWNER TO")));
    }
    victim.run("CREATE TABLE mine (LIKE t); SELECT ttl.archive_to('t', 'mine')");
    victim.wait_for_none("t");
    assert_eq!(victim.count("mine"), 50);
    assert_eq!(victim.value(&problem("t")), "");
}

/// A10: a table changes hands, and its archive stays the former owner's, whose trigger would run as the new one.
#[test]
fn a10_an_archive_does_not_outlive_a_change_of_owner() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut attacker = hostile::owner(&database, "attacker");
    attacker.run(TABLES);
    attacker.run(&trigger("gone"));
    attacker.run("GRANT INSERT ON gone TO PUBLIC");
    let mut dba = database.disk();
    // Nothing is deleted before the new owner says so.
    dba.run("ALTER TABLE t OWNER TO postgres; SELECT ttl.resume('t')");
    dba.insert_expired("t", 1, 50);
    wait_for_refusal(&mut dba, "t", "cannot archive rows");
    assert_refused(
        &mut dba,
        "t",
        "SET ttl.show_expired = off; INSERT INTO t (id) VALUES (1)",
    );
    dba.run("SET ttl.show_expired = on");
    let told = dba.value(&problem("t"));
    assert!(
        told.contains("public.t belongs to postgres, public.gone belongs to attacker"),
        "{told}"
    );
    // With the archive, too: it is for the new owner to say so.
    let error = dba.error("SELECT ttl.archive_to('t', 'gone')");
    assert_eq!(error.code().code(), "42501", "{error:?}");
    dba.run("ALTER TABLE gone OWNER TO postgres");
    let error = dba.error("SET ttl.show_expired = off; INSERT INTO t (id) VALUES (1)");
    assert_eq!(error.code().code(), "55006", "{error:?}");
    dba.run("SET ttl.show_expired = on");
    assert!(!is_sprung(&mut dba));
    assert!(
        !hostile::attacker_is_superuser(&mut dba),
        "attacker has become a superuser"
    );
    assert_eq!(dba.count("t"), 50);
    dba.run(
        "DROP TRIGGER sprung ON gone; SELECT ttl.archive_to('t', 'gone'); SELECT ttl.resume('t')",
    );
    dba.wait_for_none("t");
    assert_eq!(dba.count("gone"), 50);
}

/// The archive changes hands, and comes back: rows wait meanwhile. REASSIGN OWNED gives both away.
#[test]
fn rows_wait_while_the_archive_is_somebody_elses() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut victim = hostile::owner(&database, "victim");
    victim.run(TABLES);
    let mut dba = database.disk();
    dba.run("ALTER TABLE gone OWNER TO attacker; GRANT INSERT ON gone TO PUBLIC");
    database.connect_as("attacker").run(&trigger("gone"));
    victim.insert_expired("t", 1, 20);
    wait_for_refusal(&mut victim, "t", "cannot archive rows");
    assert_refused(
        &mut victim,
        "t",
        "SET row_security = on; INSERT INTO t (id) VALUES (1)",
    );
    victim.run("SET row_security = off");
    assert_eq!(victim.count("t"), 20);
    assert!(!is_sprung(&mut dba));
    dba.run(
        "DROP TRIGGER sprung ON gone; ALTER TABLE gone OWNER TO victim; SELECT ttl.resume('t')",
    );
    victim.wait_for_none("t");
    assert_eq!(victim.count("gone"), 20);
    dba.run("REASSIGN OWNED BY victim TO reader");
    let mut reader = hostile::owner(&database, "reader");
    reader.insert_expired("t", 1, 20);
    wait_for_refusal(&mut reader, "t", "cannot archive rows");
    assert_eq!(reader.count("gone"), 20);
    reader.run("SELECT ttl.archive_to('t', 'gone'), ttl.resume('t')");
    reader.wait_for_none("t");
    assert_eq!(reader.count("gone"), 40);
}

/// A table that gets the name of a dropped archive, or of a renamed one, is another table.
#[test]
fn a_name_is_no_archive() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut victim = hostile::owner(&database, "victim");
    victim.run(TABLES);
    let mut attacker = database.connect_as("attacker");
    victim.run("ALTER TABLE gone RENAME TO moved");
    attacker.run(&trap("gone"));
    victim.insert_expired("t", 1, 20);
    victim.wait_for_none("t");
    assert_eq!(victim.count("moved"), 20);
    let told = victim.value(&problem("t"));
    assert!(told.contains("public.gone is now public.moved"), "{told}");
    victim.run("DROP TABLE moved");
    victim.insert_expired("t", 1, 20);
    wait_for_refusal(&mut victim, "t", "does not exist");
    let error = victim.error("SELECT ttl.purge('t')");
    assert_eq!(error.code().code(), "42P01", "{error:?}");
    attacker.run("DROP TABLE gone");
    victim.run("CREATE TABLE gone (LIKE t)");
    let error = victim.error("SELECT ttl.purge('t')");
    assert_eq!(error.code().code(), "42P01", "{error:?}");
    assert_eq!(victim.count("t"), 20);
    assert!(!is_sprung(&mut attacker));
    victim.run("SELECT ttl.archive_to('t', 'gone')");
    victim.wait_for_none("t");
    assert_eq!(victim.count("gone"), 20);
}

/// Table and archive restored together, and in a copied database: rows wait for the owner, who may say so before
/// or after `ttl.resume`.
#[test]
fn copies_wait_for_the_owner() {
    let server = hostile::start(&[]);
    let source = hostile::armed_database(&server);
    let mut victim = hostile::owner(&source, "victim");
    victim.run(TABLES);
    victim.run("SELECT ttl.pause('t')");
    victim.insert_expired("t", 1, 20);
    let file = dump(&source, &[]);
    let copies = |name: &str, by_restore: bool| {
        if by_restore {
            let target = server.plain_database(name);
            let mut restore = target.tool("pg_restore");
            server.must_run(restore.arg("-d").arg(name).arg(&file));
            target
        } else {
            let command = format!("CREATE DATABASE {name} TEMPLATE {}", source.name);
            server.connect("postgres", "postgres").run(&command);
            server.existing_database(name)
        }
    };
    drop(victim);
    for (name, by_restore, resume_first) in [
        ("restored1", true, true),
        ("restored2", true, false),
        ("copied1", false, true),
        ("copied2", false, false),
    ] {
        let target = copies(name, by_restore);
        let mut victim = hostile::owner(&target, "victim");
        let (resume, confirm) = (
            "SELECT ttl.resume('t')",
            "SELECT ttl.archive_to('t', 'gone')",
        );
        if resume_first {
            victim.run(resume);
            wait_for_refusal(&mut victim, "t", "cannot archive rows");
            assert_refused(
                &mut victim,
                "t",
                "SET row_security = on; INSERT INTO t (id) VALUES (1)",
            );
            victim.run("SET row_security = off");
            assert_eq!(victim.count("t"), 20, "{name}");
            victim.run(confirm);
        } else {
            victim.run(confirm);
            assert_eq!(victim.value(&problem("t")), "", "{name}");
            assert_eq!(victim.count("t"), 20, "{name}");
            victim.run(resume);
        }
        victim.wait_for_none("t");
        assert_eq!(victim.count("gone"), 20, "{name}");
        // The turn that has deleted them ends a little later.
        victim.wait_until(&problem("t"), "", PATIENCE);
    }
    // The original goes on without a call.
    let mut victim = hostile::owner(&source, "victim");
    victim.run("SELECT ttl.resume('t')");
    victim.wait_for_none("t");
    assert_eq!(victim.count("gone"), 20);
}
