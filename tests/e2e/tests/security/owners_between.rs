//! S1: tables that come to their owner over a third role, or belong to one in between: the policy's, the partition's, that of a
//! table above. Code of a former owner, or of the owner of a table above, runs as nobody else.

use std::sync::OnceLock;
use std::time::Duration;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = hostile::start(&[]);
        // Could SET ROLE to the victim, and has none of the victim's rights without that.
        server
            .connect("postgres", "postgres")
            .run("CREATE ROLE deployer LOGIN NOINHERIT; GRANT victim TO deployer");
        server
    })
}

const TRAP: &str = "
    CREATE TABLE ran (what text); GRANT ALL ON ran TO PUBLIC;
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      IF session_user <> 'attacker' THEN INSERT INTO public.ran VALUES (tg_relid::regclass || ' as ' || current_user); END IF;
      RETURN OLD; END$$;";

/// The trigger that the attacker makes on a table.
fn trigger(table: &str) -> String {
    format!("CREATE TRIGGER t BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION trap()")
}

fn armed() -> Database<'static> {
    let database = hostile::armed_database(server());
    owner(&database, "attacker").run(TRAP);
    database
        .connect()
        .run("GRANT CREATE ON SCHEMA public TO deployer");
    database
}

/// A row of another table goes meanwhile, so that workers have been there; nothing of the attacker's has run.
#[track_caller]
fn assert_nothing_ran(database: &Database<'_>, kept: &[&str]) {
    let mut disk = database.disk();
    disk.run("CREATE TABLE other (id int PRIMARY KEY); SELECT ttl.enable('other', 1); INSERT INTO other VALUES (1)");
    disk.wait_until("SELECT count(*) FROM other", "0", PATIENCE);
    std::thread::sleep(Duration::from_secs(3));
    let ran = disk.rows("SELECT what FROM ran");
    assert!(ran.is_empty(), "{ran:?}");
    for table in kept {
        let count = disk.value(&format!("SELECT count(*) FROM {table}"));
        assert_eq!(count, "1", "{table}");
    }
}

#[track_caller]
fn problem(session: &mut Session, table: &str, pattern: &str) {
    let found = format!(
        "SELECT EXISTS (SELECT FROM ttl.check() WHERE relation = '{table}'::regclass AND COALESCE(to_do, problem) LIKE '{pattern}')"
    );
    assert_eq!(session.value(&found), "t", "{table}: {pattern}");
}

/// From the attacker to a role that could become the victim, and from that one to the victim.
#[test]
fn a_table_that_comes_over_a_third_role_waits() {
    let database = armed();
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 2); GRANT REFERENCES ON par TO attacker",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE ch (a int REFERENCES par ON DELETE CASCADE)");
    attacker.run(&trigger("ch"));
    database.connect().run("ALTER TABLE ch OWNER TO deployer");
    database
        .connect_as("deployer")
        .run("ALTER TABLE ch OWNER TO victim");
    victim.run("INSERT INTO par VALUES (1); INSERT INTO ch VALUES (1)");
    assert_nothing_ran(&database, &["par", "ch"]);
    problem(&mut victim, "par", "%ttl.resume%");
    victim.run("DROP TRIGGER t ON ch; SELECT ttl.resume('par')");
    let mut disk = database.disk();
    disk.wait_until("SELECT count(*) FROM ch", "0", PATIENCE);
}

