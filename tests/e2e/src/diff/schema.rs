//! The schemas that are compared, and what the generator knows of them.

use crate::{Database, Server};

/// What a schema holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tables with TTL, their expired rows still on disk.
    Ttl,
    /// The same tables without TTL, their expired rows deleted.
    Deleted,
    /// As `Deleted`, with the rows stored in the reverse order: a query whose
    /// result differs from that of `Deleted` is not deterministic.
    Control,
}

impl Kind {
    /// The schema's name.
    pub fn schema(self) -> &'static str {
        match self {
            Kind::Ttl => "a",
            Kind::Deleted => "b",
            Kind::Control => "c",
        }
    }
}

/// Functions that a schema's script calls, for tables with TTL.
const TTL: &str = "
CREATE FUNCTION pg_temp.enable(rel text, default_ttl integer, override boolean) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    IF override THEN PERFORM ttl.enable(rel::regclass, default_ttl, ts_granularity => 3600, index => 'btree');
    ELSE PERFORM ttl.enable(rel::regclass, default_ttl, ttl_column => NULL); END IF;
END $$;
CREATE FUNCTION pg_temp.enable_document(rel text, default_ttl integer) RETURNS void
LANGUAGE sql AS 'SELECT ttl.enable(rel::regclass, default_ttl, document_column => ''doc'')';
CREATE FUNCTION pg_temp.disable(rel text) RETURNS void
LANGUAGE sql AS 'SELECT ttl.disable(rel::regclass)';
CREATE FUNCTION pg_temp.finish(rel text, default_ttl integer) RETURNS void
LANGUAGE sql AS '';
SET ttl.preserve_ts = on;";

/// The same for tables whose expired rows are deleted: the rules C3, C5, D2 and D3 written again,
/// independently of the extension.
const DELETED: &str = "
CREATE FUNCTION pg_temp.enable(rel text, default_ttl integer, override boolean) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('ALTER TABLE %I ADD COLUMN IF NOT EXISTS _ts timestamptz NOT NULL DEFAULT now()', rel);
    IF override THEN
        EXECUTE format('ALTER TABLE %I ADD COLUMN IF NOT EXISTS ttl integer', rel);
    END IF;
END $$;
CREATE FUNCTION pg_temp.enable_document(rel text, default_ttl integer) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_temp.enable(rel, default_ttl, false);
    EXECUTE format('ALTER TABLE %I ADD COLUMN ttl integer GENERATED ALWAYS AS (
        CASE WHEN jsonb_typeof(doc -> ''ttl'') = ''number''
        THEN CASE WHEN (doc ->> ''ttl'')::numeric IN (-1, trunc((doc ->> ''ttl'')::numeric))
                   AND (doc ->> ''ttl'')::numeric BETWEEN -1 AND 2147483647 AND (doc ->> ''ttl'')::numeric <> 0
             THEN (doc ->> ''ttl'')::numeric::integer END END) STORED', rel);
