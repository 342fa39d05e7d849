//! Decision 0059: what the extension runs does not fill pg_stat_statements.

use ttl_ext_e2e::{Server, lacks_library};

#[test]
fn workers_leave_no_statements() {
    if lacks_library(
        "pg_stat_statements",
        "statements::workers_leave_no_statements",
    ) {
        return;
    }
    let server = Server::start_sweeping(&[
        ("shared_preload_libraries", "pg_stat_statements, ttl_ext"),
        ("pg_stat_statements.track", "all"),
    ]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(
        "CREATE EXTENSION pg_stat_statements;
         CREATE TABLE direct (id integer PRIMARY KEY); SELECT ttl.enable('direct', 3600);
         CREATE TABLE slow (id integer PRIMARY KEY); SELECT ttl.enable('slow', 3600);
         CREATE TABLE gone (id integer);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.gone VALUES (OLD.id); RETURN OLD; END $$;
         CREATE TRIGGER note BEFORE DELETE ON slow FOR EACH ROW EXECUTE FUNCTION note();
         SELECT pg_stat_statements_reset()",
    );
    disk.insert_expired("direct", 1, 100);
    disk.insert_expired("slow", 1, 100);
    disk.wait_for_none("direct");
    disk.wait_for_none("slow");
    let ours = disk.column(
        "SELECT query FROM pg_stat_statements
         WHERE query ~ 'direct|slow' AND query !~* '^(insert|select count|set|create)'
           AND query !~ 'pg_stat_statements'",
    );
    assert_eq!(ours, Vec::<String>::new());
    // A user's statements are kept, those of triggers as well.
    let known = |disk: &mut ttl_ext_e2e::Session, pattern: &str| {
        disk.value(&format!(
            "SELECT count(*) > 0 FROM pg_stat_statements WHERE query LIKE '{pattern}'"
        ))
    };
    assert_eq!(known(&mut disk, "INSERT INTO direct%"), "t");
    assert_eq!(known(&mut disk, "INSERT INTO public.gone%"), "t");
}
