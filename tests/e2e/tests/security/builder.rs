//! S1, S5: the index builder, and the validation of a constraint, run code of a table's owner as
//! that owner, with nothing else to become. Code that never ends, and a stranger's old snapshot, do
//! not keep other owners' indexes from being built.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, hostile};

/// `evil()` takes what there is to take, whoever runs it; sequences tell that it ran at all, even
/// if its transaction is rolled back.
const ARMS: &str = "
    CREATE SEQUENCE sprung; CREATE SEQUENCE bitten;
    CREATE TABLE clients (pid int); INSERT INTO clients VALUES (pg_backend_pid());
    CREATE FUNCTION evil() RETURNS int LANGUAGE plpgsql AS $$BEGIN
      PERFORM nextval('public.bitten');
      BEGIN EXECUTE 'SET SESSION AUTHORIZATION postgres'; EXCEPTION WHEN OTHERS THEN NULL; END;
      BEGIN EXECUTE 'RESET SESSION AUTHORIZATION'; EXCEPTION WHEN OTHERS THEN NULL; END;
      BEGIN EXECUTE 'ALTER ROLE attacker SUPERUSER'; EXCEPTION WHEN OTHERS THEN NULL; END;
      RETURN 1; END$$;
    CREATE FUNCTION by_cursor() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      PERFORM nextval('public.sprung');
      IF NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'esc') THEN
        EXECUTE 'DECLARE esc CURSOR WITH HOLD FOR SELECT public.evil()'; END IF;
      RETURN OLD; END$$;
    CREATE TABLE elsewhere (id int);
    CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      PERFORM public.evil(); RETURN NULL; END$$;
    CREATE CONSTRAINT TRIGGER later AFTER INSERT ON elsewhere DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION at_commit();
    CREATE FUNCTION by_another_table() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      PERFORM nextval('public.sprung'); INSERT INTO public.elsewhere VALUES (OLD.id);
      RETURN OLD; END$$;";

/// A table whose own columns are adopted, so that the builder validates the constraint.
const ADOPTED: &str = "
    CREATE TABLE ib (id int PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now() - interval '1 hour', ttl int);
    INSERT INTO ib (id) SELECT generate_series(1, 3);";

const STATE: &str = "SELECT index_state FROM ttl.tables WHERE relation = 'ib'::regclass";

/// What the trigger left for the commit ran as the bootstrap superuser's session: two seconds later
/// the table's owner was a superuser.
fn the_builder_is_no_way_to_become_superuser(trap: &str) {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut attacker = hostile::owner(&database, "attacker");
    attacker.run(ARMS);
    attacker.run(ADOPTED);
    attacker.run(&format!(
        "CREATE TRIGGER t BEFORE DELETE ON ib FOR EACH ROW EXECUTE FUNCTION {trap}()"
    ));
    attacker
        .run("SELECT ttl.enable('ib', 5, index => 'btree', concurrently => true, confirm => true)");
    let mut boss = database.connect();
    boss.wait_until("SELECT is_called FROM sprung", "t", PATIENCE);
    // It is over: the rows are gone, or their owner is told why they stay.
    let settled = "SELECT (SELECT index_state = 'ready' FROM ttl.tables WHERE relation = 'ib'::regclass)
                       OR (SELECT last_error IS NOT NULL FROM ttl.stats WHERE relation = 'ib'::regclass)
                       OR (SELECT rolsuper FROM pg_roles WHERE rolname = 'attacker')";
    boss.wait_until(settled, "t", PATIENCE);
    assert!(
        !hostile::attacker_is_superuser(&mut boss),
        "{trap}: attacker has become a superuser"
    );
}

#[test]
fn a1_a_cursor_that_is_held_over_the_commit() {
    the_builder_is_no_way_to_become_superuser("by_cursor");
}

/// The question whether a trigger waits for the commit was asked of the table itself only.
#[test]
fn a1_another_tables_trigger_that_waits_for_the_commit() {
    the_builder_is_no_way_to_become_superuser("by_another_table");
}

/// A table of the victim's with something to build; whether it is built is asked by its state.
fn victims_table(database: &Database<'_>) -> Session {
    let mut victim = hostile::owner(database, "victim");
    victim.run(ADOPTED);
    victim
        .run("SELECT ttl.enable('ib', 5, index => 'btree', concurrently => true, confirm => true)");
    victim
}

