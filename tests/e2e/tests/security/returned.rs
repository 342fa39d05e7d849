//! S1: a table that was another role's for a while and belongs to its former owner again, or to a third one. The present
//! owner alone does not tell that; the role that had it has left a trigger there.

use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{PATIENCE, Server};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

const TRAP: &str = "CREATE TABLE ran (what text); GRANT ALL ON ran TO PUBLIC;
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      IF current_user <> 'attacker' THEN INSERT INTO public.ran VALUES (tg_relid::regclass || ' as ' || current_user);
        PERFORM public.a_su(); END IF; IF tg_op = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END$$";

/// What is given away, and how the deletion of a row of `t` reaches it.
struct Kind {
    made: &'static str,
    given: &'static str,
    trigger: &'static str,
    rows: &'static str,
}

/// `#` is the number of the case.
const KINDS: &[Kind] = &[
    Kind {
        made: "CREATE TABLE t# (id int PRIMARY KEY); SELECT ttl.enable('t#', 2)",
        given: "t#",
        trigger: "BEFORE DELETE",
        rows: "INSERT INTO t# VALUES (1)",
    },
    Kind {
        made: "CREATE TABLE t# (id int PRIMARY KEY) PARTITION BY RANGE (id); SELECT ttl.enable('t#', 2);
               CREATE TABLE g# PARTITION OF t# FOR VALUES FROM (0) TO (9)",
        given: "g#",
        trigger: "AFTER DELETE",
        rows: "INSERT INTO t# VALUES (1)",
    },
    Kind {
        made: "CREATE TABLE t# (id int); CREATE TABLE g# () INHERITS (t#); SELECT ttl.enable('t#', 2)",
        given: "g#",
        trigger: "BEFORE DELETE",
        rows: "INSERT INTO g# (id) VALUES (1)",
    },
    Kind {
        made: "CREATE TABLE t# (id int PRIMARY KEY); SELECT ttl.enable('t#', 2);
               CREATE TABLE g# (LIKE t#); SELECT ttl.archive_to('t#', 'g#')",
        given: "g#",
        trigger: "BEFORE INSERT",
        rows: "INSERT INTO t# VALUES (1)",
    },
    Kind {
        made: "CREATE TABLE t# (id int PRIMARY KEY); SELECT ttl.enable('t#', 2);
               CREATE TABLE a# (LIKE t#) PARTITION BY RANGE (id); CREATE TABLE g# PARTITION OF a# DEFAULT;
               SELECT ttl.archive_to('t#', 'a#')",
        given: "g#",
        trigger: "BEFORE INSERT",
        rows: "INSERT INTO t# VALUES (1)",
    },
    Kind {
        made: "CREATE TABLE t# (id int PRIMARY KEY); SELECT ttl.enable('t#', 2);
               CREATE TABLE g# (a int REFERENCES t# ON DELETE CASCADE)",
        given: "g#",
        trigger: "BEFORE DELETE",
        rows: "INSERT INTO t# VALUES (1); INSERT INTO g# VALUES (1)",
    },
    Kind {
        made: "CREATE TABLE t# (id int PRIMARY KEY); SELECT ttl.enable('t#', 2);
               CREATE TABLE m# (a int PRIMARY KEY REFERENCES t# ON DELETE CASCADE) PARTITION BY RANGE (a);
               CREATE TABLE n# PARTITION OF m# DEFAULT; CREATE TABLE g# (a int REFERENCES n# ON DELETE SET NULL)",
        given: "g#",
        trigger: "BEFORE UPDATE",
        rows: "INSERT INTO t# VALUES (1); INSERT INTO m# VALUES (1); INSERT INTO g# VALUES (1)",
    },
];

#[test]
fn what_was_another_roles_waits() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run(TRAP);
    let mut boss = database.connect();
    // From whom, to whom, and whether with all others of the attacker's.
    let paths = [
        ("postgres", "postgres", false),
        ("victim", "victim", false),
        ("victim", "victim", true),
        ("postgres", "victim", false),
    ];
    let mut policies = vec![];
    let mut rows = vec![];
    for (first, last, together) in paths {
        for kind in KINDS {
            // Deletion reaches a third role's tables from the policy's own table only.
            if first != last && kind.given != "t#" {
                continue;
            }
            let number = policies.len().to_string();
            let of = |text: &str| text.replace('#', &number);
            database.connect_as(first).run(&of(kind.made));
            boss.run(&of(&format!(
                "ALTER TABLE {} OWNER TO attacker",
                kind.given
            )));
            attacker.run(&of(&format!(
                "CREATE TRIGGER t {} ON {} FOR EACH ROW EXECUTE FUNCTION trap()",
                kind.trigger, kind.given
            )));
            if !together {
                boss.run(&of(&format!("ALTER TABLE {} OWNER TO {last}", kind.given)));
            }
            policies.push(of("t#"));
            rows.push((of(kind.given), last, of(kind.rows)));
        }
    }
    boss.run("REASSIGN OWNED BY attacker TO victim");
    for (_, role, insert) in &rows {
        database.connect_as(role).run(insert);
    }
    sleep(Duration::from_secs(5));
    let mut disk = database.disk();
    assert_eq!(boss.column("SELECT what FROM ran"), [""; 0]);
    assert!(!hostile::attacker_is_superuser(&mut boss));
    for policy in &policies {
        let problem = format!(
            "SELECT count(*) FROM ttl.check() WHERE relation = '{policy}'::regclass AND to_do LIKE '%ttl.resume%'"
        );
        assert_eq!(disk.value(&problem), "1", "{policy}");
        assert_eq!(
            disk.value(&format!("SELECT count(*) FROM {policy}")),
            "1",
            "{policy}"
        );
    }
    // The end of a restore does not start them.
    assert_eq!(boss.column("SELECT ttl.resume_restored()"), [""; 0]);
    for (policy, (given, ..)) in policies.iter().zip(&rows) {
        boss.run(&format!(
            "DROP TRIGGER t ON {given}; SELECT ttl.resume('{policy}')"
        ));
    }
    for policy in &policies {
        disk.wait_until(&format!("SELECT count(*) FROM {policy}"), "0", PATIENCE);
    }
}