END $$;
CREATE FUNCTION pg_temp.disable(rel text) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION pg_temp.finish(rel text, default_ttl integer) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('DELETE FROM %I AS t WHERE
        CASE coalesce((to_jsonb(t) ->> ''ttl'')::integer, %s)
        WHEN -1 THEN false
        ELSE _ts + coalesce((to_jsonb(t) ->> ''ttl'')::integer, %2$s) * interval ''1 second'' <= now()
        END', rel, default_ttl);
END $$;";

/// The TTL indexes (M1 to M5), for tables with TTL, where `sweep()` does nothing.
const TTL_INDEXES: &str = "
CREATE FUNCTION pg_temp.expire(rel text, col text, seconds integer, predicate text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF predicate IS NULL OR col ~ 's$' THEN
        PERFORM ttl.create_index(rel::regclass, jsonb_build_object(col, CASE WHEN seconds = 0 THEN -1 ELSE 1 END),
            jsonb_build_object('expireAfterSeconds', seconds, 'name', rel || '_' || col || seconds)
            || CASE WHEN predicate IS NULL THEN '{}' ELSE jsonb_build_object('partialFilterExpression', predicate) END);
    ELSE
        EXECUTE format('CREATE INDEX %I ON %I (%I) WHERE %s', rel || '_' || col || seconds, rel, col, predicate);
        PERFORM ttl.expire_index((rel || '_' || col || seconds)::regclass, seconds);
    END IF;
END $$;
CREATE FUNCTION pg_temp.expire_by(rel text, key text, seconds integer, zone text, predicate text, gone text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE name text := rel || '_by_' || md5(key);
BEGIN
    EXECUTE format('CREATE INDEX %I ON %I (%s) WHERE %s', name, rel, key, predicate);
    PERFORM ttl.expire_index(name::regclass, seconds, time_zone => zone);
END $$;
CREATE FUNCTION pg_temp.finish_indexes() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION sweep() RETURNS void LANGUAGE plpgsql AS 'BEGIN END';";

/// The same for tables whose expired rows are deleted, by M2, M3, M4 and M12. `sweep()` deletes the
/// rows that a statement made expire.
const DELETED_INDEXES: &str = "
CREATE TEMP TABLE rules (statement text);
CREATE FUNCTION pg_temp.expire(rel text, col text, seconds integer, predicate text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE date text := CASE WHEN col ~ 's$' THEN format('(SELECT min(d) FROM unnest(%I) AS d)', col) ELSE quote_ident(col) END;
BEGIN
    INSERT INTO rules SELECT format('DELETE FROM %I.%I WHERE (%s) AND isfinite(%s)
        AND CASE WHEN %4$s < ''2100-01-01'' THEN %4$s + %s * interval ''1 second'' <= %s ELSE false END;',
        current_schema, rel, coalesce(predicate, 'true'), date, seconds,
        CASE WHEN col IN ('at', 'dates') THEN 'now()' ELSE 'now() AT TIME ZONE ''UTC''' END);
END $$;
CREATE FUNCTION pg_temp.expire_by(rel text, key text, seconds integer, zone text, predicate text, gone text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO rules SELECT format('DELETE FROM %I.%I WHERE CASE WHEN %s THEN %s END;', current_schema, rel, predicate, gone);
$$;
CREATE FUNCTION pg_temp.finish_indexes() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('CREATE FUNCTION sweep() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS %L',
        'BEGIN ' || (SELECT string_agg(statement, ' ') FROM rules) || ' END');
    PERFORM sweep();
END $$;";

const LOAD: &str = "
CREATE FUNCTION pg_temp.adopt(parent text, child text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE con record;
BEGIN
    FOR con IN SELECT conname, pg_get_constraintdef(oid) AS def FROM pg_constraint
                WHERE conrelid = parent::regclass AND contype = 'c' LOOP
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I %s', child, con.conname, con.def);
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.load(rel text, salt integer, low integer, high integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE cols text;
BEGIN
    SELECT string_agg(quote_ident(attname), ', ') INTO cols FROM pg_attribute
     WHERE attrelid = rel::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'more' AND attgenerated = '';
    EXECUTE format('INSERT INTO %I (%s) SELECT %2$s FROM src.rows WHERE salt = $1 AND id BETWEEN $2 AND $3 ORDER BY id {order}',
                   rel, cols) USING salt, low, high;
END $$;";

/// Make the database of the differential test with these schemas.
pub fn build<'a>(server: &'a Server, name: &str, kinds: &[Kind]) -> Database<'a> {
    let with_ttl = kinds.contains(&Kind::Ttl);
    let database = if with_ttl {
        server.database(name)
    } else {
        server.plain_database(name)
    };
    database.connect().run(include_str!("rows.sql"));
    for &kind in kinds {
        // A session for each: its temporary functions differ.
        let mut session = database.connect();
        let (schema, order) = (
            kind.schema(),
            if kind == Kind::Control { "DESC" } else { "" },
        );
        session.run(&format!(
            "CREATE SCHEMA {schema}; SET search_path = {schema}"
        ));
        for script in match kind {
            Kind::Ttl => [TTL, TTL_INDEXES],
            _ => [DELETED, DELETED_INDEXES],
        } {
            session.run(script);
        }
        session.run(&LOAD.replace("{order}", order));
        session.run(include_str!("schema.sql"));
        session.run(include_str!("ttl_indexes.sql"));
        session.run(&format!(
            "GRANT USAGE ON SCHEMA {schema} TO app;
             GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO app"
        ));
        session.run("ANALYZE");
    }
    database
}

/// The type of a generated expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// integer
    Int,
    /// text
    Text,
    /// timestamptz or timestamp
    Time,
    /// date, which may be one that no timestamp reaches
    Day,
    /// boolean
    Bool,
    /// jsonb
    Json,
}

/// The columns that every relation has, whatever their order; those without an
/// override lack the last.
pub const COLUMNS: [(&str, Type); 9] = [
    ("id", Type::Int),
    ("ref", Type::Int),
    ("grp", Type::Int),
    ("val", Type::Int),
    ("txt", Type::Text),
    ("doc", Type::Json),
    ("flag", Type::Bool),
    ("_ts", Type::Time),
    ("ttl", Type::Int),
];

/// The columns by which rows of relations that [`has_dates`] expire, as queries read them.
pub const DATES: [(&str, &str, Type); 6] = [
    ("at", "at", Type::Time),
    ("moment", "moment", Type::Time),
    ("day", "day", Type::Day),
    ("dates", "dates[1]", Type::Time),
    ("moments", "moments[2]", Type::Time),
    ("days", "days[1]", Type::Day),
];

/// Does the relation have an override column?
pub fn has_override(relation: &str) -> bool {
    let without = matches!(relation, "d" | "e" | "e1" | "e2" | "e3");
    !without && (!relation.starts_with("i_") || relation == "i_clock")
}

/// Does it have the columns of [`DATES`], and TTL indexes on some of them?
pub fn has_dates(relation: &str) -> bool {
    relation.starts_with("i_") || relation == "v_dates"
}

/// Can its override be set? That of `j` is generated from the document.
pub fn takes_override(relation: &str) -> bool {
    has_override(relation) && relation != "j"
}

/// Plain tables with a primary key; all of them have TTL but `x` and `z`, and those
/// named `i_` by TTL indexes.
pub const KEYED: &[&str] = &[
    "d", "o", "n", "w", "r", "h", "j", "x", "z", "i_at", "i_moment", "i_day", "i_array", "i_clock",
    "i_expr", "i_zone",
];
/// Those that were filled from `src.rows`, by its `salt`, each with a key of its own.
pub const SALTED: &[(&str, i32)] = &[
    ("d", 1),
    ("o", 2),
    ("n", 3),
    ("w", 4),
    ("z", 6),
    ("h", 8),
    ("r", 9),
    ("j", 10),
    ("i_at", 12),
    ("i_moment", 13),
    ("i_day", 14),
    ("i_array", 15),
    ("i_clock", 16),
    ("i_expr", 20),
    ("i_zone", 21),
];
/// Tables on which rows may be changed, parents and children among them.
pub const TARGETS: &[&str] = &[
    "d", "o", "n", "w", "p", "p1", "p2", "p2a", "p2b", "p3", "h", "h1", "h2", "h11", "r", "z", "e",
    "j", "i_at", "i_moment", "i_day", "i_array", "i_clock", "i_parts", "i_p1", "i_p2", "i_p2a",
    "i_p2b", "i_p3", "i_range", "i_heirs", "i_h1", "i_h2", "i_expr", "i_zone",
];
/// Everything that can stand in FROM by its name.
pub const RELATIONS: &[&str] = &[
    "d",
    "d",
    "o",
    "o",
    "n",
    "n",
    "w",
    "x",
    "z",
    "p",
    "p",
    "p1",
    "p2",
    "p2a",
    "p2b",
    "p2c",
    "p3",
    "h",
    "h",
    "h1",
    "h2",
    "h11",
    "r",
    "v_plain",
    "v_join",
    "v_union",
    "v_union",
    "v_mixed",
    "v_barrier",
    "v_group",
    "v_invoker",
    "v_nested",
    "mv",
    "i_at",
    "i_at",
    "i_moment",
    "i_day",
    "i_array",
    "i_clock",
    "i_parts",
    "i_parts",
    "i_p1",
    "i_p2",
    "i_p2b",
    "i_p3",
    "i_range",
    "i_heirs",
    "i_heirs",
    "i_h1",
    "i_h2",
    "i_expr",
    "i_expr",
    "i_zone",
    "i_zone",
    "i_view",
    "v_dates",
    "v_dates",
];
/// Parents, which FROM ONLY restricts.
pub const PARENTS: &[&str] = &[
    "h", "h1", "p", "p2", "d", "o", "e", "e2", "i_heirs", "i_parts", "i_at",
];
/// Functions that return rows of a group.
pub const FUNCTIONS: &[&str] = &["f_inline", "f_atomic", "f_plpgsql"];
/// Views that take UPDATE and DELETE.
pub const UPDATABLE: &[&str] = &["v_plain", "v_barrier", "v_invoker", "i_view"];
