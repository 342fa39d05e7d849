//! S1: code of a table's owner, or of an owner whose table refers to it, runs for somebody else: in
//! the worker, or in the transaction of a superuser or stranger. And owners without USAGE on the
//! schema.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, Server, Session, SqlState, hostile};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[]))
}

/// A session that sees its own tables' rows on disk.
fn owner(database: &Database<'_>, user: &str) -> Session {
    let mut session = database.connect_as(user);
    session.run("SET row_security = off");
    session
}

#[track_caller]
fn assert_attacker_gained_nothing(database: &Database<'_>) {
    let mut boss = database.connect();
    assert!(
        !hostile::attacker_is_superuser(&mut boss),
        "attacker has become a superuser"
    );
}

/// C1. The worker planned a query on a partition as its owner, but committed as superuser, which is
/// when a held cursor is materialised.
#[test]
fn c1_a_look_at_a_partition_leaves_nothing_behind() {
    let database = hostile::armed_database(server());
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE TABLE mp (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
         CREATE TABLE mp1 PARTITION OF mp FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
         CREATE INDEX ON mp1 ((public.a_pure('x')));
         SELECT ttl.enable('mp', 60, drop_partitions => true);
         BEGIN; SET LOCAL ttl.preserve_ts = on; INSERT INTO mp VALUES (1, '2020-06-01'); COMMIT",
    );
    // It runs in a process that is the attacker's, where there is nothing to gain.
    attacker.wait_until(
        "SELECT to_regclass('mp1') IS NULL",
        "t",
        ttl_ext_e2e::PATIENCE,
    );
    assert_attacker_gained_nothing(&database);
}

/// C1, the other half: a stranger's table refers to a partition. On DETACH PARTITION PostgreSQL
/// queries the stranger's table as the current user.
#[test]
fn c1_a_referring_stranger_runs_nothing_when_a_partition_goes() {
    let database = hostile::armed_database(server());
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE TABLE vp (id int, _ts timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, _ts))
            PARTITION BY RANGE (_ts);
         CREATE TABLE vp1 PARTITION OF vp FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
         CREATE TABLE secret (v text); INSERT INTO secret VALUES ('s');
         GRANT REFERENCES ON vp TO attacker",
    );
    let mut attacker = owner(&database, "attacker");
    attacker.run(
        "CREATE FUNCTION a_grab(text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
            IF session_user <> 'attacker' THEN PERFORM a_grab_now(); END IF; RETURN 1; END$$;
         CREATE FUNCTION a_grab_now() RETURNS void LANGUAGE plpgsql AS $$BEGIN
            EXECUTE 'GRANT SELECT ON secret TO attacker'; EXCEPTION WHEN OTHERS THEN NULL; END$$;
         CREATE TABLE a_child (id int, ts timestamptz, FOREIGN KEY (id, ts) REFERENCES vp);
         CREATE INDEX ON a_child (id) WHERE id > a_grab('x')",
    );
    victim.run("SELECT ttl.enable('vp', 60, ttl_column => NULL, drop_partitions => true)");
    victim.insert_expired("vp", 1, 0); // tells the worker
    victim.run_preserving("INSERT INTO vp VALUES (1, '2020-06-01')");
    victim.wait_until(
        "SELECT last_error LIKE '%function a_grab(text), in index a_child_id_idx, of table public.a_child, which belongs to attacker%'
           FROM ttl.stats WHERE relation = 'vp'::regclass",
        "t",
        ttl_ext_e2e::PATIENCE,
    );
    let refused = attacker.error("SELECT v FROM secret");
    assert_eq!(refused.code(), &SqlState::INSUFFICIENT_PRIVILEGE);
    assert_eq!(victim.value("SELECT to_regclass('vp1') IS NOT NULL"), "t");
    attacker.run("DROP INDEX a_child_id_idx");
    victim.wait_for_none("vp");
}

/// What a superuser may do to a table as an administrator.
const ADMINISTRATION: [&str; 12] = [
    "SELECT * FROM ttl.preview('look')",
    "SELECT ttl.purge('look')",
    "SELECT ttl.set_default('look', 7200)",
    "SELECT ttl.set_default('look', NULL)",
    "SELECT ttl.enable('look', 7200)",
    "SELECT ttl.disable('look')",
    "SELECT ttl.disable('look', drop_columns => true)",
    "SELECT ttl.expire_index('look_at', NULL)",
    "DROP INDEX look_at",
    "CREATE UNIQUE INDEX ON look (id)",
    "ALTER TABLE look ADD CHECK (id > 0)",
    "ALTER TABLE look ALTER id SET NOT NULL",
];

