//! Whose session deletes on each node, and what a role can do that is not on all of them.

use ttl_ext_citus::{Application, Session, SqlState, ids};

use crate::{expired, sweeping};

/// A table of an owner who is no superuser, whose shards have a trigger with a superuser's function that
/// writes down who they are when a row is deleted.
fn with_trigger(name: &str, security: &str) -> (Application<'static>, Session, String) {
    let app = sweeping().application(name);
    let owner = format!("{name}_owner");
    let mut session = app.coordinator();
    session.run(&format!(
        "CREATE ROLE {owner} LOGIN; GRANT CREATE ON SCHEMA public TO {owner}"
    ));
    for node in 0..app.size() {
        // Each node has its own notes: a table of Citus cannot be written to from a shard's trigger.
        app.node(node).run(
            "SET citus.enable_ddl_propagation = off;
             CREATE TABLE notes (who text, session text, process text); GRANT ALL ON notes TO PUBLIC",
        );
    }
    session.run(&format!(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql {security} AS $$ BEGIN
             INSERT INTO public.notes SELECT current_user, session_user, backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid();
             RETURN OLD; END $$"
    ));
    let mut there = app.node_as(0, &owner);
    there.run(
        "CREATE TABLE o (id int PRIMARY KEY, v text); SELECT create_distributed_table('o', 'id')",
    );
    there.run("SET citus.enable_unsafe_triggers = on");
    there.run("CREATE TRIGGER noted AFTER DELETE ON o FOR EACH ROW EXECUTE FUNCTION note()");
    there.run("SELECT ttl.enable('o', 3600)");
    (app, there, owner)
}

#[track_caller]
fn notes(app: &Application<'_>) -> Vec<Vec<String>> {
    let mut all: Vec<_> = (0..app.size())
        .flat_map(|node| {
            app.node(node)
                .rows("SELECT DISTINCT who, session, process FROM notes")
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// A superuser's function runs as the owner, in a process that is the owner's and nobody else's.
#[test]
fn deletion_is_a_session_of_the_owner() {
    let (app, mut owner_session, owner) = with_trigger("owned", "");
    expired(&mut owner_session, 1, 60);
    app.wait_for_disk("o", "");
    assert_eq!(
        notes(&app),
        [[owner.clone(), owner, "ttl_ext worker".into()]]
    );
}

/// SECURITY DEFINER gives what its owner has given to all, and the session stays the owner's.
#[test]
fn a_superusers_function_as_a_trigger() {
    let (app, mut owner_session, owner) = with_trigger("definer", "SECURITY DEFINER");
    expired(&mut owner_session, 1, 60);
    app.wait_for_disk("o", "");
    assert_eq!(
        notes(&app),
        [["postgres".into(), owner, "ttl_ext worker".into()]]
    );
}

/// A member of the owning role that only the coordinator knows: nothing is changed anywhere, and views say why.
#[test]
fn a_role_of_one_node() {
    let app = sweeping().application("one_node");
    let mut session = app.coordinator();
    session
        .run("CREATE ROLE one_node_owner LOGIN; GRANT CREATE ON SCHEMA public TO one_node_owner");
    session.run(
        "SET citus.enable_create_role_propagation = off; SET citus.enable_alter_role_propagation = off;
         CREATE ROLE one_node_only LOGIN; GRANT one_node_owner TO one_node_only",
    );
    let mut owner = app.node_as(0, "one_node_owner");
    owner.run(
        "CREATE TABLE o (id int PRIMARY KEY, v text); SELECT create_distributed_table('o', 'id')",
    );
    owner.run("SELECT ttl.enable('o', 3600)");
    owner.run("INSERT INTO o SELECT n FROM generate_series(1, 20) AS n");
    let label = "SELECT label FROM pg_seclabel WHERE objoid = 'o'::regclass";
    let before = session.value(label);
    let mut only = app.node_as(0, "one_node_only");
    for call in [
        "ttl.set_default('o', 1, confirm => true)",
        "ttl.pause('o')",
        "ttl.disable('o')",
        "ttl.purge('o')",
    ] {
        // It fails at the nodes that do not know the role.
        only.error(&format!("SELECT {call}"));
    }
    assert_eq!(session.value(label), before);
    let problems = only.value(
        "SELECT array_to_string(problems, ' / ') FROM ttl.tables WHERE relation = 'o'::regclass",
    );
    assert!(problems.contains("cannot be reached"), "{problems}");
    assert_eq!(
        only.value("SELECT lag IS NULL FROM ttl.stats WHERE relation = 'o'::regclass"),
        "t"
    );
    let errors = "SELECT count(*) FROM ttl.placements WHERE error IS NOT NULL";
    assert_eq!(only.value(errors), "2");
    assert_eq!(
        owner.column("SELECT id FROM o ORDER BY id").join(" "),
        ids(1..=20)
    );
    // A role that is nobody here cannot do there what the owner can.
    let mut other = app.node(1);
    other.run("SET citus.enable_create_role_propagation = off; CREATE ROLE one_node_worker LOGIN");
    let error = app
        .node_as(1, "one_node_worker")
        .error("SELECT ttl.set_default('o', 1)");
    assert_eq!(*error.code(), SqlState::INSUFFICIENT_PRIVILEGE);
}
