//! A server with users who do not trust each other, and the attacker's tools.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::database::Database;
use crate::server::Server;
use crate::session::Session;

/// A server with the roles `attacker`, `victim` and `reader`, who have LOGIN and nothing else.
/// Workers run on it, and nobody else works on their tables.
pub fn start(settings: &[(&str, &str)]) -> Server {
    // Many databases at a time, each with its scheduler and workers.
    let mut all = vec![("autovacuum", "off"), ("max_worker_processes", "24")];
    all.extend(settings);
    let server = Server::start_sweeping(&all);
    server
        .connect("postgres", "postgres")
        .run("CREATE ROLE attacker LOGIN; CREATE ROLE victim LOGIN; CREATE ROLE reader LOGIN");
    server
}

/// A new database with the extension, in whose schema `public` all of them may CREATE, and
/// where the attacker has functions.
pub fn armed_database(server: &Server) -> Database<'_> {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let name = format!("d{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let database = server.database(&name);
    database
        .connect()
        .run("GRANT CREATE ON SCHEMA public TO attacker, victim, reader");
    database.connect_as("attacker").run(ARMS);
    database
}

/// `a_su()` takes what there is to take; `a_vol()` leaves it behind, for later, in a session that
/// is not the attacker's; `a_pure(text)` does so as soon as somebody plans a query.
const ARMS: &str = "
    CREATE FUNCTION a_su() RETURNS text LANGUAGE plpgsql AS $$BEGIN
      IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
      THEN ALTER ROLE attacker SUPERUSER; END IF; RETURN current_user; END$$;
    CREATE FUNCTION a_vol() RETURNS void LANGUAGE plpgsql AS $$BEGIN IF session_user <> 'attacker' THEN
      EXECUTE 'DECLARE evil CURSOR WITH HOLD FOR SELECT public.a_su()'; END IF; END$$;
    CREATE FUNCTION a_pure(text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
      PERFORM public.a_vol(); RETURN 1; END$$;";

/// Whether the attacker has become a superuser; one who has is none afterwards.
pub fn attacker_is_superuser(session: &mut Session) -> bool {
    let question = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = 'attacker'";
    let gained = session.value(question) == "t";
    if gained {
        session.run("ALTER ROLE attacker NOSUPERUSER");
    }
    gained
}

/// A database where the attacker has the schema `evil` and the victim the schema `good`, with a
/// table `good.t`.
pub fn two_schemas<'a>(server: &'a Server, name: &str) -> Database<'a> {
    let database = server.database(name);
    database.connect().run(include_str!("two_schemas.sql"));
    database
}

/// A session of a user who sees their own rows on disk. No superuser may touch
/// the attacker's tables: a query on them is enough to run code.
pub fn owner(database: &Database<'_>, user: &str) -> Session {
    let mut session = database.connect_as(user);
    session.run("SET row_security = off");
    session
}

/// Wait until expired rows of the victim have gone from `good.t`, which shows that the attacker
/// has not stopped deletion.
#[track_caller]
pub fn assert_served(database: &Database<'_>) {
    let mut victim = owner(database, "victim");
    victim.insert_expired("good.t", 1, 100);
    victim.wait_for_none("good.t");
}
