//! S9, C26: an archive has its table's owner, with all of its partitions, until the end of the transaction that writes to it.

use super::archives::{TABLES, is_sprung, problem, trigger, wait_for_refusal};
use ttl_ext_e2e::{PATIENCE, Session, hostile};

/// A partition of the archive, one of the table, and a table of which the archive is a partition: the owner of
/// one of them could have code run by the others' owner.
#[test]
fn partitions_have_the_same_owner() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut victim = hostile::owner(&database, "victim");
    victim.run(
        "CREATE TABLE t (id integer, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ttl integer) PARTITION BY RANGE (id);
         CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100);
         CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (100) TO (200);
         CREATE TABLE gone (id integer, _ts timestamptz, ttl integer) PARTITION BY RANGE (id);
         CREATE TABLE gone1 PARTITION OF gone FOR VALUES FROM (0) TO (50);
         CREATE TABLE gone2 PARTITION OF gone DEFAULT;
         SELECT ttl.enable('t', 3600); SELECT ttl.archive_to('t', 'gone')",
    );
    let mut dba = database.disk();
    let mut attacker = database.connect_as("attacker");
    let refused = |dba: &mut Session, what: &str| {
        wait_for_refusal(dba, "t", what);
        assert!(!is_sprung(dba), "{what}");
        assert!(!hostile::attacker_is_superuser(dba), "{what}");
    };
    // One of the archive's: no row goes anywhere, whichever partition it is for.
    dba.run("ALTER TABLE gone2 OWNER TO attacker");
    attacker.run(&trigger("gone2"));
    dba.insert_expired("t", 10, 19);
    refused(&mut dba, "gone2 belongs to attacker");
    dba.run(
        "DROP TRIGGER sprung ON gone2; ALTER TABLE gone2 OWNER TO victim; SELECT ttl.resume('t')",
    );
    dba.wait_for_none("t");
    // A new one.
    attacker.run("CREATE TABLE gone3 (id integer, _ts timestamptz, ttl integer)");
    attacker.run(&trigger("gone3"));
    dba.run("ALTER TABLE gone ATTACH PARTITION gone3 FOR VALUES FROM (1000) TO (2000)");
    dba.insert_expired("t", 20, 29);
    refused(&mut dba, "gone3 belongs to attacker");
    dba.run("ALTER TABLE gone DETACH PARTITION gone3");
    dba.wait_for_none("t");
    // What the archive becomes a partition of, by whose expression each row is checked.
    attacker.run(
        "CREATE FUNCTION key(integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
           IF current_user <> 'attacker' THEN PERFORM nextval('public.sprung'); END IF; RETURN $1; END$$;
         CREATE TABLE around (id integer, _ts timestamptz, ttl integer) PARTITION BY RANGE (key(id))",
    );
    dba.run(
        "SET client_min_messages = error;
         ALTER TABLE around ATTACH PARTITION gone FOR VALUES FROM (0) TO (10000);
         ALTER SEQUENCE sprung RESTART",
    );
    dba.insert_expired("t", 30, 39);
    refused(&mut dba, "around belongs to attacker");
    dba.run("ALTER TABLE around DETACH PARTITION gone");
    dba.wait_for_none("t");
    assert_eq!(dba.count("gone"), 30);
    // One of the table's: the others go.
    dba.run("ALTER TABLE t2 OWNER TO attacker");
    dba.insert_expired("t", 95, 104);
    dba.wait_for_ids("t", "100 101 102 103 104");
    let told = dba.value(&problem("t"));
    assert!(told.contains("public.t2 belongs to attacker"), "{told}");
    assert_eq!(dba.count("gone"), 35);
}

/// From the check on until the end of the transaction neither the archive nor any partition of it gets another
/// owner, also one to which no row has gone yet.
#[test]
fn nothing_changes_hands_meanwhile() {
    let server = hostile::start(&[("ttl.enabled", "off")]);
    let database = hostile::armed_database(&server);
    let mut victim = database.connect_as("victim");
    victim.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE TABLE gone (id integer, _ts timestamptz, ttl integer) PARTITION BY RANGE (id);
         CREATE TABLE gone1 PARTITION OF gone FOR VALUES FROM (0) TO (50);
         CREATE TABLE gone2 PARTITION OF gone DEFAULT;
         SELECT ttl.archive_to('t', 'gone')",
    );
    victim.insert_expired("t", 1, 10);
    let mut dba = database.connect();
    dba.run("SET lock_timeout = '100ms'");
    for statement in ["INSERT INTO t (id) VALUES (1)", "SELECT ttl.purge('t')"] {
        victim.run("BEGIN");
        victim.run(statement);
        for table in ["t", "gone", "gone1", "gone2"] {
            let error = dba.error(&format!("ALTER TABLE {table} OWNER TO attacker"));
            assert_eq!(
                error.code().code(),
                "55P03",
                "{statement}, {table}: {error:?}"
            );
        }
        victim.run("ROLLBACK");
    }
}

/// S10: settings by which PostgreSQL writes names in another way change nothing.
#[test]
fn how_names_are_written_changes_nothing() {
    let server = hostile::start(&[("quote_all_identifiers", "on")]);
    let database = hostile::armed_database(&server);
    let mut victim = hostile::owner(&database, "victim");
    victim.run(TABLES);
    let mut plain = hostile::owner(&database, "victim");
    plain.run("SET quote_all_identifiers = off");
    for session in [&mut victim, &mut plain] {
        session.wait_until("SELECT ttl.problems('t')", "{}", PATIENCE);
        session.insert_expired("t", 1, 20);
        session.wait_for_none("t");
        assert_eq!(session.count("gone"), 20);
        session.run("TRUNCATE gone; SELECT ttl.archive_to('t', 'gone')");
    }
}
