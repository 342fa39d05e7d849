//! S8: in a background process of another extension's the statement's time may stand still. What has expired when
//! the process first asks in its transaction is hidden from it.

use ttl_ext_e2e::{PATIENCE, Server};

/// Autovacuum runs an expression of an index, and its statement's time is that at which it began with the
/// table. The expression first waits, in which time a row is written and expires, and then counts the table's rows.
#[test]
fn a_background_process_does_not_see_what_has_expired() {
    let server = Server::start(&[("autovacuum_naptime", "1s")]);
    let database = server.database("background");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE expiring (id int);
         SELECT ttl.enable('expiring', 1);
         CREATE TABLE seen (statement timestamptz, number bigint);
         CREATE FUNCTION waits(bigint) RETURNS int IMMUTABLE LANGUAGE internal AS 'pg_advisory_xact_lock_int8';
         CREATE FUNCTION notes() RETURNS int LANGUAGE plpgsql AS $$
           BEGIN
             INSERT INTO public.seen SELECT statement_timestamp(), count(*) FROM public.expiring;
             RETURN 1;
           END $$;
         CREATE FUNCTION counts(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN public.notes(); END';
         CREATE TABLE analyzed (id int) WITH (autovacuum_enabled = off, autovacuum_analyze_threshold = 0);
         CREATE INDEX ON analyzed (waits(id::bigint), counts(id));
         INSERT INTO analyzed VALUES (1);
         TRUNCATE seen;
         SELECT pg_advisory_lock(1);
         ALTER TABLE analyzed SET (autovacuum_enabled = on)",
    );
    let waiting = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
                   WHERE locktype = 'advisory' AND NOT granted AND backend_type = 'autovacuum worker'";
    session.wait_until(waiting, "1", 4 * PATIENCE);
    let written = session.value("SELECT clock_timestamp()");
    session.run("INSERT INTO expiring VALUES (1)");
    assert_eq!(session.value("SELECT count(*) FROM expiring"), "1");
    session.wait_until("SELECT count(*) FROM expiring", "0", PATIENCE);
    session.run("SELECT pg_advisory_unlock(1)");
    session.wait_until("SELECT count(*) > 0 FROM seen", "t", PATIENCE);
    // Otherwise the test shows nothing.
    let stood_still = format!("SELECT bool_and(statement < '{written}') FROM seen");
    assert_eq!(session.value(&stood_still), "t");
    assert_eq!(session.value("SELECT max(number) FROM seen"), "0");
}
