//! Which queries enforce referential integrity, told by their text.
//!
//! PostgreSQL writes these queries itself (ri_triggers.c) and plans them like a
//! user's. Hiding expired rows from a cascade, a SET NULL or a NO ACTION check
//! would leave orphans; they must be hidden only from the look-up of the
//! referenced row, so that a new child of an expired parent is refused.

/// What a query is to referential integrity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Referential {
    /// Not one of PostgreSQL's own queries.
    No,
    /// The look-up of the referenced row: `… WHERE pkatt = $1`.
    Lookup,
    /// A statement on the referencing side that an expired row must not disturb: a
    /// check, SET NULL, SET DEFAULT, the cascade of an UPDATE. Expired rows are
    /// removed when it meets them.
    Referencing,
    /// Anything else that keeps the tables consistent on disk: the cascade of a
    /// DELETE, validation inside ALTER TABLE.
    Physical,
}

/// Classifies a query.
///
/// `enforcing`: PostgreSQL runs it in the security context of its referential
/// triggers. That alone does not tell: triggers of users that fire inside a
/// cascade run in the same context. `validating`: an ALTER TABLE is running.
pub(crate) fn classify(query: &str, enforcing: bool, validating: bool) -> Referential {
    if !query.contains(" OPERATOR(") {
        return Referential::No;
    }
    if validating && query.starts_with("SELECT fk.") && query.contains(" JOIN ") {
        return Referential::Physical;
    }
    let own_form = ["SELECT 1 FROM ", "DELETE FROM ", "UPDATE "];
    if !enforcing || !own_form.iter().any(|form| query.starts_with(form)) {
        return Referential::No;
    }
    if validating || (query.starts_with("DELETE FROM ") && parameter_comes_first(query)) {
        Referential::Physical
    } else if parameter_comes_first(query) {
        Referential::Referencing
    } else {
        Referential::Lookup
    }
}

/// In PostgreSQL 15 to 18 queries on the referencing side are written
/// `$1 = fkatt`, the look-up on the referenced side `pkatt = $1`.
fn parameter_comes_first(query: &str) -> bool {
    query
        .match_indices(" WHERE $")
        .any(|(at, matched)| query[at + matched.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::Referential::*;
    use super::*;

    #[test]
    fn c6_lookup_of_the_referenced_row_hides() {
        for query in [
            r#"SELECT 1 FROM ONLY "public"."parent" x WHERE "id" OPERATOR(pg_catalog.=) $1 FOR KEY SHARE OF x"#,
            r#"SELECT 1 FROM "public"."p" x WHERE "id"::text OPERATOR(pg_catalog.=) $1::text FOR KEY SHARE OF x"#,
            r#"SELECT 1 FROM (SELECT "v" AS r FROM ONLY "s"."p" x WHERE "id" OPERATOR(pg_catalog.=) $1 AND "v" OPERATOR(pg_catalog.&&) $2 FOR KEY SHARE OF x) x1 HAVING $2 OPERATOR(pg_catalog.<@) pg_catalog.range_agg(x1.r)"#,
        ] {
            assert_eq!(classify(query, true, false), Lookup, "{query}");
            assert_eq!(classify(query, true, true), Physical, "{query}");
            assert_eq!(classify(query, false, false), No, "{query}");
        }
    }

    #[test]
    fn cascade_of_a_delete_sees_every_row() {
        let query = r#"DELETE FROM ONLY "public"."c" WHERE $1 OPERATOR(pg_catalog.=) "fk""#;
        assert_eq!(classify(query, true, false), Physical);
        assert_eq!(classify(query, false, true), No);
    }

    #[test]
    fn c6_referencing_side_removes_what_it_meets() {
        for query in [
            r#"UPDATE ONLY "public"."c" SET "fk" = NULL WHERE $1 OPERATOR(pg_catalog.=) "fk""#,
            r#"UPDATE ONLY "public"."c" SET "fk" = $1 WHERE $2 OPERATOR(pg_catalog.=) "fk""#,
            r#"SELECT 1 FROM ONLY "public"."c" x WHERE $1::text OPERATOR(pg_catalog.=) "fk"::text FOR KEY SHARE OF x"#,
        ] {
            assert_eq!(classify(query, true, false), Referencing, "{query}");
            assert_eq!(classify(query, true, true), Physical, "{query}");
            assert_eq!(classify(query, false, true), No, "{query}");
        }
    }

    #[test]
    fn validation_sees_every_row_only_inside_alter_table() {
        let query = r#"SELECT fk."a" FROM ONLY "public"."c" fk LEFT OUTER JOIN ONLY "public"."p" pk ON ( pk."id" OPERATOR(pg_catalog.=) fk."a") WHERE pk."id" IS NULL AND (fk."a" IS NOT NULL)"#;
        assert_eq!(classify(query, false, true), Physical);
        assert_eq!(classify(query, false, false), No);
    }

    #[test]
    fn queries_of_users_inside_a_cascade_are_not_taken_for_it() {
        for query in [
            "SELECT count(*) FROM c WHERE $1 = fk",
            "DELETE FROM c WHERE $1 = fk",
            "SELECT 1 FROM c",
        ] {
            assert_eq!(classify(query, true, false), No, "{query}");
        }
    }
}
