//! S3, C6: PostgreSQL's own foreign-key queries see expired rows or remove them. No user can do so
//! with a query of the same text, or with a plan that another user left in the cache.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server, Session, hostile};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    // Expired rows stay on disk, so that queries could find them.
    SERVER.get_or_init(|| hostile::start(&[("ttl.enabled", "off")]))
}

/// The victim's tables: row 1 of each is expired, row 2 live. The attacker has all privileges but
/// ownership.
/// The attacker's: a cascade whose trigger runs `code`, as do the other ways into the
/// contexts in which foreign keys are enforced.
const SCENE: &str = "
    CREATE TABLE v_p (id int PRIMARY KEY);
    CREATE TABLE v_c (id int PRIMARY KEY, p int REFERENCES v_p ON DELETE CASCADE ON UPDATE CASCADE,
                      q int DEFAULT 2 REFERENCES v_p ON DELETE SET NULL ON UPDATE SET DEFAULT,
                      r int REFERENCES v_p);
    SELECT ttl.enable('v_p', 3600), ttl.enable('v_c', 3600);
    INSERT INTO v_p VALUES (1), (2); INSERT INTO v_c VALUES (1, 1, 1, 1), (2, 2, 2, 2);
    SET ttl.preserve_ts = on;
    UPDATE v_c SET _ts = '2000-01-01' WHERE id = 1; UPDATE v_p SET _ts = '2000-01-01' WHERE id = 1;
    GRANT ALL ON v_p, v_c TO attacker;";

/// `attempt()` runs each query, and keeps what it sees of row 1 or does to it.
const ATTACK: &str = "
    CREATE TABLE a_queries (query text, arguments int);
    CREATE TABLE a_loot (found text);
    GRANT ALL ON a_queries, a_loot TO PUBLIC;
    CREATE FUNCTION attempt() RETURNS int LANGUAGE plpgsql AS $$
    DECLARE q record; found record; n bigint;
    BEGIN
      FOR q IN SELECT * FROM public.a_queries LOOP
        BEGIN
          IF q.arguments = 0 THEN EXECUTE q.query INTO found;
          ELSIF q.arguments = 1 THEN EXECUTE q.query INTO found USING 1;
          ELSE EXECUTE q.query INTO found USING 1, 1; END IF;
          GET DIAGNOSTICS n = ROW_COUNT;
          IF n > 0 THEN INSERT INTO public.a_loot VALUES (q.query); END IF;
        EXCEPTION WHEN OTHERS THEN
          -- Written with RETURNING, or for another table: that it fails is no success.
          IF sqlstate NOT IN ('42601', '42703') THEN INSERT INTO public.a_loot VALUES (sqlstate || ' ' || q.query); END IF;
        END;
      END LOOP;
      RETURN 1;
    END $$;
    CREATE FUNCTION attempt_now() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM public.attempt(); RETURN coalesce(old, new); END $$;
    CREATE FUNCTION attempt_lent() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN RETURN public.attempt(); END $$;
    CREATE TABLE a_p (id int PRIMARY KEY);
    CREATE TABLE a_c (id int, p int REFERENCES a_p ON DELETE CASCADE ON UPDATE CASCADE,
                      v int REFERENCES v_p ON DELETE CASCADE);
    CREATE TABLE a_deferred (id int);
    CREATE TABLE a_checked (id int); INSERT INTO a_checked VALUES (1);";

