//! The constraint on the override (C3), as tables have it.

/// The condition of the constraint, on the quoted column.
///
/// A function call, as PostgreSQL parses a stored constraint again for each statement; tested, so
/// that it is shown in two pairs of parentheses, which some tools need to read a constraint
/// (`docs/decisions/0055-constraint-in-parentheses.md`).
pub(crate) fn condition(ttl: &str) -> String {
    format!("ttl.is_override({ttl}) IS NOT FALSE")
}

/// What `pg_get_expr` shows of it.
pub(crate) fn shown(ttl: &str) -> String {
    format!("({})", condition(ttl))
}