/// The policy is a superuser's. The worker at a partition is that of the partition's owner.
#[test]
fn a_partition_of_a_superusers_table_that_is_handed_over_waits() {
    let database = armed();
    let mut boss = database.connect();
    boss.run(
        "CREATE TABLE pt (id int PRIMARY KEY) PARTITION BY RANGE (id); SELECT ttl.enable('pt', 2);
         CREATE TABLE p1 PARTITION OF pt FOR VALUES FROM (0) TO (10); ALTER TABLE p1 OWNER TO attacker;
         CREATE TABLE qt (id int PRIMARY KEY) PARTITION BY RANGE (id); SELECT ttl.enable('qt', 2);
         CREATE TABLE q1 PARTITION OF qt FOR VALUES FROM (0) TO (10); ALTER TABLE q1 OWNER TO victim;
         GRANT REFERENCES ON q1 TO attacker",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE ch (a int REFERENCES q1 ON DELETE CASCADE)");
    attacker.run(&trigger("p1"));
    attacker.run(&trigger("ch"));
    boss.run(
        "ALTER TABLE p1 OWNER TO victim; ALTER TABLE ch OWNER TO victim;
         INSERT INTO pt VALUES (1); INSERT INTO qt VALUES (1); INSERT INTO ch VALUES (1)",
    );
    assert_nothing_ran(&database, &["p1", "q1", "ch"]);
    problem(&mut boss, "pt", "%ttl.resume%");
    problem(&mut boss, "qt", "%ttl.resume%");
}

/// Partitioned tables of the attacker's that have no policy: their indexes are those of the victim's partition. Below the table
/// with the policy, above it, and above a table that refers to one.
#[test]
fn indexes_of_a_table_above_do_not_run_code() {
    let database = armed();
    let mut boss = database.connect();
    let mut victim = owner(&database, "victim");
    boss.run(
        "CREATE TABLE top (id int PRIMARY KEY) PARTITION BY RANGE (id); SELECT ttl.enable('top', 2);
         CREATE TABLE mid PARTITION OF top FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF mid FOR VALUES FROM (0) TO (10);
         ALTER TABLE top OWNER TO victim; ALTER TABLE mid OWNER TO victim; ALTER TABLE low OWNER TO victim",
    );
    victim.run("CREATE TABLE own (id int PRIMARY KEY); SELECT ttl.enable('own', 2)");
    boss.run(
        "CREATE TABLE around (LIKE own INCLUDING DEFAULTS INCLUDING INDEXES) PARTITION BY RANGE (id);
         ALTER TABLE around ATTACH PARTITION own FOR VALUES FROM (0) TO (10);
         CREATE TABLE refs (a int) PARTITION BY RANGE (a); CREATE TABLE ref PARTITION OF refs FOR VALUES FROM (0) TO (10);
         ALTER TABLE ref OWNER TO victim",
    );
    victim.run(
        "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 2);
         ALTER TABLE ref ADD FOREIGN KEY (a) REFERENCES par ON DELETE CASCADE",
    );
    boss.run(
        "ALTER TABLE mid OWNER TO attacker; ALTER TABLE around OWNER TO attacker; ALTER TABLE refs OWNER TO attacker",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE FUNCTION note() RETURNS void LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.ran VALUES (current_user); END$$;
         CREATE FUNCTION trap(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
           IF session_user = 'victim' THEN PERFORM public.note(); END IF; RETURN 1; END$$;
         CREATE INDEX ON mid (id) WHERE id > trap(1); CREATE INDEX ON around (id) WHERE id > trap(1); CREATE INDEX ON refs (a) WHERE a > trap(1)",
    );
    // Whose own INSERT runs it, as always.
    victim.run("INSERT INTO low VALUES (1); INSERT INTO own VALUES (1); INSERT INTO par VALUES (1); INSERT INTO ref VALUES (1)");
    attacker.run("TRUNCATE ran");
    assert_nothing_ran(&database, &["low", "own", "par", "ref"]);
    problem(&mut boss, "top", "%public.mid, %give both the same owner");
    problem(
        &mut boss,
        "own",
        "%public.around, %give both the same owner",
    );
    let refused =
        "SELECT last_error LIKE '%of table public.refs, which belongs to attacker%' FROM ttl.stats
                    WHERE relation = 'par'::regclass";
    boss.wait_until(refused, "t", PATIENCE);
    // Nor where a superuser deletes as the victim.
    for table in ["low", "own"] {
        let error = boss.error(&format!("SELECT ttl.purge('{table}')"));
        assert_eq!(error.code().code(), "42501", "{table}: {error}");
    }
    // Given to the victim, with their triggers.
    boss.run(
        "ALTER TABLE mid OWNER TO victim; ALTER TABLE around OWNER TO victim; ALTER TABLE refs OWNER TO victim",
    );
    assert_nothing_ran_again(&database);
    for table in ["top", "own", "par"] {
        problem(&mut boss, table, "%ttl.resume%");
        victim.run(&format!("SELECT ttl.resume('{table}')"));
    }
    let mut disk = database.disk();
    disk.wait_until("SELECT count(DISTINCT what) FROM ran", "1", PATIENCE);
}

#[track_caller]
fn assert_nothing_ran_again(database: &Database<'_>) {
    database.connect().run("DROP TABLE other");
    assert_nothing_ran(database, &["low", "own", "par", "ref"]);
}

/// A call that has read the policy waits for the session that hands the table over, and does not undo what that one has noted.
#[test]
fn a_change_of_the_policy_does_not_undo_the_wait() {
    let database = armed();
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 2); GRANT REFERENCES ON par TO attacker",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE ch (a int REFERENCES par ON DELETE CASCADE)");
    attacker.run(&trigger("ch"));
    let mut boss = database.connect();
    boss.run("BEGIN; ALTER TABLE ch OWNER TO victim");
    let mut watcher = database.connect();
    let changing = std::thread::spawn(move || {
        victim.run("SELECT ttl.set_option('par', 'notify', 'par_gone')");
        victim
    });
    watcher.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%par_gone%' AND pid <> pg_backend_pid()",
        "1",
        PATIENCE,
    );
    boss.run("COMMIT");
    let mut victim = changing.join().expect("the change of the policy");
    victim.run("INSERT INTO par VALUES (1); INSERT INTO ch VALUES (1)");
    assert_nothing_ran(&database, &["par", "ch"]);
    problem(&mut victim, "par", "%ttl.resume%");
}