/// C2. A superuser's session kept a held cursor, which ran as superuser at commit, or settings
/// chosen by the attacker.
#[test]
fn c2_administration_by_a_superuser_runs_nothing_as_the_superuser() {
    for (carrier, trap) in [
        (
            "predicate of an index",
            "CREATE INDEX ON look (id) WHERE id > a_pure('x')",
        ),
        (
            "trigger",
            "CREATE FUNCTION a_trigger() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
                PERFORM set_config('search_path', 'evil', false); PERFORM public.a_vol(); RETURN OLD; END$$;
             CREATE TRIGGER evil BEFORE DELETE ON look FOR EACH ROW EXECUTE FUNCTION a_trigger()",
        ),
        (
            "deferred trigger",
            "CREATE FUNCTION a_deferred() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
                PERFORM a_su(); RETURN NULL; END$$;
             CREATE CONSTRAINT TRIGGER evil AFTER DELETE ON look DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION a_deferred()",
        ),
    ] {
        for statement in ADMINISTRATION {
            let database = hostile::armed_database(server());
            // Rows stay until the superuser comes.
            let name = &database.name;
            let mut boss = database.connect();
            boss.run("SET search_path = public, pg_catalog");
            let mut attacker = owner(&database, "attacker");
            attacker.run(&format!(
                "CREATE TABLE look (id int, at timestamptz); CREATE INDEX look_at ON look (at);
                 SELECT ttl.enable('look', 3600, hidden => true), ttl.expire_index('look_at', 0);
                 BEGIN; SET LOCAL ttl.preserve_ts = on;
                 LOCK TABLE look IN SHARE MODE;
                 INSERT INTO look (id, _ts) SELECT n, now() - interval '1 day' FROM generate_series(1, 3) AS n;
                 {trap};
                 COMMIT"
            ));
            // May fail.
            let _ = boss.try_run(statement);
            assert!(
                !hostile::attacker_is_superuser(&mut boss),
                "{carrier}, {statement}: attacker has become a superuser ({name})"
            );
            assert_eq!(
                boss.value("SHOW search_path"),
                "public, pg_catalog",
                "{carrier}, {statement}"
            );
            let left = "SELECT count(*) FROM pg_cursors";
            assert_eq!(boss.value(left), "0", "{carrier}, {statement}");
        }
    }
}

/// The attacker's child of a victim's table, whose triggers grant the victim's secret.
const CHILD: &str = "
    CREATE TABLE a_log (id int);
    CREATE FUNCTION a_grant() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      BEGIN EXECUTE 'GRANT SELECT ON secret TO attacker'; EXCEPTION WHEN OTHERS THEN NULL; END;
      RETURN NULL; END$$;
    CREATE FUNCTION a_write() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      INSERT INTO a_log VALUES (1); RETURN OLD; END$$;
    CREATE TABLE a_child (id int REFERENCES parent ON DELETE CASCADE);
    INSERT INTO a_child VALUES (1);";

const CHILDREN: [(&str, &str); 4] = [
    (
        "an AFTER trigger",
        "CREATE TRIGGER evil AFTER DELETE ON a_child FOR EACH ROW EXECUTE FUNCTION a_grant()",
    ),
    (
        "a statement trigger",
        "CREATE TRIGGER evil AFTER DELETE ON a_child FOR EACH STATEMENT EXECUTE FUNCTION a_grant()",
    ),
    (
        "a deferred trigger elsewhere",
        "CREATE CONSTRAINT TRIGGER evil AFTER INSERT ON a_log DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION a_grant();
         CREATE TRIGGER write BEFORE DELETE ON a_child FOR EACH ROW EXECUTE FUNCTION a_write()",
    ),
    (
        "a rule",
        "CREATE RULE evil AS ON DELETE TO a_child DO ALSO INSERT INTO a_log VALUES (OLD.id);
         CREATE TRIGGER evil AFTER INSERT ON a_log FOR EACH ROW EXECUTE FUNCTION a_grant()",
    ),
];

fn parent_and_child(database: &Database<'_>, trap: &str) -> (Session, Session) {
    let mut victim = owner(database, "victim");
    victim.run(
        "CREATE TABLE parent (id int PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now(), ttl int);
         INSERT INTO parent VALUES (1, now() - interval '1 day');
         CREATE TABLE secret (v text); INSERT INTO secret VALUES ('s');
         GRANT REFERENCES, SELECT ON parent TO attacker; GRANT INSERT ON parent TO reader",
    );
    let mut attacker = owner(database, "attacker");
    attacker.run(&format!("{CHILD} {trap}"));
    (victim, attacker)
}

