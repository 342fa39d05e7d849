//! The queries that PostgreSQL 15 to 18 write for a foreign key (`ri_triggers.c`), to the
//! letter: a query with one space more is not recognised.

use crate::pg::catalog::foreign_key::{ColumnPair, ForeignKey, ForeignKeyTable, Operator};

/// The table's name, after ONLY unless it is partitioned.
fn from(table: &ForeignKeyTable) -> Vec<u8> {
    let only: &[u8] = if table.partitioned { b"" } else { b"ONLY " };
    [only, &table.name].concat()
}

/// The beginning of statements on the referencing side, the same for all foreign keys of a
/// table.
pub(super) fn delete_from(table: &ForeignKeyTable) -> Vec<u8> {
    [b"DELETE FROM ", &from(table)[..]].concat()
}

/// As [`delete_from`].
pub(super) fn update(table: &ForeignKeyTable) -> Vec<u8> {
    [b"UPDATE ", &from(table)[..], b" SET"].concat()
}

/// As [`delete_from`]; also the beginning of the look-up of the referenced row.
pub(super) fn select_from(table: &ForeignKeyTable) -> Vec<u8> {
    [b"SELECT 1 FROM ", &from(table)[..], b" x"].concat()
}

/// ON DELETE CASCADE.
pub(super) fn cascaded_delete(key: &ForeignKey) -> Vec<u8> {
    [delete_from(&key.referencing), parameters_match(key, 1)].concat()
}

/// As [`cascaded_delete`], of rows of this table, the referencing one or a partition of it, for
/// which the condition holds.
pub(super) fn deletion(key: &ForeignKey, table: &ForeignKeyTable, condition: &[u8]) -> Vec<u8> {
    let matching = parameters_match(key, 1);
    [&delete_from(table)[..], &matching, b" AND ", condition].concat()
}

/// Selects one of these rows.
pub(super) fn search(key: &ForeignKey, table: &ForeignKeyTable, condition: &[u8]) -> Vec<u8> {
    let matching = parameters_match(key, 1);
    [
        b"SELECT 1 FROM ",
        &from(table)[..],
        &matching,
        b" AND ",
        condition,
        b" LIMIT 1",
    ]
    .concat()
}

/// "A row refers to the one of the table that is called `outer`."
pub(super) fn referring(key: &ForeignKey, outer: &[u8]) -> Vec<u8> {
    let inner: &[u8] = if outer == b"x" { b"y" } else { b"x" };
    let mut text = [
        b"EXISTS (SELECT 1 FROM ",
        &from(&key.referencing)[..],
        b" ",
        inner,
    ]
    .concat();
    for (at, pair) in key.pairs.iter().enumerate() {
        text.extend_from_slice(word(at, " WHERE ").as_bytes());
        let referenced = [outer, b".", &pair.referenced].concat();
        let referencing = [inner, b".", &pair.referencing].concat();
        text.extend(clause(&referenced, &pair.equal, &referencing));
        text.extend_from_slice(collation_beside_parameter(pair));
    }
    text.push(b')');
    text
}

/// ON UPDATE CASCADE.
pub(super) fn cascaded_update(key: &ForeignKey) -> Vec<u8> {
    let mut text = update(&key.referencing);
    for (at, pair) in key.pairs.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        text.extend_from_slice(comma.as_bytes());
        text.push(b' ');
        text.extend_from_slice(&pair.referencing);
        text.extend_from_slice(format!(" = ${}", at + 1).as_bytes());
        // Up to 17 it stands here, and not after the comparison below.
        text.extend_from_slice(collation_beside_parameter(pair));
    }
    let first = key.pairs.len() + 1;
    for (at, pair) in key.pairs.iter().enumerate() {
        text.extend_from_slice(word(at, " WHERE ").as_bytes());
        let parameter = format!("${}", first + at);
        text.extend(clause(parameter.as_bytes(), &pair.equal, &pair.referencing));
    }
    text
}