/// Sleeps for ever, unless the session is one of the attacker's clients; cancelling it is no use.
const SLEEP: &str = "
    CREATE TABLE clients (pid int); INSERT INTO clients VALUES (pg_backend_pid());
    CREATE SEQUENCE asleep;
    CREATE FUNCTION doze() RETURNS int LANGUAGE plpgsql AS $$BEGIN
      WHILE NOT EXISTS (SELECT FROM public.clients WHERE pid = pg_catalog.pg_backend_pid()) LOOP
        PERFORM nextval('public.asleep');
        BEGIN PERFORM pg_sleep(3600); EXCEPTION WHEN query_canceled THEN NULL; END;
      END LOOP; RETURN 1; END$$;
    CREATE FUNCTION doze_pure() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
      RETURN public.doze(); END$$;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN OLD; END$$;
    CREATE FUNCTION doze_trigger() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      PERFORM public.doze(); RETURN OLD; END$$;";

/// There was one builder for all databases, and it never came back: other owners' tables stayed in
/// the state "waiting" for ever.
fn one_owners_code_holds_no_other_owners_build(bed: &str) {
    let server = hostile::start(&[("max_worker_processes", "16")]);
    let (here, there) = (
        hostile::armed_database(&server),
        hostile::armed_database(&server),
    );
    let mut attacker = hostile::owner(&here, "attacker");
    attacker.run(SLEEP);
    // More tables than there can be builders.
    for n in 0..6 {
        let table = format!("ib{n}");
        attacker.run(&ADOPTED.replace("ib ", &format!("{table} ")));
        attacker.run(&bed.replace("{}", &table));
        attacker.run(&format!(
            "SELECT ttl.enable('{table}', 5, index => 'btree', concurrently => true, confirm => true)"
        ));
    }
    let mut boss = here.connect();
    boss.wait_until("SELECT is_called FROM asleep", "t", PATIENCE);
    for database in [&here, &there] {
        let mut victim = victims_table(database);
        victim.wait_until(STATE, "ready", PATIENCE);
        victim.wait_until("SELECT count(*) FROM ib", "0", PATIENCE);
    }
    drop(attacker);
    let took = server.stop(ttl_ext_e2e::Stop::Fast);
    assert!(took.as_secs() < PATIENCE, "{took:?}");
}

/// While the builder deletes what has expired, before it validates.
#[test]
fn a7_a_trigger_that_sleeps_holds_no_other_owners_build() {
    one_owners_code_holds_no_other_owners_build(
        "CREATE TRIGGER t BEFORE DELETE ON {} FOR EACH ROW EXECUTE FUNCTION doze_trigger();",
    );
}

/// When a query on the table is planned.
#[test]
fn a7_an_index_expression_that_sleeps_holds_no_other_owners_build() {
    one_owners_code_holds_no_other_owners_build(
        "CREATE TRIGGER t BEFORE DELETE ON {} FOR EACH ROW EXECUTE FUNCTION nothing();
         CREATE INDEX ON {} ((id + doze_pure()));",
    );
}

/// CREATE INDEX CONCURRENTLY waits for old snapshots of its database, whoever has them. That is that
/// database's own matter.
#[test]
fn a7_a_strangers_snapshot_holds_no_build_elsewhere() {
    let server = hostile::start(&[("max_worker_processes", "16")]);
    let (here, there) = (
        hostile::armed_database(&server),
        hostile::armed_database(&server),
    );
    let mut stranger = here.connect_as("reader");
    stranger.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    // Tables of two owners, whose builds cannot end.
    let mut waiting = victims_table(&here);
    let mut attacker = hostile::owner(&here, "attacker");
    for n in 0..6 {
        attacker.run(&ADOPTED.replace("ib ", &format!("ib{n} ")));
        attacker.run(&format!(
            "SELECT ttl.enable('ib{n}', 5, index => 'btree', concurrently => true, confirm => true)"
        ));
    }
    let held = "SELECT count(*) > 0 FROM pg_stat_activity
                 WHERE backend_type LIKE 'ttl_ext%' AND wait_event = 'virtualxid'";
    here.connect().wait_until(held, "t", PATIENCE);
    let mut victim = victims_table(&there);
    victim.wait_until(STATE, "ready", PATIENCE);
    // And here, too, when the stranger has gone.
    stranger.run("COMMIT");
    waiting.wait_until(STATE, "ready", 3 * PATIENCE);
    drop(attacker);
    serves_all(&server, &mut waiting);
}

/// Nothing is left of it all: no invalid index.
fn serves_all(server: &Server, session: &mut Session) {
    let invalid =
        "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indrelid = 'ib'::regclass";
    assert_eq!(session.value(invalid), "0");
    let ended = server.log_lines(&["PANIC"]);
    assert!(ended.is_empty(), "{ended:?}");
}