/// A check of the text alone would accept these: PostgreSQL's queries for the victim's foreign keys
/// word for word, and others that only begin like them.
const QUERIES: [(&str, i32); 13] = [
    (
        "SELECT fk.* FROM v_c fk JOIN (VALUES (1)) v(i) ON v.i OPERATOR(pg_catalog.=) fk.id",
        0,
    ),
    (
        "SELECT fk.id FROM v_p fk JOIN (VALUES (1)) v(i) ON v.i OPERATOR(pg_catalog.=) fk.id",
        0,
    ),
    (
        "UPDATE v_c SET ttl = -1 WHERE $1 OPERATOR(pg_catalog.=) id RETURNING *",
        1,
    ),
    (
        "UPDATE ONLY v_p SET ttl = -1 WHERE $1 OPERATOR(pg_catalog.=) id RETURNING *",
        1,
    ),
    (
        "DELETE FROM ONLY v_c WHERE $1 OPERATOR(pg_catalog.=) id RETURNING *",
        1,
    ),
    (
        r#"SELECT 1 FROM ONLY "public"."v_p" x WHERE "id" OPERATOR(pg_catalog.=) $1 FOR KEY SHARE OF x"#,
        1,
    ),
    (
        r#"SELECT 1 FROM ONLY "public"."v_c" x WHERE $1 OPERATOR(pg_catalog.=) "r" FOR KEY SHARE OF x"#,
        1,
    ),
    (
        r#"DELETE FROM ONLY "public"."v_c" WHERE $1 OPERATOR(pg_catalog.=) "p""#,
        1,
    ),
    (
        r#"UPDATE ONLY "public"."v_c" SET "p" = $1 WHERE $2 OPERATOR(pg_catalog.=) "p""#,
        2,
    ),
    (
        r#"UPDATE ONLY "public"."v_c" SET "q" = NULL WHERE $1 OPERATOR(pg_catalog.=) "q""#,
        1,
    ),
    (
        r#"UPDATE ONLY "public"."v_c" SET "q" = DEFAULT WHERE $1 OPERATOR(pg_catalog.=) "q""#,
        1,
    ),
    (
        r#"SELECT fk."p" FROM ONLY "public"."v_c" fk LEFT OUTER JOIN ONLY "public"."v_p" pk ON ( pk."id" OPERATOR(pg_catalog.=) fk."p") WHERE pk."id" IS NULL OR (fk."p" IS NOT NULL) AND fk."id" = 1"#,
        0,
    ),
    (
        r#"SELECT fk."id" FROM ONLY "public"."v_c" fk JOIN "public"."v_p" pk ON ( pk."id" OPERATOR(pg_catalog.=) fk."p") WHERE (fk."p" IS NOT NULL) AND fk."id" = 1"#,
        0,
    ),
];

/// The ways into a context in which PostgreSQL enforces foreign keys.
const WAYS: [(&str, &str); 9] = [
    ("CHECK of an ALTER TABLE", "ALTER TABLE a_checked ADD CHECK (attempt() = id)"),
    ("the same, lent", "ALTER TABLE a_checked ADD CHECK (attempt_lent() = id)"),
    ("expression of an ALTER TABLE", "ALTER TABLE a_checked ALTER id TYPE int USING attempt()"),
    (
        "a default, where a foreign key to the victim's table is validated",
        "INSERT INTO a_c (id, v) VALUES (1, 2);
         ALTER TABLE a_c ADD x int DEFAULT attempt(), ADD FOREIGN KEY (v) REFERENCES v_p",
    ),
    (
        "BEFORE DELETE in a cascade",
        "CREATE TRIGGER t BEFORE DELETE ON a_c FOR EACH ROW EXECUTE FUNCTION attempt_now();
         INSERT INTO a_p VALUES (7); INSERT INTO a_c VALUES (1, 7); DELETE FROM a_p",
    ),
    (
        "AFTER UPDATE in a cascade",
        "CREATE TRIGGER t AFTER UPDATE ON a_c FOR EACH ROW EXECUTE FUNCTION attempt_now();
         INSERT INTO a_p VALUES (7); INSERT INTO a_c VALUES (1, 7); UPDATE a_p SET id = 8",
    ),
    (
        "a cascade in an ALTER TABLE",
        "CREATE TRIGGER t BEFORE DELETE ON a_c FOR EACH ROW EXECUTE FUNCTION attempt_now();
         INSERT INTO a_p VALUES (7); INSERT INTO a_c VALUES (1, 7);
         CREATE FUNCTION del() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM public.a_p; RETURN 1; END';
         ALTER TABLE a_checked ADD CHECK (del() = id)",
    ),
    (
        "a deferred trigger, made immediate in a cascade",
        "CREATE FUNCTION now_deferred() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           INSERT INTO public.a_deferred VALUES (1); SET CONSTRAINTS ALL IMMEDIATE; RETURN old; END$$;
         CREATE CONSTRAINT TRIGGER d AFTER INSERT ON a_deferred DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION attempt_now();
         CREATE TRIGGER t BEFORE DELETE ON a_c FOR EACH ROW EXECUTE FUNCTION now_deferred();
         INSERT INTO a_p VALUES (7); INSERT INTO a_c VALUES (1, 7); DELETE FROM a_p",
    ),
    (
        "a rule on the referencing table",
        "CREATE RULE r AS ON DELETE TO a_c DO ALSO (
           INSERT INTO a_loot SELECT 'rule read ' || id FROM v_c WHERE id = 1;
           UPDATE v_c SET ttl = -1 WHERE id = 1);
         INSERT INTO a_p VALUES (7); INSERT INTO a_c VALUES (1, 7); DELETE FROM a_p",
    ),
];