/// SET NULL and SET DEFAULT of these columns; none given: of all.
fn set(key: &ForeignKey, value: &str, columns: &[Vec<u8>]) -> Vec<u8> {
    let all: Vec<_> = key.pairs.iter().map(|pair| &pair.referencing[..]).collect();
    let columns = if columns.is_empty() {
        all
    } else {
        columns.iter().map(|column| &column[..]).collect()
    };
    let mut text = update(&key.referencing);
    for (at, column) in columns.into_iter().enumerate() {
        text.extend_from_slice(if at == 0 { b" " } else { b", " });
        text.extend_from_slice(column);
        text.extend_from_slice(format!(" = {value}").as_bytes());
    }
    text.extend(parameters_match(key, 1));
    text
}

/// The UPDATEs that the foreign key's actions run.
pub(super) fn updates(key: &ForeignKey) -> Vec<Vec<u8>> {
    let value = |action| match action {
        b'n' => Some("NULL"),
        b'd' => Some("DEFAULT"),
        _ => None,
    };
    let cascade = (key.on_update == b'c').then(|| cascaded_update(key));
    let on_update = value(key.on_update).map(|value| set(key, value, &[]));
    let on_delete = value(key.on_delete).map(|value| set(key, value, &key.set_on_delete));
    [cascade, on_update, on_delete]
        .into_iter()
        .flatten()
        .collect()
}

/// NO ACTION and RESTRICT: the check whether a row refers to the deleted or changed one.
pub(super) fn checks(key: &ForeignKey) -> Vec<Vec<u8>> {
    let begin = [select_from(&key.referencing), parameters_match(key, 1)].concat();
    let end = b" FOR KEY SHARE OF x";
    let plain = [&begin[..], end].concat();
    match replacements_of_period(key) {
        // Only NO ACTION accepts another row in place of the deleted one.
        Some(condition) => vec![[&begin[..], &condition, end].concat(), plain],
        None => vec![plain],
    }
}

/// With PERIOD: unless other rows cover what the deleted one covered.
fn replacements_of_period(key: &ForeignKey) -> Option<Vec<u8>> {
    let (period, last) = (key.period.as_ref()?, key.pairs.last()?);
    let parameter = format!("${}", key.pairs.len());
    let overlap = clause(
        &last.referencing,
        &period.intersection,
        parameter.as_bytes(),
    );
    let overlap = [b"(  ", &overlap[..], b")"].concat();
    let mut rows = b"(SELECT pg_catalog.range_agg(r) FROM (SELECT y.".to_vec();
    rows.extend_from_slice(&last.referenced);
    rows.extend_from_slice(b" r FROM ");
    rows.extend(from(&key.referenced));
    rows.extend_from_slice(b" y");
    for (at, pair) in key.pairs.iter().enumerate() {
        rows.extend_from_slice(word(at, " WHERE ").as_bytes());
        let parameter = format!("${}", at + 1);
        rows.extend(clause(
            parameter.as_bytes(),
            &pair.both_referenced,
            &pair.referenced,
        ));
    }
    rows.extend_from_slice(b" FOR KEY SHARE OF y) y2)");
    let contained = clause(&overlap, &period.contained, &rows);
    Some([b" AND NOT coalesce(  ", &contained[..], b", false)"].concat())
}

/// The look-up of the referenced row.
pub(super) fn lookup(key: &ForeignKey) -> Vec<u8> {
    let mut text = match (&key.period, key.pairs.last()) {
        (Some(_), Some(last)) => {
            let column = &last.referenced[..];
            [
                b"SELECT 1 FROM (SELECT ",
                column,
                b" AS r FROM ",
                &from(&key.referenced),
                b" x",
            ]
            .concat()
        }
        _ => select_from(&key.referenced),
    };
    for (at, pair) in key.pairs.iter().enumerate() {
        text.extend_from_slice(word(at, " WHERE ").as_bytes());
        let parameter = format!("${}", at + 1);
        text.extend(clause(&pair.referenced, &pair.equal, parameter.as_bytes()));
    }
    text.extend_from_slice(b" FOR KEY SHARE OF x");
    if let Some(period) = &key.period {
        let parameter = format!("${}", key.pairs.len());
        text.extend_from_slice(b") x1 HAVING   ");
        text.extend(clause(
            parameter.as_bytes(),
            &period.contained,
            b"pg_catalog.range_agg",
        ));
        text.extend_from_slice(b"(x1.r)");
    }
    text
}

