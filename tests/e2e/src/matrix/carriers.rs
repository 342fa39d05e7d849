//! Carriers: places of a table where its owner's functions run.
//!
//! Only superusers can create operator classes, base types with output functions, event triggers or
//! support functions. In their place stands what any user can create: a range type with a
//! subtype_diff function in a GiST index (the only index support function that a plain owner can
//! supply), a domain, an index on an expression.
//!
//! In the SQL, `{t}` is the table that carries the code, `{s}` the case's schema.

/// One place for code.
#[derive(Debug, Clone, Default)]
pub(super) struct Carrier {
    pub(super) name: String,
    /// The table is the victim's: the attacker has REFERENCES on it, and a table of their own.
    pub(super) stranger: bool,
    /// Further columns and constraints of the table.
    pub(super) columns: &'static str,
    /// What the attacker creates once the table has rows.
    pub(super) after: String,
    /// The expression by which the table is partitioned.
    pub(super) key: Option<&'static str>,
    /// The code sits at the archive of the table's expired rows: how that ends, as in
    /// `PARTITION BY`.
    pub(super) archive: Option<&'static str>,
}

/// As triggers: for rows and statements, immediate and deferred.
const TIMES: [(&str, &str, &str); 5] = [
    ("before_row", "TRIGGER carry BEFORE", "ROW"),
    ("after_row", "TRIGGER carry AFTER", "ROW"),
    ("deferred", "CONSTRAINT TRIGGER carry AFTER", "ROW"),
    ("before_statement", "TRIGGER carry BEFORE", "STATEMENT"),
    ("after_statement", "TRIGGER carry AFTER", "STATEMENT"),
];

fn trigger(kind: &str, how: &str, each: &str, event: &str, table: &str) -> String {
    let deferred = if kind == "deferred" {
        "DEFERRABLE INITIALLY DEFERRED "
    } else {
        ""
    };
    format!(
        "CREATE {how} {event} ON {table} {deferred}FOR EACH {each} EXECUTE FUNCTION arms.trg();"
    )
}

const COLUMNS: [(&str, &str); 6] = [
    ("check", "CHECK (arms.pure(id) > -1)"),
    ("check_constant", "CHECK (id > arms.pure(-1))"),
    ("domain", "x arms.checked DEFAULT 5"),
    (
        "generated_column",
        "x integer GENERATED ALWAYS AS (arms.pure(id)) STORED",
    ),
    ("default", "x integer DEFAULT arms.impure(5)"),
    ("exclusion", "EXCLUDE USING btree ((arms.pure(id)) WITH =)"),
];

const AFTER: [(&str, &str); 17] = [
    ("index_expression", "CREATE INDEX ON {t} ((arms.pure(id)));"),
    ("index_constant", "CREATE INDEX ON {t} ((arms.pure(1)));"),
    (
        "index_predicate",
        "CREATE INDEX ON {t} (id) WHERE arms.pure(id) > -1;",
    ),
    (
        "index_predicate_constant",
        "CREATE INDEX ON {t} (id) WHERE id > arms.pure(-1);",
    ),
    (
        "unique_expression",
        "CREATE UNIQUE INDEX ON {t} ((arms.pure(id)));",
    ),
    (
        "unique_predicate",
        "CREATE UNIQUE INDEX ON {t} (id) WHERE id > arms.pure(-1);",
    ),
    (
        "statistics",
        "CREATE STATISTICS {s}.st ON (arms.pure(id)), (arms.pure(1)) FROM {t};",
    ),
    (
        "subtype_diff",
        "CREATE INDEX ON {t} USING gist (arms.span(id, id + 1));
         INSERT INTO {t} (id, k, _ts) SELECT n, n, (SELECT min(_ts) FROM {t}) FROM generate_series(1000, 1600) AS n;",
    ),
    (
        "rule_delete",
        "CREATE RULE carry AS ON DELETE TO {t} DO ALSO SELECT arms.impure(1);",
    ),
    (
        "rule_insert",
        "CREATE RULE carry AS ON INSERT TO {t} DO ALSO SELECT arms.impure(1);",
    ),
    (
        "rule_update",
        "CREATE RULE carry AS ON UPDATE TO {t} DO ALSO SELECT arms.impure(1);",
    ),
    (
        "policy",
        "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; ALTER TABLE {t} FORCE ROW LEVEL SECURITY;
         CREATE POLICY carry ON {t} USING (arms.pure(id) > -1) WITH CHECK (arms.pure(id) > -1);",
    ),
    // An own type, with a cast that is a function; the default, the condition and the index go by it.
    (
        "cast_default",
        "ALTER TABLE {t} ADD y arms.boxed DEFAULT CAST (5 AS arms.boxed);",
    ),
    (
        "cast_index",
        "CREATE INDEX ON {t} ((CAST (id AS arms.boxed)));",
    ),
    (
        "cast_predicate",
        "CREATE INDEX ON {t} (id) WHERE CAST (id AS arms.boxed) IS NOT NULL;",
    ),
    (
        "view",
        "CREATE VIEW {s}.seen AS SELECT arms.impure(id) AS i, t.* FROM {t} AS t;
         CREATE TRIGGER carry INSTEAD OF DELETE ON {s}.seen FOR EACH ROW EXECUTE FUNCTION arms.trg();",
    ),
    (
        "policy_constant",
        "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; ALTER TABLE {t} FORCE ROW LEVEL SECURITY;
         CREATE POLICY carry ON {t} USING (id > arms.pure(-1));",
    ),
];

/// The attacker's table that refers to the victim's, and what it carries.
fn child(action: &str, carries: &str) -> String {
    format!(
        "CREATE TABLE {{s}}.c (cid integer PRIMARY KEY DEFAULT 0, tid integer REFERENCES {{t}} (id) ON DELETE {action});\n\
         INSERT INTO {{s}}.c SELECT id, id FROM {{t}};\n{carries}"
    )
}

