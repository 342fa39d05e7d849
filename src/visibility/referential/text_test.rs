//! S3 (docs/security.md): the texts of PostgreSQL's own queries, as servers of all versions write them.

use super::*;
use crate::pg::catalog::foreign_key::PeriodColumns;

fn operator(between: &str, after: &str) -> Operator {
    Operator {
        between: between.into(),
        after: after.into(),
    }
}

fn equals() -> Operator {
    operator(" OPERATOR(pg_catalog.=) ", "")
}

fn pair(referenced: &str, referencing: &str) -> ColumnPair {
    ColumnPair {
        referenced: format!("\"{referenced}\"").into(),
        referencing: format!("\"{referencing}\"").into(),
        equal: equals(),
        both_referenced: equals(),
        collation: vec![],
        is_deterministic: true,
    }
}

fn table(name: &str) -> ForeignKeyTable {
    ForeignKeyTable {
        name: name.into(),
        partitioned: false,
    }
}

/// `FOREIGN KEY (p) REFERENCES public.parent (id)`, or two columns.
fn key(columns: usize) -> ForeignKey {
    ForeignKey {
        referencing: table(r#""public"."c""#),
        referenced: table(r#""public"."Par""ent""#),
        pairs: [pair("id", "p"), pair("b", "pb")][..columns].to_vec(),
        on_delete: b'a',
        on_update: b'a',
        full: false,
        set_on_delete: vec![],
        period: None,
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn cascade_of_a_delete() {
    assert_eq!(
        text(&cascaded_delete(&key(2))),
        r#"DELETE FROM ONLY "public"."c" WHERE $1 OPERATOR(pg_catalog.=) "p" AND $2 OPERATOR(pg_catalog.=) "pb""#
    );
    let mut partitioned = key(1);
    partitioned.referencing.partitioned = true;
    partitioned.pairs[0].equal = operator(
        "::pg_catalog.text OPERATOR(pg_catalog.=) ",
        "::pg_catalog.text",
    );
    assert_eq!(
        text(&cascaded_delete(&partitioned)),
        r#"DELETE FROM "public"."c" WHERE $1::pg_catalog.text OPERATOR(pg_catalog.=) "p"::pg_catalog.text"#
    );
}

#[test]
fn updates_by_action() {
    let mut key = key(2);
    assert!(updates(&key).is_empty());
    (key.on_delete, key.on_update) = (b'n', b'c');
    key.set_on_delete = vec![br#""pb""#.to_vec()];
    let written = updates(&key);
    assert_eq!(
        written.iter().map(|bytes| text(bytes)).collect::<Vec<_>>(),
        [
            r#"UPDATE ONLY "public"."c" SET "p" = $1, "pb" = $2 WHERE $3 OPERATOR(pg_catalog.=) "p" AND $4 OPERATOR(pg_catalog.=) "pb""#,
            r#"UPDATE ONLY "public"."c" SET "pb" = NULL WHERE $1 OPERATOR(pg_catalog.=) "p" AND $2 OPERATOR(pg_catalog.=) "pb""#,
        ]
    );
    (key.on_delete, key.on_update) = (b'a', b'd');
    assert_eq!(
        text(&updates(&key)[0]),
        r#"UPDATE ONLY "public"."c" SET "p" = DEFAULT, "pb" = DEFAULT WHERE $1 OPERATOR(pg_catalog.=) "p" AND $2 OPERATOR(pg_catalog.=) "pb""#
    );
}

#[test]
fn checks_and_lookups() {
    assert_eq!(
        checks(&key(1))
            .iter()
            .map(|bytes| text(bytes))
            .collect::<Vec<_>>(),
        [
            r#"SELECT 1 FROM ONLY "public"."c" x WHERE $1 OPERATOR(pg_catalog.=) "p" FOR KEY SHARE OF x"#
        ]
    );
    assert_eq!(
        text(&lookup(&key(1))),
        r#"SELECT 1 FROM ONLY "public"."Par""ent" x WHERE "id" OPERATOR(pg_catalog.=) $1 FOR KEY SHARE OF x"#
    );
}

#[test]
fn with_period() {
    let mut key = key(2);
    key.pairs[1].equal = operator(" OPERATOR(pg_catalog.&&) ", "");
    key.pairs[1].both_referenced = operator(" OPERATOR(pg_catalog.&&) ", "");
    key.period = Some(PeriodColumns {
        contained: operator("::pg_catalog.anyrange OPERATOR(pg_catalog.<@) ", ""),
        intersection: operator(" OPERATOR(pg_catalog.*) ", ""),
    });
    assert_eq!(
        text(&lookup(&key)),
        r#"SELECT 1 FROM (SELECT "b" AS r FROM ONLY "public"."Par""ent" x WHERE "id" OPERATOR(pg_catalog.=) $1 AND "b" OPERATOR(pg_catalog.&&) $2 FOR KEY SHARE OF x) x1 HAVING   $2::pg_catalog.anyrange OPERATOR(pg_catalog.<@) pg_catalog.range_agg(x1.r)"#
    );
    assert_eq!(
        text(&checks(&key)[0]),
        r#"SELECT 1 FROM ONLY "public"."c" x WHERE $1 OPERATOR(pg_catalog.=) "p" AND $2 OPERATOR(pg_catalog.&&) "pb" AND NOT coalesce(  (  "pb" OPERATOR(pg_catalog.*) $2)::pg_catalog.anyrange OPERATOR(pg_catalog.<@) (SELECT pg_catalog.range_agg(r) FROM (SELECT y."b" r FROM ONLY "public"."Par""ent" y WHERE $1 OPERATOR(pg_catalog.=) "id" AND $2 OPERATOR(pg_catalog.&&) "b" FOR KEY SHARE OF y) y2), false) FOR KEY SHARE OF x"#
    );
}

#[test]
fn validation_of_tables() {
    let mut key = key(2);
    key.pairs[0].collation = br#" COLLATE "pg_catalog"."C""#.to_vec();
    assert_eq!(
        text(&validation(&key)),
        r#"SELECT fk."p", fk."pb" FROM ONLY "public"."c" fk LEFT OUTER JOIN ONLY "public"."Par""ent" pk ON ( pk."id" OPERATOR(pg_catalog.=) fk."p" COLLATE "pg_catalog"."C" AND pk."b" OPERATOR(pg_catalog.=) fk."pb") WHERE pk."id" IS NULL AND (fk."p" IS NOT NULL AND fk."pb" IS NOT NULL)"#
    );
    key.full = true;
    let written = detachment(&key, b"((pk.id > 1))");
    assert!(is_detachment(&written, &key));
    assert_eq!(
        text(&written),
        r#"SELECT fk."p", fk."pb" FROM ONLY "public"."c" fk JOIN "public"."Par""ent" pk ON ( pk."id" OPERATOR(pg_catalog.=) fk."p" COLLATE "pg_catalog"."C" AND pk."b" OPERATOR(pg_catalog.=) fk."pb") WHERE ((pk.id > 1)) AND (fk."p" IS NOT NULL OR fk."pb" IS NOT NULL)"#
    );
    assert!(text(&detachment(&key, b"")).contains(") WHERE (fk."));
}

/// Until 17 the collation of an ON UPDATE CASCADE stands with what is assigned.
#[test]
fn collations_by_which_different_texts_are_equal() {
    let mut key = key(1);
    key.pairs[0].collation = br#" COLLATE "s"."c""#.to_vec();
    key.pairs[0].is_deterministic = false;
    let collated = if cfg!(since18) {
        ""
    } else {
        r#" COLLATE "s"."c""#
    };
    assert_eq!(
        text(&cascaded_delete(&key)),
        format!(r#"DELETE FROM ONLY "public"."c" WHERE $1 OPERATOR(pg_catalog.=) "p"{collated}"#)
    );
    assert_eq!(
        text(&cascaded_update(&key)),
        format!(
            r#"UPDATE ONLY "public"."c" SET "p" = $1{collated} WHERE $2 OPERATOR(pg_catalog.=) "p""#
        )
    );
}
