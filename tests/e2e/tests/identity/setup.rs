//! A server with two users who do not trust each other.

use ttl_ext_e2e::{Database, Server, Session};

/// A server with the roles `mallory` and `boss`, without anyone else's work on
/// their tables.
pub(crate) fn start(settings: &[(&str, &str)]) -> Server {
    let mut all = vec![("autovacuum", "off")];
    all.extend(settings);
    let server = Server::start_sweeping(&all);
    server
        .connect("postgres", "postgres")
        .run("CREATE ROLE mallory LOGIN; CREATE ROLE boss LOGIN");
    server
}

/// A database where both have a schema.
pub(crate) fn database<'a>(server: &'a Server, name: &str) -> Database<'a> {
    let database = server.database(name);
    database.connect().run(include_str!("setup.sql"));
    database
}

/// A session of a user who sees their own rows on disk. No superuser may touch
/// the tables of `mallory`: a query on them is enough to run code.
pub(crate) fn owner(database: &Database<'_>, user: &str) -> Session {
    let mut session = database.connect_as(user);
    session.run("SET row_security = off");
    session
}

/// Wait until expired rows of `boss` have gone, which shows that `mallory` has
/// not stopped deletion.
#[track_caller]
pub(crate) fn assert_served(database: &Database<'_>) {
    let mut boss = owner(database, "boss");
    boss.insert_expired("good.victim", 1, 100);
    boss.wait_for_none("good.victim");
}