/// S1 (before 18): REFERENCES on a table was enough to run code as its owner, in the worker.
#[test]
fn h2_a_referring_stranger_runs_nothing_as_the_owner() {
    for (what, trap) in CHILDREN {
        let database = hostile::armed_database(server());
        let (mut victim, mut attacker) = parent_and_child(&database, trap);
        victim.run("SELECT ttl.enable('parent', 3600)");
        let refused = "SELECT last_error LIKE '%which belongs to attacker%' FROM ttl.stats WHERE relation = 'parent'::regclass";
        victim.wait_until(refused, "t", ttl_ext_e2e::PATIENCE);
        let refused = attacker.error("SELECT v FROM secret");
        assert_eq!(refused.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{what}");
    }
}

/// S1 (before 18), in an INSERT that replaces an expired row: code ran as the inserting user, here
/// the owner of the secret.
#[test]
fn h2_a_referring_stranger_runs_nothing_as_who_inserts() {
    let server = hostile::start(&[("ttl.enabled", "off")]);
    for (what, trap) in CHILDREN {
        let database = hostile::armed_database(&server);
        let (mut victim, mut attacker) = parent_and_child(&database, trap);
        victim.run("SELECT ttl.enable('parent', 3600)");
        let inserted = victim.try_run("INSERT INTO parent (id) VALUES (1)");
        let error = inserted.expect_err(what);
        let code = error.code().cloned();
        assert_eq!(
            code,
            Some(SqlState::INSUFFICIENT_PRIVILEGE),
            "{what}: {error}"
        );
        // Nothing is lost: the row is unchanged.
        assert_eq!(victim.value("SELECT count(*) FROM parent"), "1", "{what}");
        let refused = attacker.error("SELECT v FROM secret");
        assert_eq!(refused.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{what}");
    }
}

/// S7: any user could lock any table by ttl_internal.written_here, and have errors about files logged.
#[test]
fn l3_the_extensions_own_questions_are_not_for_others() {
    let database = hostile::armed_database(server());
    let mut victim = owner(&database, "victim");
    victim.run("CREATE TABLE t (id int)");
    victim.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    let mut attacker = database.connect_as("attacker");
    attacker.run("SET lock_timeout = '1s'");
    for tid in ["(0,1)", "(4294967294,1)", "(0,0)"] {
        let refused = attacker.error(&format!(
            "SELECT ttl_internal.written_here(c.oid, '{tid}') FROM pg_class AS c WHERE relname = 't'"
        ));
        assert_eq!(refused.code(), &SqlState::FEATURE_NOT_SUPPORTED);
    }
    victim.run("COMMIT");
    assert!(server().log_lines(&["could not open file"]).is_empty());
}

/// An owner without USAGE on the table's schema: deletion always failed, and so did a superuser's
/// calls (42501), because the name was looked up as the owner.
#[test]
fn an_owner_without_usage_on_the_schema() {
    let database = hostile::armed_database(server());
    let mut boss = database.disk();
    boss.run("CREATE SCHEMA app; GRANT USAGE, CREATE ON SCHEMA app TO victim");
    let mut victim = owner(&database, "victim");
    victim.run(
        "CREATE TABLE app.direct (id int PRIMARY KEY); SELECT ttl.enable('app.direct', 3600);
         CREATE TABLE app.fired (id int PRIMARY KEY); SELECT ttl.enable('app.fired', 3600);
         CREATE FUNCTION app.nothing() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN OLD; END$$;
         CREATE TRIGGER t BEFORE DELETE ON app.fired FOR EACH ROW EXECUTE FUNCTION app.nothing()",
    );
    boss.run("REVOKE USAGE ON SCHEMA app FROM victim; REVOKE ALL ON SCHEMA app FROM PUBLIC");
    for table in ["app.direct", "app.fired"] {
        boss.insert_expired(table, 1, 3);
        boss.wait_for_none(table);
        let stays =
            format!("SELECT last_error FROM ttl.stats WHERE relation = '{table}'::regclass");
        assert_eq!(boss.value(&stays), "∅");
    }
    boss.run("SET ttl.show_expired = off");
    for (number, call) in [
        "SELECT ttl.purge('{}')",
        "CREATE UNIQUE INDEX ON {} (id)",
        "SELECT * FROM ttl.preview('{}')",
        "SELECT ttl.set_default('{}', 7200)",
        "SELECT ttl.disable('{}')",
    ]
    .into_iter()
    .enumerate()
    {
        for table in ["app.direct", "app.fired"] {
            if number < 4 {
                boss.insert_expired(table, 11, 13);
            }
            boss.run(&call.replace("{}", table));
        }
    }
}