/// The validation of a whole table: selects rows without a referenced one.
pub(super) fn validation(key: &ForeignKey) -> Vec<u8> {
    let Some(first) = key.pairs.first() else {
        return vec![];
    };
    let mut text = joined(key, b" fk LEFT OUTER JOIN ", &from(&key.referenced));
    text.extend_from_slice(b") WHERE pk.");
    text.extend_from_slice(&first.referenced);
    text.extend_from_slice(b" IS NULL AND (");
    text.extend(are_given(key));
    text
}

/// DETACH PARTITION of the referenced table: selects rows that refer to the partition's.
/// `partition` is the partition's constraint.
pub(super) fn detachment(key: &ForeignKey, partition: &[u8]) -> Vec<u8> {
    let mut text = joined(key, b" fk JOIN ", &key.referenced.name);
    text.extend_from_slice(b") WHERE ");
    if !partition.is_empty() {
        text.extend_from_slice(partition);
        text.extend_from_slice(b" AND ");
    }
    text.push(b'(');
    text.extend(are_given(key));
    text
}

/// Whether it can be the [`detachment`], before its condition is compared.
pub(super) fn is_detachment(query: &[u8], key: &ForeignKey) -> bool {
    query.starts_with(&joined(key, b" fk JOIN ", &key.referenced.name))
}

/// From SELECT to the last condition of the join.
fn joined(key: &ForeignKey, join: &[u8], referenced: &[u8]) -> Vec<u8> {
    let mut text = b"SELECT ".to_vec();
    for (at, pair) in key.pairs.iter().enumerate() {
        text.extend_from_slice(if at == 0 { b"" } else { b", " });
        text.extend([b"fk.", &pair.referencing[..]].concat());
    }
    text.extend_from_slice(b" FROM ");
    text.extend(from(&key.referencing));
    text.extend_from_slice(join);
    text.extend_from_slice(referenced);
    text.extend_from_slice(b" pk ON");
    for (at, pair) in key.pairs.iter().enumerate() {
        text.extend_from_slice(word(at, " ( ").as_bytes());
        let (pk, fk) = (
            [b"pk.", &pair.referenced[..]].concat(),
            [b"fk.", &pair.referencing[..]].concat(),
        );
        text.extend(clause(&pk, &pair.equal, &fk));
        text.extend_from_slice(&pair.collation);
    }
    text
}

/// The referencing columns are not null: all of them, with MATCH FULL one; and the closing
/// parenthesis.
fn are_given(key: &ForeignKey) -> Vec<u8> {
    let between: &[u8] = if key.full { b" OR " } else { b" AND " };
    let given: Vec<_> = key
        .pairs
        .iter()
        .map(|pair| [b"fk.", &pair.referencing[..], b" IS NOT NULL"].concat())
        .collect();
    [&given.join(between)[..], b")"].concat()
}

/// ` WHERE $1 = fkatt1 AND …`, beginning with this parameter.
fn parameters_match(key: &ForeignKey, first: usize) -> Vec<u8> {
    let mut text = vec![];
    for (at, pair) in key.pairs.iter().enumerate() {
        text.extend_from_slice(word(at, " WHERE ").as_bytes());
        let parameter = format!("${}", first + at);
        text.extend(clause(parameter.as_bytes(), &pair.equal, &pair.referencing));
        text.extend_from_slice(collation_beside_parameter(pair));
    }
    text
}

/// Up to 17, for nondeterministic collations; 18 refuses such a foreign key.
fn collation_beside_parameter(pair: &ColumnPair) -> &[u8] {
    if pair.is_deterministic || cfg!(since18) {
        b""
    } else {
        &pair.collation
    }
}

/// The word before the condition with this number.
fn word(at: usize, first: &str) -> &str {
    if at == 0 { first } else { " AND " }
}

fn clause(left: &[u8], operator: &Operator, right: &[u8]) -> Vec<u8> {
    [left, &operator.between, right, &operator.after].concat()
}

#[cfg(test)]
#[path = "text_test.rs"]
mod tests;
