//! The statements of visitors. Of the rows 1 to 3, the first is expired by its age, the second by
//! the TTL index `t_d`; `k` is unique.

/// For deletion without hiding.
pub(super) const NOT_HIDDEN: &str = "SELECT ttl.enable('{s}.t', 3600, hidden => false);";

/// The label is written by hand, as a dump does: the table waits for ttl.resume.
const RESTORED: &str = "DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR ttl ON TABLE {s}.t IS %L',
    (SELECT label FROM pg_seclabel WHERE objoid = '{s}.t'::regclass AND provider = 'ttl')); END $$;";

pub(super) const LOOKS: [(&str, &str); 7] = [
    ("tables", "SELECT * FROM ttl.tables"),
    ("stats", "SELECT * FROM ttl.stats"),
    ("progress", "SELECT * FROM ttl.progress"),
    ("placements", "SELECT * FROM ttl.placements"),
    ("check", "SELECT * FROM ttl.check()"),
    ("problems", "SELECT ttl.problems('{s}.t')"),
    ("rules", "SELECT ttl_internal.rules('{s}.t')"),
];

/// Name, statement, what the owner does before.
pub(super) const ACTS: [(&str, &str, &str); 29] = [
    ("expired", "SELECT * FROM ttl.expired(NULL::{s}.t)", ""),
    ("preview", "SELECT * FROM ttl.preview('{s}.t')", ""),
    (
        "preview_other",
        "SELECT * FROM ttl.preview('{s}.t', 10)",
        "",
    ),
    ("purge", "SELECT ttl.purge('{s}.t')", ""),
    ("revive", "SELECT ttl.revive('{s}.t')", ""),
    ("revive_some", "SELECT ttl.revive('{s}.t', 'k > 0')", ""),
    (
        "set_option",
        "SELECT ttl.set_option('{s}.t', 'default_ttl', '864000')",
        "",
    ),
    (
        "set_option_seen",
        "SELECT ttl.set_option('{s}.t', 'hidden', 'false')",
        "",
    ),
    ("reset_stats", "SELECT ttl.reset_stats('{s}.t')", ""),
    ("set_default", "SELECT ttl.set_default('{s}.t', 864000)", ""),
    (
        "set_default_null",
        "SELECT ttl.set_default('{s}.t', NULL)",
        "",
    ),
    ("disable", "SELECT ttl.disable('{s}.t')", ""),
    (
        "disable_columns",
        "SELECT ttl.disable('{s}.t', drop_columns => true)",
        "",
    ),
    (
        "alter_set",
        "ALTER TABLE {s}.t SET (ttl.default_ttl = 864000)",
        "",
    ),
    ("alter_reset", "ALTER TABLE {s}.t RESET (ttl.default_ttl)", ""),
    ("enable_again", "SELECT ttl.enable('{s}.t', 864000)", ""),
    (
        "enable_documents",
        "SELECT ttl.enable('{s}.t', 864000, document_column => 'doc')",
        "SELECT ttl.disable('{s}.t', drop_columns => true); ALTER TABLE {s}.t DROP ttl, ADD doc jsonb;
         SELECT ttl.enable('{s}.t', 3600); SELECT ttl.expire_index('{s}.t_d', 3600);",
    ),
    ("pause", "SELECT ttl.pause('{s}.t')", ""),
    (
        "is_live",
        "SELECT ttl.is_live(t), ttl.is_live(r) FROM (SELECT t, t AS r FROM {s}.t) AS t (t, r)",
        NOT_HIDDEN,
    ),
    (
        "live_view",
        "SELECT ttl.create_live_view('{s}.t', 't_live'); SELECT * FROM {s}.t_live",
        NOT_HIDDEN,
    ),
    (
        "disable_view",
        "SELECT ttl.disable('{s}.t', drop_columns => true)",
        "SELECT ttl.create_live_view('{s}.t', 't_live', drop_with_policy => true);",
    ),
    ("resume", "SELECT ttl.resume('{s}.t')", RESTORED),
    ("archive_to", "SELECT ttl.archive_to('{s}.t', '{s}.gone')", "CREATE TABLE {s}.gone (LIKE {s}.t);"),
    (
        "purge_archived",
        "SELECT ttl.purge('{s}.t')",
        "CREATE TABLE {s}.gone (LIKE {s}.t); SELECT ttl.archive_to('{s}.t', '{s}.gone');",
    ),
    (
        "expire_index",
        "SELECT ttl.expire_index('{s}.t_d', 864000)",
        "",
    ),
    (
        "expire_index_null",
        "SELECT ttl.expire_index('{s}.t_d', NULL)",
        "",
    ),
    (
        "ttl_create_index",
        "SELECT ttl.create_index('{s}.t', '{\"e\": 1}', '{\"expireAfterSeconds\": 60}')",
        "",
    ),
    (
        "coll_mod",
        "SELECT ttl.coll_mod('{s}.t', '{\"index\": {\"keyPattern\": {\"d\": 1}, \"expireAfterSeconds\": 864000}}')",
        "",
    ),
    (
        "coll_mod_new",
        "SELECT ttl.coll_mod('{s}.t', '{\"index\": {\"keyPattern\": {\"e\": 1}, \"expireAfterSeconds\": 60}}')",
        "CREATE INDEX t_e ON {s}.t (e);",
    ),
];