/// Checks `v_c` and `v_p` on disk: the expired rows must be unchanged.
const ON_DISK: &str =
    "SELECT c::text FROM v_c c WHERE id = 1 UNION ALL SELECT p::text FROM v_p p WHERE id = 1";

fn scene<'a>() -> (Database<'a>, Session) {
    let database = hostile::armed_database(server());
    database.connect_as("victim").run(SCENE);
    let mut attacker = database.connect_as("attacker");
    attacker.run(ATTACK);
    for (query, arguments) in QUERIES {
        let query = query.replace('\'', "''");
        attacker.run(&format!(
            "INSERT INTO a_queries VALUES ('{query}', {arguments})"
        ));
    }
    (database, attacker)
}

/// S3. On f540154 functions in an ALTER TABLE read the expired rows of both tables, triggers in a
/// cascade brought them to life by `UPDATE … RETURNING`, and the rule read a row and revived it:
/// 35 findings, of all ways but the AFTER trigger's, which fires when the cascade is over.
#[test]
fn h1_queries_written_like_postgresqls_own_see_nothing() {
    let mut findings = vec![];
    for (way, statements) in WAYS {
        let (database, mut attacker) = scene();
        let before = database.disk().rows(ON_DISK);
        assert_eq!(before.len(), 2, "two expired rows");
        attacker.run(statements);
        let loot = attacker.column("SELECT found FROM a_loot");
        findings.extend(loot.iter().map(|found| format!("{way}: {found}")));
        if database.disk().rows(ON_DISK) != before {
            findings.push(format!("{way}: a row has changed"));
        }
        if hostile::attacker_is_superuser(&mut database.connect()) {
            findings.push(format!("{way}: the attacker is superuser"));
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// C6. On f540154 the reader saw the expired row: a superuser with `row_security` off had made the
/// plan, and it depended on that setting alone.
#[test]
fn l2_a_plan_of_a_superuser_shows_nothing_to_the_next_role() {
    let (database, _) = scene();
    let mut session = database.connect();
    session.run(
        "CREATE FUNCTION lent() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
           BEGIN RETURN (SELECT count(*) FROM public.v_c); END $$;
         CREATE FUNCTION lent_insert(i int) RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER AS $$
           DECLARE kept timestamptz; BEGIN
           INSERT INTO public.v_p (id, _ts) VALUES (i, '2001-01-01') RETURNING _ts INTO kept; RETURN kept; END $$;
         SET plan_cache_mode = force_generic_plan; SET row_security = off",
    );
    assert_eq!(session.value("SELECT lent()"), "2");
    assert_eq!(session.value("SELECT lent_insert(100) < '2002-01-01'"), "t");
    session.run("SET ROLE reader");
    assert_eq!(session.value("SELECT lent()"), "1");
    assert_eq!(session.value("SELECT lent_insert(101) < '2002-01-01'"), "f");
    session.run("RESET ROLE");
    assert_eq!(session.value("SELECT lent()"), "2");
    // Plans of one role, in one function.
    session.run(
        "CREATE FUNCTION own() RETURNS bigint LANGUAGE plpgsql AS $$
           BEGIN RETURN (SELECT count(*) FROM public.v_c); END $$;
         CREATE FUNCTION own_insert(i int) RETURNS timestamptz LANGUAGE plpgsql AS $$
           DECLARE kept timestamptz; BEGIN
           INSERT INTO public.v_p (id, _ts) VALUES (i, '2001-01-01') RETURNING _ts INTO kept; RETURN kept; END $$;
         GRANT ALL ON v_p, v_c TO reader; SET ROLE reader",
    );
    assert_eq!(session.value("SELECT own()"), "1");
    assert_eq!(session.value("SELECT own_insert(200) < '2002-01-01'"), "f");
    session.run("RESET ROLE");
    assert_eq!(session.value("SELECT own()"), "2");
    assert_eq!(session.value("SELECT own_insert(201) < '2002-01-01'"), "t");
    // A plan that was made again for another role has the check, too.
    session.run("SET ROLE reader; DISCARD PLANS");
    assert_eq!(session.value("SELECT lent()"), "1");
    assert_eq!(session.value("SELECT lent_insert(102) < '2002-01-01'"), "f");
    session.run("RESET ROLE");
    assert_eq!(session.value("SELECT lent()"), "2");
    assert_eq!(session.value("SELECT lent_insert(103) < '2002-01-01'"), "t");
}

/// `ttl.reads_physically` is in filters: no error shows its arguments.
#[test]
fn l2_reads_physically_raises_nothing() {
    let (database, mut attacker) = scene();
    let ask = "SELECT pg_catalog.count(*) FILTER (WHERE ttl.reads_physically(o)) FROM (VALUES (0::oid), (4294967295::oid), ('v_c'::regclass), ('pg_class'::regclass), (NULL)) v(o)";
    attacker.run("SET row_security = off");
    assert_eq!(attacker.value(ask), "0");
    let mut superuser = database.connect();
    assert_eq!(superuser.value(ask), "0");
    superuser.run("SET row_security = off");
    assert_eq!(superuser.value(ask), "2");
}

/// An error while a foreign-key query is planned, caught by a function that planning another query
/// runs, does not let that other query see more.
#[test]
fn h1_an_error_in_planning_leaves_nothing_behind() {
    let (_database, mut attacker) = scene();
    attacker.run(
        "CREATE FUNCTION fails(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
           BEGIN IF current_setting('a.fail', true) = 'on' THEN RAISE 'no'; END IF; RETURN 1; END $$;
         CREATE TABLE a_v (v int); CREATE INDEX ON a_v (v) WHERE v > fails(1);
         CREATE FUNCTION validate() RETURNS void LANGUAGE plpgsql AS $$
           BEGIN PERFORM set_config('a.fail', 'on', false);
           ALTER TABLE public.a_v ADD FOREIGN KEY (v) REFERENCES public.v_p;
           EXCEPTION WHEN raise_exception THEN PERFORM set_config('a.fail', 'off', false); END $$;
         CREATE FUNCTION innocent(text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
           'BEGIN PERFORM public.validate(); RETURN 1; END';",
    );
    let seen = attacker.column("SELECT id FROM v_p WHERE id >= innocent('x')");
    assert_eq!(seen, ["2"]);
}

/// On f540154 the row lived again, with a new `_ts`.
#[test]
fn a_row_that_a_trigger_keeps_stays_expired() {
    let database = hostile::armed_database(server());
    let mut victim = database.connect_as("victim");
    victim.run(
        "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (p int REFERENCES p ON DELETE SET NULL);
         CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER keep BEFORE DELETE ON c FOR EACH ROW EXECUTE FUNCTION keep();
         SELECT ttl.enable('c', 3600); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1);
         SET ttl.preserve_ts = on; UPDATE c SET _ts = '2000-01-01'; RESET ttl.preserve_ts;
         DELETE FROM p",
    );
    let on_disk = database.disk().column("SELECT _ts::date, p FROM c");
    assert_eq!(on_disk, ["2000-01-01|∅"]);
}

/// Validation selects rows that refer to none: not for the owner of the referenced table, who can empty that table by a
/// policy.
#[test]
fn the_owner_of_the_referenced_table_reads_no_expired_row() {
    let database = hostile::armed_database(server());
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE TABLE r (id int PRIMARY KEY); INSERT INTO r VALUES (1), (2); GRANT REFERENCES, SELECT ON r TO victim;
         CREATE TABLE leaked (x int)",
    );
    database.connect_as("victim").run(
        "CREATE TABLE f (x int REFERENCES r); SELECT ttl.enable('f', 3600); GRANT SELECT ON f TO attacker;
         SET ttl.preserve_ts = on; INSERT INTO f (x, _ts) VALUES (1, '2000-01-01'), (2, now())",
    );
    attacker.run(
        "CREATE FUNCTION leak() RETURNS int LANGUAGE plpgsql AS $$DECLARE q record; BEGIN
           FOR q IN SELECT fk.\"x\" FROM ONLY \"public\".\"f\" fk LEFT OUTER JOIN ONLY \"public\".\"r\" pk
             ON ( pk.\"id\" OPERATOR(pg_catalog.=) fk.\"x\") WHERE pk.\"id\" IS NULL AND (fk.\"x\" IS NOT NULL)
             LOOP INSERT INTO public.leaked VALUES (q.x); END LOOP; RETURN 1; END$$;
         ALTER TABLE r ENABLE ROW LEVEL SECURITY; ALTER TABLE r FORCE ROW LEVEL SECURITY;
         CREATE POLICY none ON r USING (false); ALTER TABLE r ADD COLUMN c int DEFAULT leak()",
    );
    assert_eq!(attacker.column("SELECT DISTINCT x FROM leaked"), ["2"]);
}
