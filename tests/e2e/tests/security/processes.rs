//! S1: a process that has run code of one owner runs none of another's, so that nothing that the
//! code leaves in it (a connection of dblink, the state of a random number generator, memory of a
//! library) meets anybody else. What DISCARD ALL removes is tested in `identity/leftovers.rs`.

use ttl_ext_e2e::{Database, Session, hostile, lacks_library};

/// Rows of several tables expire in turn, several times, so that one process would come to all.
const ROUNDS: i32 = 4;

/// A table of the session's user, `{schema}.t`, with this trigger.
fn table(session: &mut Session, schema: &str, trigger: &str) {
    session.run(&format!(
        "CREATE TABLE {schema}.t (id integer PRIMARY KEY);
         SELECT ttl.enable('{schema}.t', 3600);
         {trigger}
         CREATE TRIGGER trap BEFORE DELETE ON {schema}.t FOR EACH ROW EXECUTE FUNCTION {schema}.trap()"
    ));
}

/// Rows of both tables are deleted, one table after the other.
fn take_turns(first: &mut Session, second: &mut Session) {
    for round in 1..=ROUNDS {
        for (session, table) in [(&mut *first, "good.t"), (&mut *second, "evil.t")] {
            session.insert_expired(table, round, round);
            session.wait_for_none(table);
        }
    }
}

/// Schemas `good` and `evil` of a superuser, or of the victim, and the attacker.
fn scene(database: &Database<'_>, owner: &str) -> (Session, Session) {
    database.connect().run(&format!(
        "CREATE SCHEMA good AUTHORIZATION {owner}; CREATE SCHEMA evil AUTHORIZATION attacker"
    ));
    (
        hostile::owner(database, owner),
        hostile::owner(database, "attacker"),
    )
}

/// Each run of a trigger notes in which process it is.
const NOTE: &str = "
    CREATE TABLE {s}.ran (pid int, started timestamptz, who text);
    CREATE FUNCTION {s}.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      INSERT INTO {s}.ran SELECT pid, backend_start, current_user
        FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid());
      RETURN OLD; END$$;";

/// The class of A4: whatever it is that a process keeps, it keeps it for one owner.
#[test]
fn a4_no_process_serves_two_owners() {
    let server = hostile::start(&[("ttl.max_workers", "1")]);
    let database = hostile::armed_database(&server);
    let (mut victim, mut attacker) = scene(&database, "victim");
    table(&mut victim, "good", &NOTE.replace("{s}", "good"));
    table(&mut attacker, "evil", &NOTE.replace("{s}", "evil"));
    take_turns(&mut victim, &mut attacker);
    let mut boss = database.connect();
    let both = "SELECT count(*) FROM (SELECT pid, started FROM good.ran INTERSECT SELECT pid, started FROM evil.ran) AS p";
    assert_eq!(boss.value(both), "0", "a process has served two owners");
    let ran = "SELECT (SELECT count(*) FROM good.ran WHERE who = 'victim'), (SELECT count(*) FROM evil.ran WHERE who = 'attacker')";
    assert_eq!(
        boss.rows(ran),
        [[ROUNDS.to_string(), ROUNDS.to_string()]],
        "as their owners, once for each row"
    );
}

/// A superuser's trigger writes an audit by a named connection; the attacker's used it.
#[test]
fn a4_a_connection_of_dblink_is_its_owners() {
    if lacks_library("dblink", "a4_a_connection_of_dblink_is_its_owners") {
        return;
    }
    let server = hostile::start(&[("ttl.max_workers", "1")]);
    let database = hostile::armed_database(&server);
    let (mut boss, mut attacker) = scene(&database, "postgres");
    boss.run("CREATE EXTENSION dblink; CREATE TABLE good.audit (id int)");
    let conninfo = server.conninfo(&database.name);
    table(
        &mut boss,
        "good",
        &format!(
            "CREATE FUNCTION good.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
               IF NOT coalesce('audit' = ANY (public.dblink_get_connections()), false) THEN
                 PERFORM public.dblink_connect('audit', '{conninfo}'); END IF;
               PERFORM public.dblink_exec('audit', format('INSERT INTO good.audit VALUES (%s)', OLD.id));
               RETURN OLD; END$$;"
        ),
    );
    table(
        &mut attacker,
        "evil",
        "CREATE TABLE evil.found (name text);
         CREATE FUNCTION evil.trap() RETURNS trigger LANGUAGE plpgsql AS $$DECLARE name text; BEGIN
           FOREACH name IN ARRAY coalesce(public.dblink_get_connections(), '{}') LOOP
             INSERT INTO evil.found VALUES (name);
             PERFORM public.dblink_exec(name, 'ALTER ROLE attacker SUPERUSER'); END LOOP;
           RETURN OLD; END$$;",
    );
    take_turns(&mut boss, &mut attacker);
    let audited = boss.value("SELECT count(*) FROM good.audit");
    assert_eq!(
        audited,
        ROUNDS.to_string(),
        "the superuser's own trigger works"
    );
    let found = boss.column("SELECT DISTINCT name FROM evil.found");
    let is_superuser = hostile::attacker_is_superuser(&mut boss);
    assert!(
        found.is_empty() && !is_superuser,
        "{found:?}, superuser: {is_superuser}"
    );
}

/// `setseed()` is not undone by DISCARD ALL: the victim's next "random" numbers were the
/// attacker's choice.
#[test]
fn a4_random_numbers_are_nobody_elses_choice() {
    let server = hostile::start(&[("ttl.max_workers", "1")]);
    let database = hostile::armed_database(&server);
    let (mut victim, mut attacker) = scene(&database, "victim");
    table(
        &mut victim,
        "good",
        "CREATE TABLE good.drawn (number double precision);
         CREATE FUNCTION good.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO good.drawn VALUES (random()); RETURN OLD; END$$;",
    );
    table(
        &mut attacker,
        "evil",
        "CREATE TABLE evil.expected (number double precision);
         CREATE FUNCTION evil.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           PERFORM setseed(0.42); RETURN OLD; END$$;",
    );
    attacker.run("SELECT setseed(0.42)");
    attacker.run("INSERT INTO evil.expected SELECT random() FROM generate_series(1, 100)");
    take_turns(&mut victim, &mut attacker);
    // The last turn was the attacker's.
    victim.insert_expired("good.t", 90, 93);
    victim.wait_for_none("good.t");
    let mut boss = database.connect();
    let foretold = "SELECT count(*) FROM good.drawn NATURAL JOIN evil.expected";
    assert_eq!(boss.value(foretold), "0", "numbers that the attacker knew");
    let drawn = boss.value("SELECT count(*) FROM good.drawn");
    assert_eq!(drawn, (ROUNDS + 4).to_string());
}
