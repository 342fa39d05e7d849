//! S1: code of a stranger's table that refers to another owner's, beside its triggers for the event: code that PostgreSQL
//! runs at planning, for rows that move, for casts and in indexes. None of it runs in the worker, nor in a session of the
//! owner's; the attacker has REFERENCES, and nothing else.

use std::sync::OnceLock;

use ttl_ext_e2e::hostile::{self, owner};
use ttl_ext_e2e::{PATIENCE, Server};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

const TOOLS: &str = "
    CREATE TABLE ran (what text); GRANT ALL ON ran TO PUBLIC;
    CREATE FUNCTION spring(what text) RETURNS void LANGUAGE plpgsql AS $$BEGIN
      IF session_user <> 'attacker' THEN INSERT INTO public.ran VALUES (what); PERFORM public.a_vol(); END IF; END$$;
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('trigger'); RETURN coalesce(NEW, OLD); END$$;
    CREATE FUNCTION a_if(what text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring(what); RETURN 1; END$$;
    CREATE FUNCTION a_ifi(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('key'); RETURN n; END$$;";

/// What the attacker does; a row refers to row 1 afterwards.
const TRAPS: [(&str, &str); 13] = [
    (
        "a row moves to another partition, whose INSERT trigger fires",
        "CREATE TABLE ch (id int, pid int REFERENCES par ON DELETE SET NULL) PARTITION BY LIST (pid);
         CREATE TABLE ch_null PARTITION OF ch FOR VALUES IN (NULL); CREATE TABLE ch_def PARTITION OF ch DEFAULT;
         CREATE TRIGGER t BEFORE INSERT ON ch_null FOR EACH ROW EXECUTE FUNCTION trap(); INSERT INTO ch VALUES (1, 1)",
    ),
    (
        "a row moves from a partition, whose DELETE trigger fires",
        "CREATE TABLE ch (id int, pid int REFERENCES par ON DELETE SET NULL) PARTITION BY LIST (pid);
         CREATE TABLE ch_null PARTITION OF ch FOR VALUES IN (NULL); CREATE TABLE ch_def PARTITION OF ch DEFAULT;
         CREATE TRIGGER t BEFORE DELETE ON ch_def FOR EACH ROW EXECUTE FUNCTION trap(); INSERT INTO ch VALUES (1, 1)",
    ),
    (
        "the cast of the foreign key",
        "CREATE TYPE et AS ENUM ('1', '2');
         CREATE FUNCTION et2int(et) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('cast'); RETURN $1::text::int; END$$;
         CREATE CAST (et AS int) WITH FUNCTION et2int(et) AS IMPLICIT;
         CREATE TABLE ch (id int, pid et REFERENCES par (id) ON DELETE CASCADE);
         ALTER TABLE ch DISABLE TRIGGER USER; INSERT INTO ch VALUES (1, '1')",
    ),
    (
        "subtype_diff in a GiST index",
        "CREATE FUNCTION sdiff(float8, float8) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('diff'); RETURN $1 - $2; END$$;
         CREATE TYPE fr AS RANGE (subtype = float8, subtype_diff = sdiff);
         CREATE TABLE ch (id int, pid int REFERENCES par ON DELETE SET NULL, r fr); CREATE INDEX ON ch (pid);
         INSERT INTO ch SELECT g, NULL, fr(g * 10, g * 10 + 1) FROM generate_series(1, 1000) g;
         INSERT INTO ch SELECT g, 1, fr(g * 1000 + 3, g * 1000 + 4) FROM generate_series(1, 5) g; CREATE INDEX ON ch USING gist (r)",
    ),
    (
        "DELETE triggers of a row whose key is taken",
        "CREATE TABLE ch (id int, pid int REFERENCES par ON DELETE SET NULL, k int UNIQUE DEFAULT 1);
         CREATE UNIQUE INDEX ON ch ((coalesce(pid, 0)));
         SELECT ttl.enable('ch', 3600), ttl.pause('ch');
         CREATE TRIGGER t BEFORE DELETE ON ch FOR EACH ROW EXECUTE FUNCTION trap();
         BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO ch (id, pid, k, _ts) VALUES (1, NULL, 5, '2000-01-01'); COMMIT;
         INSERT INTO ch (id, pid) VALUES (2, 1)",
    ),
    (
        "statistics of a partition",
        "CREATE TABLE ch (id int, pid int REFERENCES par) PARTITION BY RANGE (id);
         CREATE TABLE ch1 PARTITION OF ch FOR VALUES FROM (0) TO (100);
         CREATE STATISTICS s ON (a_if('s') + id), (id * 2) FROM ch1; INSERT INTO ch VALUES (5, 1)",
    ),
    (
        "the CHECK of a partition, by constraint exclusion",
        "CREATE TABLE ch (id int, pid int REFERENCES par ON DELETE CASCADE) PARTITION BY RANGE (id);
         CREATE TABLE ch1 PARTITION OF ch FOR VALUES FROM (0) TO (100);
         ALTER TABLE ch1 ADD CHECK (a_if('c') + id > 0); INSERT INTO ch VALUES (5, 1)",
    ),
    (
        "the partition key of an ancestor",
        "CREATE TABLE ch (id int, pid int) PARTITION BY RANGE ((a_ifi(id)));
         CREATE TABLE leaf PARTITION OF ch FOR VALUES FROM (0) TO (100);
         ALTER TABLE leaf ADD FOREIGN KEY (pid) REFERENCES par ON DELETE SET NULL; INSERT INTO leaf VALUES (5, 1)",
    ),
    (
        "the DEFAULT that planning computes, though no row refers",
        "CREATE TABLE ch (id int, pid int DEFAULT a_if('default') REFERENCES par ON DELETE SET DEFAULT)",
    ),
    (
        "the negator, by which an operator on a function of PostgreSQL's is estimated",
        "CREATE FUNCTION aeq(int, int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('negator'); RETURN $1 = $2; END$$;
         CREATE OPERATOR <>! (PROCEDURE = int4ne, LEFTARG = int, RIGHTARG = int, RESTRICT = neqsel, NEGATOR = OPERATOR(public.==!));
         CREATE OPERATOR ==! (PROCEDURE = aeq, LEFTARG = int, RIGHTARG = int, RESTRICT = eqsel, NEGATOR = OPERATOR(public.<>!));
         CREATE TABLE ch (id int, pid int REFERENCES par);
         CREATE INDEX ON ch (id) WHERE pid IS NOT NULL OR id OPERATOR(public.<>!) 5;
         INSERT INTO ch SELECT i % 3, NULL FROM generate_series(1, 30) i; ANALYZE ch",
    ),
    (
        "the negator, by which a CHECK is simplified",
        "CREATE FUNCTION aeq(int, int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('negator'); RETURN $1 = $2; END$$;
         CREATE OPERATOR <>! (PROCEDURE = int4ne, LEFTARG = int, RIGHTARG = int, NEGATOR = OPERATOR(public.==!));
         CREATE OPERATOR ==! (PROCEDURE = aeq, LEFTARG = int, RIGHTARG = int, NEGATOR = OPERATOR(public.<>!));
         CREATE TABLE ch (id int, pid int REFERENCES par ON DELETE SET NULL, CHECK (NOT (id OPERATOR(public.<>!) 7)));
         INSERT INTO ch VALUES (7, 1)",
    ),
    (
        "the commutator, by which an operator is estimated",
        "CREATE FUNCTION agt(int, int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('commutator'); RETURN $1 > $2; END$$;
         CREATE OPERATOR <%& (PROCEDURE = int4lt, LEFTARG = int, RIGHTARG = int, RESTRICT = scalarltsel, COMMUTATOR = OPERATOR(public.>%&));
         CREATE OPERATOR >%& (PROCEDURE = agt, LEFTARG = int, RIGHTARG = int, RESTRICT = scalargtsel, COMMUTATOR = OPERATOR(public.<%&));
         CREATE TABLE ch (id int, pid int REFERENCES par);
         CREATE INDEX ON ch (id) WHERE pid IS NOT NULL OR 5 OPERATOR(public.<%&) id;
         INSERT INTO ch SELECT i, NULL FROM generate_series(1, 300) i; ANALYZE ch",
    ),
    (
        "subtype_diff, by which a condition on a range is estimated",
        "CREATE FUNCTION sdiff(float8, float8) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM public.spring('diff'); RETURN $1 - $2; END$$;
         CREATE TYPE fr AS RANGE (subtype = float8, subtype_diff = sdiff);
         CREATE TABLE ch (id int, pid int REFERENCES par, r fr);
         CREATE INDEX ON ch (id) WHERE pid IS NOT NULL OR r && '[10.5,12)'::fr;
         INSERT INTO ch SELECT i, NULL, fr(i, i + 3) FROM generate_series(1, 300) i; ANALYZE ch",
    ),
];

#[test]
fn no_code_of_a_stranger_runs() {
    for (what, trap) in TRAPS {
        let database = hostile::armed_database(server());
        let mut boss = database.connect();
        boss.run(
            "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 3600);
             GRANT REFERENCES ON par TO attacker",
        );
        let mut attacker = owner(&database, "attacker");
        attacker.run(TOOLS);
        boss.run("INSERT INTO par VALUES (1), (2)");
        attacker.run(trap);
        boss.run(
            "BEGIN; SET LOCAL ttl.preserve_ts = on; UPDATE par SET _ts = '2000-01-01'; COMMIT",
        );
        // The worker deletes the row to which none refers, or nothing, where planning the foreign key's query would run code.
        let mut disk = database.disk();
        let tried = "SELECT NOT EXISTS (SELECT FROM par WHERE id = 2)
                         OR EXISTS (SELECT FROM ttl.stats WHERE relation = 'par'::regclass AND last_error IS NOT NULL)";
        disk.wait_until(tried, "t", PATIENCE);
        // A session of the owner's, where it is refused or the row goes.
        let _ = boss.try_run("SELECT ttl.purge('par')");
        let _ = boss.try_run("INSERT INTO par VALUES (1)");
        let _ = boss.try_run("ALTER TABLE par ADD CHECK (id > 0)");
        assert!(!hostile::attacker_is_superuser(&mut boss), "{what}");
        let ran = boss.rows("SELECT what FROM ran");
        assert!(ran.is_empty(), "{what}: {ran:?}");
        boss.run("DROP TABLE par CASCADE");
    }
}

/// A partition of the victim's own referring table belongs to the attacker: neither its triggers nor what is computed when a query on
/// it is planned runs.
#[test]
fn nor_of_the_owner_of_a_partition() {
    for trap in [
        "CREATE TRIGGER t AFTER DELETE ON kids1 FOR EACH ROW EXECUTE FUNCTION trap()",
        "CREATE INDEX ON kids1 (n) WHERE n > a_if('index')",
    ] {
        let database = hostile::armed_database(server());
        let mut attacker = owner(&database, "attacker");
        attacker.run(TOOLS);
        let mut boss = database.connect();
        boss.run(
            "CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 3600);
             CREATE TABLE kids (n int, pid int REFERENCES par ON DELETE CASCADE) PARTITION BY LIST (n);
             CREATE TABLE kids1 PARTITION OF kids FOR VALUES IN (1);
             INSERT INTO par VALUES (1), (2); INSERT INTO kids VALUES (1, 1); ALTER TABLE kids1 OWNER TO attacker",
        );
        attacker.run(trap);
        boss.run(
            "BEGIN; SET LOCAL ttl.preserve_ts = on; UPDATE par SET _ts = '2000-01-01'; COMMIT",
        );
        let tried = "SELECT last_error IS NOT NULL FROM ttl.stats WHERE relation = 'par'::regclass";
        boss.wait_until(tried, "t", PATIENCE);
        let _ = boss.try_run("INSERT INTO par VALUES (1)");
        assert!(!hostile::attacker_is_superuser(&mut boss), "{trap}");
        let ran = boss.rows("SELECT what FROM ran");
        assert!(ran.is_empty(), "{trap}: {ran:?}");
        boss.run("DROP TABLE par CASCADE");
    }
}

/// A new row has another key of the expired one, so that the referenced key goes: PostgreSQL checks the foreign key, at the end of the
/// statement or, where it is deferred, at COMMIT.
#[test]
fn nor_in_the_check_that_follows_an_insert() {
    for (deferrable, insert) in [
        ("", "INSERT INTO par VALUES (99, 1)"),
        (
            "DEFERRABLE INITIALLY DEFERRED",
            "BEGIN; INSERT INTO par VALUES (99, 1); COMMIT",
        ),
    ] {
        let database = hostile::armed_database(server());
        let mut attacker = owner(&database, "attacker");
        attacker.run(TOOLS);
        let mut boss = database.connect();
        boss.run(
            "CREATE TABLE par (id int PRIMARY KEY, e int UNIQUE); SELECT ttl.enable('par', 3600), ttl.pause('par');
             GRANT REFERENCES ON par TO attacker;
             BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO par (id, e, _ts) VALUES (1, 1, '2000-01-01'); COMMIT",
        );
        attacker.run(&format!(
            "CREATE TABLE ch (id int, pid int REFERENCES par {deferrable}); CREATE INDEX ON ch (id) WHERE id > a_if('index')"
        ));
        let error = boss.error(insert);
        assert_eq!(error.code().code(), "42501", "{error}");
        assert!(!hostile::attacker_is_superuser(&mut boss), "{deferrable}");
        let _ = boss.try_run("ROLLBACK");
        let ran = boss.rows("SELECT what FROM ran");
        assert!(ran.is_empty(), "{deferrable}: {ran:?}");
        // The owner's own DELETE is PostgreSQL's business, and so is what it sets off.
        attacker.run("DROP INDEX ch_id_idx");
        boss.run(insert);
    }
}

/// In a restricted operation PostgreSQL defers no trigger. A deferred foreign key of a stranger's does not stop deletion.
#[test]
fn a_deferred_foreign_key_stops_nothing() {
    let database = hostile::armed_database(server());
    let mut boss = database.connect();
    boss.run("CREATE TABLE par (id int PRIMARY KEY); SELECT ttl.enable('par', 2); GRANT REFERENCES ON par TO attacker");
    let mut attacker = owner(&database, "attacker");
    attacker.run("CREATE TABLE ch (id int, pid int REFERENCES par DEFERRABLE INITIALLY DEFERRED)");
    boss.run("INSERT INTO par VALUES (1), (2)");
    attacker.run("INSERT INTO ch VALUES (1, 1)");
    let mut disk = database.disk();
    disk.wait_until("SELECT string_agg(id::text, ',') FROM par", "1", PATIENCE);
    attacker.run("DELETE FROM ch");
    disk.wait_until("SELECT count(*) FROM par", "0", 2 * PATIENCE);
}