/// The table that deletion reaches comes first to its new owner, and the one with the policy, which was a superuser's, after
/// it; a label of a partition's own waits, too.
#[test]
fn what_comes_one_after_the_other_waits() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    let mut boss = database.connect();
    attacker.run(TRAP);
    boss.run(
        "CREATE TABLE t1 (id int PRIMARY KEY); SELECT ttl.enable('t1', 2); GRANT REFERENCES ON t1 TO attacker;
         CREATE TABLE t2 (id int) PARTITION BY RANGE (id); SELECT ttl.enable('t2', 2);
         CREATE TABLE g2 PARTITION OF t2 DEFAULT; ALTER TABLE g2 OWNER TO attacker",
    );
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE TABLE p (id int) PARTITION BY RANGE (id); SELECT ttl.enable('p', 2);
         CREATE TABLE g PARTITION OF p DEFAULT; ALTER TABLE p DETACH PARTITION g; SELECT ttl.enable('g', 2);
         ALTER TABLE p ATTACH PARTITION g DEFAULT",
    );
    boss.run("ALTER TABLE g OWNER TO attacker");
    attacker.run(
        "CREATE TABLE f1 (a int REFERENCES t1 ON DELETE CASCADE);
         CREATE TRIGGER t BEFORE DELETE ON f1 FOR EACH ROW EXECUTE FUNCTION trap();
         CREATE TRIGGER t BEFORE DELETE ON g2 FOR EACH ROW EXECUTE FUNCTION trap();
         CREATE TRIGGER t BEFORE DELETE ON g FOR EACH ROW EXECUTE FUNCTION trap()",
    );
    for table in ["f1", "t1", "g2", "t2", "g"] {
        boss.run(&format!("ALTER TABLE {table} OWNER TO victim"));
    }
    victim.run(
        "INSERT INTO t1 VALUES (1); INSERT INTO f1 VALUES (1); INSERT INTO t2 VALUES (1); INSERT INTO p VALUES (1);
         ALTER TABLE p DETACH PARTITION g",
    );
    sleep(Duration::from_secs(5));
    assert_eq!(boss.column("SELECT what FROM ran"), [""; 0]);
    let mut disk = database.disk();
    for table in ["t1", "t2", "g"] {
        assert_eq!(disk.count(table), 1, "{table}");
    }
}

/// Who could act as the owner anyway hands over nothing, and a stranger's table stops nobody's deletion.
#[test]
fn others_are_not_made_to_wait() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE TABLE p (id int) PARTITION BY RANGE (id); SELECT ttl.enable('p', 1);
         CREATE TABLE r (id int PRIMARY KEY); SELECT ttl.enable('r', 1); GRANT REFERENCES ON r TO attacker",
    );
    // A superuser's script makes the partitions.
    boss.run("CREATE TABLE p1 PARTITION OF p DEFAULT; ALTER TABLE p1 OWNER TO victim");
    // A table that refers to the victim's goes from one role of the attacker's to another.
    owner(&database, "attacker").run("CREATE TABLE f (a int REFERENCES r ON DELETE CASCADE)");
    boss.run("ALTER TABLE f OWNER TO reader");
    victim.run("INSERT INTO p VALUES (1); INSERT INTO r VALUES (1)");
    let mut disk = database.disk();
    for table in ["p", "r"] {
        disk.wait_until(&format!("SELECT count(*) FROM {table}"), "0", PATIENCE);
    }
}

/// C6: keys of expired rows are free while deletion waits for the new owner, also where that one has turned TTL off and
/// on, or makes the key.
#[test]
fn keys_are_free_while_deletion_waits() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    owner(&database, "attacker").run(
        "CREATE TABLE k (id int PRIMARY KEY, v text); SELECT ttl.enable('k', 1);
         CREATE TABLE l (id int, v text); SELECT ttl.enable('l', 1)",
    );
    boss.run("ALTER TABLE k OWNER TO victim; ALTER TABLE l OWNER TO victim");
    let mut victim = owner(&database, "victim");
    victim.run("RESET row_security; SELECT ttl.disable('k'); SELECT ttl.enable('k', 1); ALTER TABLE l ADD PRIMARY KEY (id)");
    for table in ["k", "l"] {
        victim.run(&format!(
            "INSERT INTO {table} VALUES (1, 'a'); SELECT pg_sleep(1.2)"
        ));
        let insert = format!(
            "INSERT INTO {table} VALUES (1, 'b') ON CONFLICT (id) DO UPDATE SET v = 'c' RETURNING v"
        );
        assert_eq!(victim.value(&insert), "b", "{table}");
    }
}