/// It rewrites the table, and builds its indexes again.
pub(super) const REWRITE: &str = "ALTER TABLE {s}.t ALTER n TYPE bigint";

/// Name, statement, whether it reads expired rows (others delete them first, so that they are not
/// there on the plain server).
pub(super) const DDL: [(&str, &str, bool); 14] = [
    ("create_index", "CREATE INDEX ON {s}.t (n)", true),
    (
        "create_unique_index",
        "CREATE UNIQUE INDEX ON {s}.t (k, n)",
        false,
    ),
    ("drop_index", "DROP INDEX {s}.t_d", true),
    (
        "rename_index",
        "ALTER INDEX {s}.t_d RENAME TO t_other",
        true,
    ),
    ("add_check", "ALTER TABLE {s}.t ADD CHECK (n > -1)", false),
    ("add_unique", "ALTER TABLE {s}.t ADD UNIQUE (k, n)", false),
    (
        "set_not_null",
        "ALTER TABLE {s}.t ALTER n SET NOT NULL",
        false,
    ),
    ("alter_type", REWRITE, false),
    (
        "add_column",
        "ALTER TABLE {s}.t ADD z integer DEFAULT 1 CHECK (z > 0)",
        false,
    ),
    ("rename_column", "ALTER TABLE {s}.t RENAME d TO other", true),
    (
        "drop_column_cascade",
        "ALTER TABLE {s}.t DROP d CASCADE",
        true,
    ),
    ("drop_parent_cascade", "DROP TABLE {s}.p CASCADE", true),
    ("drop_cascade", "DROP TABLE {s}.t CASCADE", true),
    ("truncate", "TRUNCATE {s}.t CASCADE", true),
];

/// Each frees the key of the first row.
pub(super) const WRITES: [(&str, &str); 7] = [
    ("insert", "INSERT INTO {s}.t (id, k) VALUES (11, 1)"),
    ("insert_id", "INSERT INTO {s}.t (id, k) VALUES (2, 12)"),
    ("copy", "COPY {s}.t (id, k) FROM STDIN"),
    (
        "upsert",
        "INSERT INTO {s}.t (id, k) VALUES (11, 1) ON CONFLICT (k) DO UPDATE SET n = 1",
    ),
    (
        "upsert_nothing",
        "INSERT INTO {s}.t (id, k) VALUES (11, 1) ON CONFLICT DO NOTHING",
    ),
    (
        "merge",
        "MERGE INTO {s}.t USING (VALUES (11, 1)) AS v (id, k) ON t.k = v.k
         WHEN MATCHED THEN UPDATE SET n = 1 WHEN NOT MATCHED THEN INSERT (id, k) VALUES (v.id, v.k)",
    ),
    ("update_key", "UPDATE {s}.t SET k = 1 WHERE id = 3"),
];

/// The data of `copy`.
pub(super) const COPIED: &str = "11\t1\n";

/// A table of the victim's that refers to `t`, with a row for each that is live.
pub(super) const REFERRING: &str =
    "CREATE TABLE {s}.r (rid integer REFERENCES {s}.t ON DELETE NO ACTION);
     INSERT INTO {s}.r VALUES (3);
     GRANT ALL ON {s}.r TO {a};";

/// PostgreSQL looks the referenced row up: one that is there, one that is expired.
pub(super) const REFERENCES: [(&str, &str); 3] = [
    ("refer", "INSERT INTO {s}.r VALUES (3)"),
    ("refer_expired", "INSERT INTO {s}.r VALUES (1)"),
    ("refer_update", "UPDATE {s}.r SET rid = 1 WHERE rid = 3"),
];

/// Name, action of the foreign key, and whether the referring rows are there on the plain server:
/// what stands in nobody's way is deleted by the extension where a live row would raise an error.
pub(super) const PARENTS: [(&str, &str, bool); 4] = [
    ("delete_referenced_cascade", "CASCADE", true),
    ("delete_referenced_null", "SET NULL", true),
    ("delete_referenced_restrict", "RESTRICT", false),
    ("delete_referenced_check", "NO ACTION", false),
];

pub(super) const CONTROLS: [(&str, &str); 4] = [
    ("select", "SELECT * FROM {s}.t WHERE id > 0"),
    ("delete_self", "DELETE FROM {s}.t WHERE id = 3"),
    ("analyze", "ANALYZE {s}.t"),
    ("reindex", "REINDEX TABLE {s}.t"),
];
