//! S3: queries that ask almost what PostgreSQL's own ask for a foreign key, written by a user's function in the
//! contexts where foreign keys are enforced. They find there what they find elsewhere. Generated: PostgreSQL's
//! queries in another spelling, each with one part changed.

use std::sync::OnceLock;

use ttl_ext_e2e::{Server, Session, hostile};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[("ttl.enabled", "off")]))
}

/// What is written for a part of a query: first what PostgreSQL asks for, then other things.
type Choices<'a> = &'a [&'a str];

/// What the session has noted.
const NOTED: &str =
    "FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()";

/// The query that PostgreSQL would ask, and each that differs from it in one part.
fn variants(parts: &[Choices<'_>]) -> (String, Vec<String>) {
    let write = |changed: Option<(usize, &str)>| {
        let each = parts.iter().enumerate().map(|(at, choices)| match changed {
            Some((part, other)) if part == at => other,
            _ => choices[0],
        });
        each.collect::<Vec<_>>().join(" ")
    };
    let others = parts.iter().enumerate().flat_map(|(at, choices)| {
        let changed = choices[1..].iter();
        changed.map(move |&other| Some((at, other)))
    });
    (write(None), others.map(write).collect())
}

/// `compare()` runs the queries and keeps the numbers of those that find something, or nothing, where they found
/// other things before: as locks, which stay when a transaction fails. `leak(i)` does so with a key that is expired.
/// An error tells nothing.
const COMPARE: &str = "
    CREATE TABLE a_queries (n int PRIMARY KEY, query text, found text);
    CREATE FUNCTION leak(i int) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN IF i = 1 THEN PERFORM pg_catalog.pg_try_advisory_lock(1000); END IF; RETURN true; END $$;
    CREATE FUNCTION find(query text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE r record; found text[];
    BEGIN
      FOR r IN EXECUTE query LOOP found := found || r::text; END LOOP;
      RETURN ARRAY(SELECT unnest(found) ORDER BY 1);
    EXCEPTION WHEN OTHERS THEN RETURN NULL;
    END $$;
    CREATE FUNCTION compare() RETURNS int LANGUAGE plpgsql AS $$
    DECLARE q record;
    BEGIN
      FOR q IN SELECT * FROM public.a_queries LOOP
        IF public.find(q.query) <> coalesce(q.found, 'an error') THEN PERFORM pg_catalog.pg_try_advisory_lock(q.n); END IF;
      END LOOP;
      PERFORM pg_catalog.pg_try_advisory_lock(2000);
      RETURN 1;
    END $$;";

/// Runs them outside of any such context. The first is PostgreSQL's.
fn prepare(attacker: &mut Session, own: &str, others: &[String]) {
    let all = [own].into_iter().chain(others.iter().map(String::as_str));
    for (n, query) in all.enumerate() {
        let query = query.replace('\'', "''");
        attacker.run(&format!("INSERT INTO a_queries VALUES ({n}, '{query}')"));
    }
    attacker.run("UPDATE a_queries SET found = public.find(query)");
    assert_eq!(attacker.value(&format!("SELECT count(*) {NOTED}")), "0");
}

/// Those that found something else in the context, but for PostgreSQL's own, which must do so: else the test
/// would show nothing.
fn differing(attacker: &mut Session) -> Vec<String> {
    let kept = attacker.column(&format!("SELECT objid {NOTED}"));
    assert!(kept.iter().any(|n| n == "2000"), "the code has run");
    assert!(
        kept.iter().any(|n| n == "0"),
        "PostgreSQL's own query is recognised"
    );
    attacker.column(&format!(
        "SELECT coalesce(query, 'leaked') FROM (SELECT objid {NOTED}) l LEFT JOIN a_queries ON n = objid::bigint WHERE objid NOT IN (0, 2000)"
    ))
}

/// Validation, by the owner of the referencing table.
const VALIDATION: [Choices<'static>; 7] = [
    &[
        "",
        "WITH w AS (SELECT id FROM v_p)",
        "WITH w AS MATERIALIZED (SELECT id FROM v_p WHERE leak(id))",
    ],
    &[
        "SELECT fk.v",
        "SELECT pk.id",
        "SELECT pk.secret",
        "SELECT fk.w",
        "SELECT fk.v, fk.w",
        "SELECT fk.v + 0",
        "SELECT pk",
        "SELECT DISTINCT fk.v",
        "SELECT count(fk.v)",
        "SELECT fk.v, leak(pk.id)",
        "SELECT fk.v, (SELECT max(id) FROM v_p WHERE id < 2)",
        "SELECT fk.v, generate_series(1, 2)",
    ],
    &[
        "FROM ONLY a_w fk LEFT JOIN ONLY v_p pk",
        "FROM a_w fk LEFT JOIN ONLY v_p pk",
        "FROM ONLY a_w fk LEFT JOIN v_p pk",
        "FROM ONLY a_w fk JOIN ONLY v_p pk",
        "FROM ONLY a_w fk FULL JOIN ONLY v_p pk",
        "FROM ONLY a_w fk RIGHT JOIN ONLY v_p pk",
        "FROM ONLY a_w fk LEFT JOIN ONLY v_q pk",
        "FROM ONLY a_w fk LEFT JOIN (SELECT * FROM v_p WHERE leak(id)) pk",
        "FROM v_p other CROSS JOIN ONLY a_w fk LEFT JOIN ONLY v_p pk",
        "FROM ONLY v_p pk LEFT JOIN ONLY a_w fk",
    ],
    &[
        "ON pk.id = fk.v",
        "ON fk.v = pk.id",
        "ON pk.id <= fk.v",
        "ON pk.id = fk.w",
        "ON pk.id = fk.v::bigint",
        "ON pk.id::text = fk.v::text",
        "ON pk.id = fk.v AND leak(pk.id)",
        "ON pk.id = fk.v AND pk.secret <> ''",
        "ON pk.id = fk.v AND pk.id = fk.v",
        "ON true",
        "ON pk.id = a_cast(fk.v)::int",
    ],
    &[
        "WHERE pk.id IS NULL AND fk.v IS NOT NULL",
        "WHERE pk.id IS NOT NULL AND fk.v IS NOT NULL",
        "WHERE pk.id IS NULL",
        "WHERE fk.v IS NOT NULL",
        "WHERE pk.id IS NULL OR fk.v IS NOT NULL",
        "WHERE pk.secret IS NULL AND fk.v IS NOT NULL",
        "WHERE pk IS NULL AND fk.v IS NOT NULL",
        "WHERE pk.id IS NULL AND fk.w IS NOT NULL",
        "WHERE pk.id IS NULL AND fk.v IS NOT NULL AND leak(coalesce(pk.id, 0))",
        "WHERE pk.id IS NULL AND fk.v IS NOT NULL AND NOT EXISTS (SELECT FROM v_p WHERE id = 1)",
        "WHERE pk.id IS NULL AND (fk.v IS NOT NULL OR fk.w IS NOT NULL)",
    ],
    &[
        "",
        "GROUP BY fk.v",
        "GROUP BY fk.v, pk.secret",
        "GROUP BY fk.v HAVING leak(min(pk.id))",
    ],
    &[
        "",
        "ORDER BY fk.v",
        "ORDER BY pk.secret",
        "LIMIT 10",
        "FOR KEY SHARE OF fk",
        "UNION ALL SELECT id FROM v_p",
        "EXCEPT SELECT id FROM v_p",
        "INTERSECT SELECT id FROM v_p WHERE leak(id)",
    ],
];

const VICTIMS: &str = "
    CREATE TABLE v_p (id int PRIMARY KEY, secret text); CREATE TABLE v_q (id int PRIMARY KEY, secret text);
    SELECT ttl.enable('v_p', 3600), ttl.enable('v_q', 3600);
    INSERT INTO v_p VALUES (1, 's'), (2, 't'); INSERT INTO v_q VALUES (1, 's'), (2, 't');
    SET ttl.preserve_ts = on;
    UPDATE v_p SET _ts = '2000-01-01' WHERE id = 1; UPDATE v_q SET _ts = '2000-01-01' WHERE id = 1;
    RESET ttl.preserve_ts;
    GRANT SELECT, REFERENCES ON v_p, v_q TO attacker;";

/// The policy read the expired row as long as PostgreSQL's query was known by its text.
#[test]
fn validation_tells_nothing_else() {
    let database = hostile::armed_database(server());
    database.connect_as("victim").run(VICTIMS);
    let mut attacker = database.connect_as("attacker");
    attacker.run(COMPARE);
    attacker.run(
        "CREATE TABLE a_w (v int, w int); INSERT INTO a_w VALUES (1, 1), (2, 1), (3, 3);
         CREATE FUNCTION a_cast(i int) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN i; END'",
    );
    let (own, others) = variants(&VALIDATION);
    prepare(&mut attacker, &own, &others);
    attacker.run(
        "ALTER TABLE a_w ADD CHECK (compare() > 0), ADD FOREIGN KEY (v) REFERENCES v_p NOT VALID",
    );
    let found = differing(&mut attacker);
    assert!(found.is_empty(), "{found:#?}");

    // A policy on the attacker's own table comes into PostgreSQL's query, and would read there what the query may.
    attacker.run(
        "SELECT pg_advisory_unlock_all(); DELETE FROM a_queries;
         ALTER TABLE a_w ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
         CREATE POLICY p ON a_w USING ((SELECT count(*) FROM v_p WHERE leak(id)) > 0)",
    );
    attacker.error("ALTER TABLE a_w VALIDATE CONSTRAINT a_w_v_fkey");
    let kept = attacker.column(&format!("SELECT objid {NOTED}"));
    assert!(kept.is_empty(), "leaked");
}

/// What DETACH PARTITION asks, by the owner of the referenced table.
const DETACHMENT: [Choices<'static>; 6] = [
    &["", "WITH w AS (SELECT id FROM v_c)"],
    &[
        "SELECT fk.p",
        "SELECT fk.id",
        "SELECT fk.p, fk.id",
        "SELECT fk.p, leak(fk.id)",
        "SELECT pk.k",
        "SELECT fk",
        "SELECT DISTINCT fk.p",
    ],
    &[
        "FROM ONLY v_c fk JOIN p1 pk",
        "FROM v_c fk JOIN p1 pk",
        "FROM ONLY v_c fk LEFT JOIN p1 pk",
        "FROM ONLY v_c fk JOIN p pk",
        "FROM ONLY v_c fk JOIN p2 pk",
        "FROM v_c other, ONLY v_c fk JOIN p1 pk",
    ],
    &[
        "ON pk.k = fk.p",
        "ON pk.k = fk.id",
        "ON pk.k >= fk.p",
        "ON pk.k = fk.p AND leak(fk.id)",
        "ON true",
    ],
    &[
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND pk.k < 10 AND fk.p IS NOT NULL",
        "WHERE fk.p IS NOT NULL",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND pk.k < 10",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND pk.k < 11 AND fk.p IS NOT NULL",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND fk.id < 10 AND fk.p IS NOT NULL",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND leak(fk.id) AND fk.p IS NOT NULL",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND pk.k < 10 AND fk.p IS NOT NULL AND leak(fk.id)",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND pk.k < 10 AND fk.id IS NOT NULL",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND (pk.k < 10 OR leak(fk.id)) AND fk.p IS NOT NULL",
        "WHERE pk.k IS NOT NULL AND pk.k >= 0 AND pk.k < (SELECT 10) AND fk.p IS NOT NULL",
    ],
    &[
        "",
        "ORDER BY fk.id",
        "LIMIT 10",
        "FOR KEY SHARE OF pk",
        "UNION ALL SELECT id FROM v_c",
    ],
];

#[test]
fn detachment_tells_nothing_else() {
    let database = hostile::armed_database(server());
    let mut attacker = database.connect_as("attacker");
    // Functions that see what the statement has done so far cannot read the partition. A query that is not
    // recognised fails where it is looked up whether the partition's rows are to be hidden.
    attacker.run(&COMPARE.replace("LANGUAGE", "STABLE LANGUAGE"));
    // The code runs while PostgreSQL's query is planned.
    attacker.run(
        "CREATE TABLE p (k int PRIMARY KEY) PARTITION BY RANGE (k);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
         CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
         INSERT INTO p VALUES (1), (2), (11); GRANT ALL ON p TO victim;
         CREATE FUNCTION at_planning(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
           IF pg_catalog.current_setting('a.armed', true) = 'on' THEN
             PERFORM pg_catalog.set_config('a.armed', 'off', false), public.compare(); END IF;
           RETURN i; END$$;
         CREATE INDEX ON p1 (k) WHERE k > at_planning(0)",
    );
    database.connect_as("victim").run(
        "CREATE TABLE v_c (id int, p int REFERENCES p); SELECT ttl.enable('v_c', 3600);
         INSERT INTO v_c VALUES (1, 1), (2, 11); SET ttl.preserve_ts = on;
         UPDATE v_c SET _ts = '2000-01-01' WHERE id = 1; GRANT SELECT ON v_c TO attacker",
    );
    let (own, others) = variants(&DETACHMENT);
    prepare(&mut attacker, &own, &others);
    // It does so once in a session.
    let mut attacker = database.connect_as("attacker");
    attacker.run("SET a.armed = on");
    attacker.error("ALTER TABLE p DETACH PARTITION p1");
    let found = differing(&mut attacker);
    assert!(found.is_empty(), "{found:#?}");
}

/// Actions and checks: of the key 1, and for a cascade of an UPDATE from 1 to 1.
const ACTIONS: [&[Choices<'static>]; 3] = [
    &[
        &["DELETE FROM ONLY v_c", "DELETE FROM v_c"],
        &[
            "WHERE $1 = p",
            "WHERE p = $1",
            "WHERE $1 = q",
            "WHERE $1 = id",
            "WHERE $1 >= p",
            "WHERE $1 = p::bigint",
            "WHERE 1 = p",
            "WHERE $1 = p AND id = 1",
            "WHERE $1 = p AND leak(id)",
            "WHERE $1 = p AND EXISTS (SELECT FROM v_c WHERE id = 1)",
            "WHERE $1 = p OR id = 1",
        ],
        &["", "RETURNING *"],
    ],
    &[
        &[
            "UPDATE ONLY v_c SET p = $1",
            "UPDATE ONLY v_c SET id = $1",
            "UPDATE ONLY v_c SET p = $1, id = 3",
            "UPDATE ONLY v_c SET ttl = -1",
            "UPDATE v_c SET p = $1",
        ],
        &[
            "WHERE $2 = p",
            "WHERE p = $2",
            "WHERE $2 = id",
            "WHERE $2 = p AND leak(id)",
        ],
        &["", "RETURNING *"],
    ],
    &[
        &[
            "SELECT 1",
            "SELECT id",
            "SELECT (SELECT id FROM v_c WHERE id = 1)",
        ],
        &[
            "FROM ONLY v_c x",
            "FROM v_c x",
            "FROM ONLY v_c x JOIN v_p ON v_p.id = 2",
        ],
        &[
            "WHERE $1 = r",
            "WHERE r = $1",
            "WHERE $1 = x.id",
            "WHERE $1 = r AND leak(x.id)",
        ],
        &["FOR KEY SHARE OF x", "", "FOR UPDATE OF x"],
    ],
];

/// Runs each query, notes it if it meets a row, and takes back what it has done.
const MEET: &str = "
    CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE q record; met bigint;
    BEGIN
      FOR q IN SELECT * FROM public.a_queries LOOP
        BEGIN
          EXECUTE q.query USING 1, 1;
          GET DIAGNOSTICS met = ROW_COUNT;
          IF met > 0 THEN PERFORM pg_catalog.pg_try_advisory_lock(q.n); END IF;
          RAISE division_by_zero;
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
      END LOOP;
      PERFORM pg_catalog.pg_try_advisory_lock(2000);
      RETURN old;
    END $$;
    CREATE TABLE own_p (id int PRIMARY KEY);
    CREATE TABLE own_c (id int REFERENCES own_p ON DELETE CASCADE);
    INSERT INTO own_p VALUES (7); INSERT INTO own_c VALUES (7);
    CREATE TRIGGER t BEFORE DELETE ON own_c FOR EACH ROW EXECUTE FUNCTION meet();";

/// The attacker has all privileges but ownership. The owner meets the expired row by PostgreSQL's own DELETE only:
/// to the others it is hidden, or it is removed before them.
#[test]
fn actions_and_checks_are_the_owners() {
    for (user, meets) in [("attacker", &[] as &[&str]), ("victim", &["0"])] {
        let database = hostile::armed_database(server());
        let mut victim = database.connect_as("victim");
        victim.run(
            "CREATE TABLE v_p (id int PRIMARY KEY);
             CREATE TABLE v_c (id int PRIMARY KEY, p int REFERENCES v_p ON DELETE CASCADE ON UPDATE CASCADE,
                               q int REFERENCES v_p ON DELETE SET NULL, r int REFERENCES v_p);
             SELECT ttl.enable('v_c', 3600); INSERT INTO v_p VALUES (1), (2); INSERT INTO v_c VALUES (1, 1, 1, 1), (2, 2, 2, 2);
             SET ttl.preserve_ts = on; UPDATE v_c SET _ts = '2000-01-01' WHERE id = 1; GRANT ALL ON v_p, v_c TO attacker",
        );
        let mut session = database.connect_as(user);
        session.run(COMPARE);
        session.run(MEET);
        let queries = ACTIONS.iter().flat_map(|parts| {
            let (own, others) = variants(parts);
            [own].into_iter().chain(others)
        });
        for (n, query) in queries.enumerate() {
            session.run(&format!("INSERT INTO a_queries VALUES ({n}, '{query}')"));
        }
        session.run("DELETE FROM own_p");
        let met = session.column(&format!("SELECT objid {NOTED} AND objid < 2000"));
        assert_eq!(met, meets, "{user}");
        let on_disk = database.disk().column("SELECT id FROM v_c ORDER BY 1");
        assert_eq!(on_disk, ["1", "2"], "{user}");
    }
}
