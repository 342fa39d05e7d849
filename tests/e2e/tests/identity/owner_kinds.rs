//! Owners that are less than an owner usually is, or whose sessions begin with settings of their
//! own; and the tables that each of them has.

/// What becomes of the expired rows of such an owner's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// They are gone, and triggers have fired as the owner.
    Gone,
    /// They are, or they stay and `ttl.tables` says why, and what to do.
    Either,
}

/// A role that owns tables.
#[derive(Debug)]
pub(super) struct Owner {
    /// The role's name.
    pub(super) name: &'static str,
    /// Its attributes.
    pub(super) role: &'static str,
    /// What a superuser does before any row is expired; `{o}` is the role, and its schema.
    pub(super) condition: &'static str,
    /// The first version on which this can be.
    pub(super) since: u32,
    pub(super) outcome: Outcome,
}

const fn owner(name: &'static str, condition: &'static str) -> Owner {
    Owner {
        name,
        role: "LOGIN",
        condition,
        since: 15,
        outcome: Outcome::Gone,
    }
}

const RLS: &str = "
    ALTER TABLE {o}.plain ENABLE ROW LEVEL SECURITY; ALTER TABLE {o}.plain FORCE ROW LEVEL SECURITY;
    ALTER TABLE {o}.before ENABLE ROW LEVEL SECURITY; ALTER TABLE {o}.before FORCE ROW LEVEL SECURITY;
    ALTER TABLE {o}.after ENABLE ROW LEVEL SECURITY; ALTER TABLE {o}.after FORCE ROW LEVEL SECURITY;
    ALTER TABLE {o}.parent ENABLE ROW LEVEL SECURITY; ALTER TABLE {o}.parent FORCE ROW LEVEL SECURITY;
    ALTER TABLE {o}.archived ENABLE ROW LEVEL SECURITY; ALTER TABLE {o}.archived FORCE ROW LEVEL SECURITY;
    ALTER TABLE {o}.build ENABLE ROW LEVEL SECURITY; ALTER TABLE {o}.build FORCE ROW LEVEL SECURITY;";

const TENANT: &str = "
    CREATE POLICY p ON {o}.plain USING (current_setting('app.tenant') = 'x');
    CREATE POLICY p ON {o}.before USING (current_setting('app.tenant') = 'x');
    CREATE POLICY p ON {o}.after USING (current_setting('app.tenant') = 'x');
    CREATE POLICY p ON {o}.parent USING (current_setting('app.tenant') = 'x');
    CREATE POLICY p ON {o}.archived USING (current_setting('app.tenant') = 'x');
    CREATE POLICY p ON {o}.build USING (current_setting('app.tenant') = 'x');";

/// Settings that a role or a database may have for its sessions.
pub(super) const SETTINGS: [(&str, &str); 21] = [
    ("search_path", "search_path = evil, pg_catalog"),
    ("no_path", "search_path = ''"),
    ("statement_timeout", "statement_timeout = '1ms'"),
    ("lock_timeout", "lock_timeout = '1ms'"),
    (
        "idle_timeout",
        "idle_in_transaction_session_timeout = '1ms'",
    ),
    ("idle_session", "idle_session_timeout = '1ms'"),
    ("read_only", "default_transaction_read_only = on"),
    ("isolation", "default_transaction_isolation = serializable"),
    (
        "repeatable",
        "default_transaction_isolation = 'repeatable read'",
    ),
    ("deferrable", "default_transaction_deferrable = on"),
    ("row_security", "row_security = off"),
    ("datestyle", "DateStyle = 'German, DMY'"),
    ("timezone", "TimeZone = 'Asia/Kathmandu'"),
    ("strings", "standard_conforming_strings = off"),
    ("quoting", "quote_all_identifiers = on"),
    ("nulls", "transform_null_equals = on"),
    ("plans", "enable_indexscan = off"),
    ("messages", "client_min_messages = error"),
    ("preserve", "ttl.preserve_ts = on"),
    ("replica", "session_replication_role = replica"),
    ("shows_expired", "ttl.show_expired = on"),
];

/// Those that are not only settings.
pub(super) fn owners() -> Vec<Owner> {
    vec![
        owner("usual", ""),
        Owner {
            role: "NOLOGIN",
            ..owner("nologin", "")
        },
        Owner {
            role: "LOGIN CONNECTION LIMIT 0",
            outcome: Outcome::Either,
            ..owner("limit_of_0", "")
        },
        Owner {
            role: "LOGIN SUPERUSER",
            ..owner("a_superuser", "")
        },
        Owner {
            role: "LOGIN NOINHERIT VALID UNTIL '2001-01-01'",
            ..owner("no_longer_valid", "")
        },
        Owner {
            role: "LOGIN BYPASSRLS",
            ..owner("bypasses", RLS)
        },
        owner(
            "no_usage",
            "REVOKE USAGE ON SCHEMA {o} FROM {o}; REVOKE ALL ON SCHEMA {o} FROM PUBLIC; ALTER SCHEMA {o} OWNER TO postgres",
        ),
        owner(
            "may_not_delete",
            "REVOKE DELETE ON ALL TABLES IN SCHEMA {o} FROM {o}",
        ),
        owner("sees_nothing", RLS),
        owner("sees_by_setting", joined(RLS, TENANT)),
        owner(
            "is_another",
            "CREATE ROLE somebody; GRANT somebody TO {o}; ALTER ROLE {o} SET role = 'somebody'",
        ),
        Owner {
            since: 17,
            ..owner(
                "transaction_timeout",
                "ALTER ROLE {o} SET transaction_timeout = '1ms'",
            )
        },
        Owner {
            outcome: Outcome::Either,
            ..owner(
                "cannot_start",
                "ALTER ROLE {o} SET session_preload_libraries = 'no_such_library'",
            )
        },
    ]
}

