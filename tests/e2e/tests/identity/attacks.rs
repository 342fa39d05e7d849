//! S1: attempts to run as another user, to read another's data or to end the worker, from every
//! place where deletion runs user code.

use std::sync::OnceLock;

use ttl_ext_e2e::{Server, Session, hostile};

const ATTACK: &str = include_str!("attack.sql");

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = hostile::start(&[]);
        // An attack must not end a worker, and only the log tells.
        server.keep_databases();
        server
    })
}

/// What anyone may do in a session of their own: they stay who they are.
const HARMLESS: &str = "'RESET ROLE', 'SET ROLE NONE', 'RESET SESSION AUTHORIZATION', 'SET SESSION AUTHORIZATION DEFAULT',
    $q$SELECT set_config('role', 'none', false)$q$";

/// How many attempts there are.
const ATTEMPTS: &str = "SELECT count(DISTINCT attempt) FROM evil.log";

/// Set the trap, let `evil.t` expire, and check the effects.
fn attack(name: &str, vector: &str, trap: &str) {
    let database = hostile::two_schemas(server(), name);
    let mut attacker = hostile::owner(&database, "attacker");
    attacker.run(ATTACK);
    attacker.run("CREATE TABLE evil.t (id integer PRIMARY KEY); SELECT ttl.enable('evil.t', 3600)");
    attacker.run(trap);
    attacker.insert_expired("evil.t", 1, 3);
    attacker.wait_for_none("evil.t");
    assert_harmless(&mut attacker, vector);
    hostile::assert_served(&database);
}

fn assert_harmless(attacker: &mut Session, vector: &str) {
    let by_worker = format!("vector = '{vector}' AND pid <> pg_backend_pid()");
    let happened = attacker.value(&format!("{ATTEMPTS} WHERE {by_worker}"));
    let happened: u32 = happened.parse().expect("a count");
    assert!(
        happened >= 32,
        "only {happened} attempts: the trap was not sprung"
    );
    let gained = attacker.rows(&format!(
        "SELECT DISTINCT attempt, outcome, me FROM evil.log
          WHERE {by_worker} AND (outcome = 'done' AND attempt NOT IN ({HARMLESS}) OR me <> 'attacker')"
    ));
    assert!(gained.is_empty(), "attacker gained: {gained:#?}");
    let roles = "SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolsuper";
    assert_eq!(attacker.value(roles), "postgres");
    let member = "SELECT count(*) FROM pg_auth_members WHERE member = 'attacker'::regrole";
    assert_eq!(attacker.value(member), "0");
    let server_errors = server().log_lines(&["terminating background worker"]);
    assert!(server_errors.is_empty(), "{server_errors:?}");
}

#[test]
fn row_trigger() {
    for when in ["before", "after"] {
        attack(
            &format!("row_{when}"),
            "row",
            &format!(
                "CREATE TRIGGER evil {when} DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.on_delete('row')"
            ),
        );
    }
}

#[test]
fn statement_trigger() {
    attack(
        "statement",
        "statement",
        "CREATE TRIGGER evil AFTER DELETE ON evil.t FOR EACH STATEMENT EXECUTE FUNCTION evil.on_delete('statement')",
    );
}

/// Fired at commit, when the current user must still be the table's owner.
#[test]
fn deferred_constraint_trigger() {
    attack(
        "deferred",
        "deferred",
        "CREATE CONSTRAINT TRIGGER evil AFTER DELETE ON evil.t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION evil.on_delete('deferred')",
    );
}

/// A function of constants is evaluated when a query on the table is planned; the trigger makes
/// deletion plan one.
#[test]
fn index_expression() {
    attack(
        "expression",
        "expression",
        "CREATE TRIGGER harmless BEFORE DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.harmless();
         CREATE INDEX ON evil.t ((id + evil.pure('expression')))",
    );
}

#[test]
fn index_predicate() {
    attack(
        "predicate",
        "predicate",
        "CREATE TRIGGER harmless BEFORE DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.harmless();
         CREATE INDEX ON evil.t (id) WHERE id > evil.pure('predicate') - 1000",
    );
}

#[test]
fn rule() {
    attack(
        "rule",
        "rule",
        "CREATE FUNCTION evil.by_rule() RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN PERFORM evil.attack('rule'); RETURN 1; END $$;
         CREATE TABLE evil.ruled (id integer);
         CREATE RULE evil AS ON DELETE TO evil.t DO ALSO INSERT INTO evil.ruled VALUES (OLD.id + evil.by_rule())",
    );
}

/// Tables whose deletion cascades to one of `attacker`'s: her own and those of others, among them a
/// superuser's, where her code does not run at all.
#[test]
fn cascade_target() {
    for (name, owner, when) in [
        ("cascade_own", "attacker", "AFTER"),
        ("cascade_victim", "victim", "BEFORE"),
        ("cascade_superuser", "postgres", "BEFORE"),
    ] {
        let database = hostile::two_schemas(server(), name);
        let mut session = hostile::owner(&database, "postgres");
        session.run(&format!(
            "CREATE TABLE public.parent (id integer PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now(), ttl integer);
             INSERT INTO public.parent SELECT n, now() - interval '1 day' FROM generate_series(1, 5) AS n;
             GRANT REFERENCES, SELECT ON public.parent TO attacker;
             ALTER TABLE public.parent OWNER TO {owner}"
        ));
        let mut attacker = hostile::owner(&database, "attacker");
        attacker.run(ATTACK);
        attacker.run(&format!(
            "CREATE TABLE evil.child (id integer REFERENCES public.parent ON DELETE CASCADE);
             CREATE TRIGGER evil {when} DELETE ON evil.child FOR EACH ROW EXECUTE FUNCTION evil.on_delete('cascade');
             INSERT INTO evil.child SELECT n FROM generate_series(1, 5) AS n"
        ));
        session.run("SELECT ttl.enable('public.parent', 3600, index => 'none')");
        if owner == "attacker" {
            session.wait_for_none("public.parent");
            attacker.wait_for_none("evil.child");
            assert_harmless(&mut attacker, "cascade");
        } else {
            session.wait_until(
                "SELECT last_error LIKE '%trigger evil of table evil.child, which belongs to attacker%'
                   FROM ttl.stats WHERE relation = 'public.parent'::regclass",
                "t",
                ttl_ext_e2e::PATIENCE,
            );
            assert_eq!(
                attacker.value("SELECT count(*) FROM evil.log"),
                "0",
                "{name}"
            );
            assert_eq!(
                attacker.value("SELECT count(*) FROM evil.child"),
                "5",
                "{name}"
            );
        }
        hostile::assert_served(&database);
    }
}