/// Two sessions hand tables over at a time: the referring one to its last owner, and the one with the policy, which was a superuser's.
#[test]
fn two_sessions_that_hand_over_see_each_other() {
    let database = armed();
    let mut boss = database.connect();
    boss.run("CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 2); GRANT REFERENCES ON par TO attacker");
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE ch (a int REFERENCES par ON DELETE CASCADE)");
    attacker.run(&trigger("ch"));
    boss.run("BEGIN; ALTER TABLE ch OWNER TO victim");
    let mut other = database.connect();
    let giving = std::thread::spawn(move || other.run("ALTER TABLE par OWNER TO victim"));
    let mut watcher = database.connect();
    watcher.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query = 'ALTER TABLE par OWNER TO victim'",
        "1",
        PATIENCE,
    );
    boss.run("COMMIT");
    giving.join().expect("the change of the owner");
    let mut victim = owner(&database, "victim");
    victim.run("INSERT INTO par VALUES (1); INSERT INTO ch VALUES (1)");
    assert_nothing_ran(&database, &["par", "ch"]);
    problem(&mut victim, "par", "%ttl.resume%");
}

/// A time to live that is off when the table is handed over waits when it is on again.
#[test]
fn a_policy_that_is_off_notes_it_too() {
    let database = armed();
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 2), ttl.disable('par'); GRANT REFERENCES ON par TO attacker",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE ch (a int REFERENCES par ON DELETE CASCADE)");
    attacker.run(&trigger("ch"));
    database.connect().run("ALTER TABLE ch OWNER TO victim");
    victim
        .run("SELECT ttl.enable('par', 2); INSERT INTO par VALUES (1); INSERT INTO ch VALUES (1)");
    assert_nothing_ran(&database, &["par", "ch"]);
    problem(&mut victim, "par", "%ttl.resume%");
}