/// One text of two.
fn joined(first: &str, second: &str) -> &'static str {
    Box::leak(format!("{first}{second}").into_boxed_str())
}

/// What each owner has, in the schema of the same name: a table of each kind, as the owner.
pub(super) const TABLES: &str = "
    CREATE FUNCTION {o}.note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
      INSERT INTO public.log VALUES (TG_TABLE_SCHEMA, TG_TABLE_NAME, OLD.id, current_user, session_user);
      RETURN OLD; END$$;
    CREATE TABLE {o}.plain (id int PRIMARY KEY, v text);
    CREATE TABLE {o}.before (id int PRIMARY KEY, v text);
    CREATE TRIGGER t BEFORE DELETE ON {o}.before FOR EACH ROW EXECUTE FUNCTION {o}.note();
    CREATE TABLE {o}.after (id int PRIMARY KEY, v text);
    CREATE TRIGGER t AFTER DELETE ON {o}.after FOR EACH ROW EXECUTE FUNCTION {o}.note();
    CREATE TABLE {o}.parent (id int PRIMARY KEY);
    CREATE TABLE {o}.child (id int REFERENCES {o}.parent ON DELETE CASCADE);
    CREATE TRIGGER t AFTER DELETE ON {o}.child FOR EACH ROW EXECUTE FUNCTION {o}.note();
    CREATE TABLE {o}.archived (id int PRIMARY KEY, v text);
    CREATE TABLE {o}.dropped (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
    CREATE TABLE {o}.dropped_2020 PARTITION OF {o}.dropped FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
    CREATE TABLE {o}.dropped_now PARTITION OF {o}.dropped DEFAULT;
    CREATE TABLE {o}.build (id int PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now(), ttl int);
    SELECT ttl.enable('{o}.plain', 3600), ttl.enable('{o}.before', 3600), ttl.enable('{o}.after', 3600),
           ttl.enable('{o}.parent', 3600), ttl.enable('{o}.archived', 3600),
           ttl.enable('{o}.dropped', 3600, drop_partitions => true);
    CREATE TABLE {o}.gone (LIKE {o}.archived);
    SELECT ttl.archive_to('{o}.archived', '{o}.gone');";

/// Rows, all of them live.
pub(super) const ROWS: &str = "
    INSERT INTO {o}.parent (id) SELECT generate_series(0, 3);
    INSERT INTO {o}.child SELECT generate_series(0, 3);
    INSERT INTO {o}.dropped (id) VALUES (0);
    INSERT INTO {o}.plain (id) SELECT generate_series(0, 3);
    INSERT INTO {o}.before (id) SELECT generate_series(0, 3);
    INSERT INTO {o}.after (id) SELECT generate_series(0, 3);
    INSERT INTO {o}.archived (id) SELECT generate_series(0, 3);
    INSERT INTO {o}.build (id) SELECT generate_series(0, 3);";

/// All but the rows 0 expire. Last, `build` gets its TTL.
pub(super) const EXPIRE: &str = "
    BEGIN; SET LOCAL ttl.preserve_ts = on;
    UPDATE {o}.parent SET _ts = now() - interval '1 day' WHERE id > 0;
    INSERT INTO {o}.dropped (id, _ts) VALUES (1, '2020-06-01');
    UPDATE {o}.plain SET _ts = now() - interval '1 day' WHERE id > 0;
    UPDATE {o}.before SET _ts = now() - interval '1 day' WHERE id > 0;
    UPDATE {o}.after SET _ts = now() - interval '1 day' WHERE id > 0;
    UPDATE {o}.archived SET _ts = now() - interval '1 day' WHERE id > 0;
    UPDATE {o}.build SET _ts = now() - interval '1 day' WHERE id > 0;
    COMMIT;
    SELECT ttl.enable('{o}.build', 3600, index => 'btree', concurrently => true, confirm => true);";

/// A table, what is left of it when all is well, by a query, and how many notes of triggers it has.
pub(super) const KINDS: [(&str, &str, &str, i64); 7] = [
    (
        "plain",
        "SELECT array_agg(id)::text FROM {o}.plain",
        "{0}",
        0,
    ),
    (
        "before",
        "SELECT array_agg(id)::text FROM {o}.before",
        "{0}",
        3,
    ),
    (
        "after",
        "SELECT array_agg(id)::text FROM {o}.after",
        "{0}",
        3,
    ),
    (
        "parent",
        "SELECT (SELECT array_agg(id) FROM {o}.parent)::text || (SELECT array_agg(id) FROM {o}.child)::text",
        "{0}{0}",
        3,
    ),
    (
        "archived",
        "SELECT (SELECT array_agg(id) FROM {o}.archived)::text || (SELECT array_agg(id ORDER BY id) FROM {o}.gone)::text",
        "{0}{1,2,3}",
        0,
    ),
    (
        "dropped",
        "SELECT (SELECT array_agg(id) FROM {o}.dropped)::text || coalesce(to_regclass('{o}.dropped_2020')::text, '')",
        "{0}",
        0,
    ),
    (
        "build",
        "SELECT array_agg(id)::text FROM {o}.build",
        "{0}",
        0,
    ),
];

/// The table whose notes are counted for a kind.
pub(super) fn noted(kind: &str) -> &str {
    if kind == "parent" { "child" } else { kind }
}