/// All of them, in an order that stays.
pub(super) fn all() -> Vec<Carrier> {
    let mut all = Vec::new();
    let named = |name: String| Carrier {
        name,
        ..Carrier::default()
    };
    for event in ["DELETE", "INSERT", "UPDATE"] {
        for (kind, how, each) in TIMES {
            let mut carrier = named(format!("{kind}_{}", event.to_lowercase()));
            carrier.after = trigger(kind, how, each, event, "{t}");
            all.push(carrier);
        }
    }
    for (name, columns) in COLUMNS {
        let mut carrier = named(name.to_owned());
        carrier.columns = columns;
        all.push(carrier);
    }
    for (name, after) in AFTER {
        let mut carrier = named(name.to_owned());
        carrier.after = after.to_owned();
        all.push(carrier);
    }
    let mut carrier = named("partition_key".to_owned());
    carrier.key = Some("LIST ((arms.pure(id)))");
    all.push(carrier);
    all.extend(strangers());
    all.extend(archives());
    all
}

/// Whatever the archive of the table carries, which the attacker owns.
fn archives() -> Vec<Carrier> {
    let mut all = Vec::new();
    let mut add = |name: &str, after: String, ends: &'static str| {
        all.push(Carrier {
            name: format!("archive_{name}"),
            after,
            archive: Some(ends),
            ..Carrier::default()
        });
    };
    for (kind, how, each) in TIMES {
        add(kind, trigger(kind, how, each, "INSERT", "{s}.gone"), "");
    }
    for (name, after) in [
        ("check", "ALTER TABLE {s}.gone ADD CHECK (arms.pure(id) > -1);"),
        ("default", "ALTER TABLE {s}.gone ADD x integer DEFAULT arms.impure(5);"),
        ("domain", "ALTER TABLE {s}.gone ADD x arms.checked DEFAULT 5;"),
        (
            "generated",
            "ALTER TABLE {s}.gone ADD x integer GENERATED ALWAYS AS (arms.pure(id)) STORED;",
        ),
        ("index", "CREATE INDEX ON {s}.gone ((arms.pure(id)));"),
        (
            "index_constant",
            "CREATE INDEX ON {s}.gone (id) WHERE id > arms.pure(-1);",
        ),
        (
            "rule",
            "CREATE RULE carry AS ON INSERT TO {s}.gone DO ALSO SELECT arms.impure(1);",
        ),
        (
            "policy",
            "ALTER TABLE {s}.gone ENABLE ROW LEVEL SECURITY; ALTER TABLE {s}.gone FORCE ROW LEVEL SECURITY;
             CREATE POLICY carry ON {s}.gone USING (arms.pure(id) > -1) WITH CHECK (arms.pure(id) > -1);",
        ),
    ] {
        add(name, after.to_owned(), "");
    }
    add(
        "partition",
        "CREATE TABLE {s}.gone1 PARTITION OF {s}.gone DEFAULT;".to_owned(),
        " PARTITION BY LIST ((arms.pure(id)))",
    );
    all
}

fn strangers() -> Vec<Carrier> {
    let mut all = Vec::new();
    let mut add = |name: String, after: String| {
        all.push(Carrier {
            name,
            stranger: true,
            after,
            ..Carrier::default()
        });
    };
    for (action, event) in [("CASCADE", "DELETE"), ("SET NULL", "UPDATE")] {
        let short = if action == "CASCADE" {
            "cascade"
        } else {
            "null"
        };
        for (kind, how, each) in TIMES {
            let carries = trigger(kind, how, each, event, "{s}.c");
            add(format!("fk_{short}_{kind}"), child(action, &carries));
        }
    }
    let set_default = "ALTER TABLE {s}.c ALTER tid SET DEFAULT NULLIF(arms.impure(0), 0);";
    add("fk_default".to_owned(), child("SET DEFAULT", set_default));
    let index = "CREATE INDEX ON {s}.c ((arms.pure(1)), (arms.pure(tid)));";
    add("fk_cascade_index".to_owned(), child("CASCADE", index));
    let check = "ALTER TABLE {s}.c ADD CHECK (arms.pure(cid) > -1);";
    add("fk_null_check".to_owned(), child("SET NULL", check));
    let rule = "CREATE RULE carry AS ON DELETE TO {s}.c DO ALSO SELECT arms.impure(1);";
    add("fk_cascade_rule".to_owned(), child("CASCADE", rule));
    all
}

/// What a table's owner could have made as well, for the visitors that write: what their own
/// statements fire. On a plain server it says what the owner can have in any case. In place of a
/// deferred trigger a deferred one: one that fires before it would end the statement first.
pub(super) fn equivalent(events: &str, carrier: &Carrier) -> Carrier {
    equivalent_at(events, carrier, |_| true)
}

/// The same, without triggers for the statement.
pub(super) fn equivalent_for_rows(events: &str, carrier: &Carrier) -> Carrier {
    equivalent_at(events, carrier, |each| each == "ROW")
}

fn equivalent_at(events: &str, carrier: &Carrier, fires: impl Fn(&str) -> bool) -> Carrier {
    let mut after = String::new();
    let is_deferred = carrier.name.starts_with("deferred");
    let times = TIMES
        .iter()
        .filter(|(kind, ..)| !is_deferred || *kind == "deferred")
        .filter(|(_, _, each)| fires(each));
    for (kind, how, each) in times {
        let how = how.replace("carry", &format!("carry_{kind}"));
        after += &trigger(kind, &how, each, events, "{t}");
    }
    Carrier {
        name: "equivalent".to_owned(),
        after,
        ..Carrier::default()
    }
}
