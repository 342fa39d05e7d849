//! The dates by which rows expire (M2, M3, M12), as statements write them.

use super::generator::Generator;
use super::schema::{DATES, has_dates};

/// Past dates, a future one, dates that never expire, and dates near the limits of the type. All
/// but the last fit `timestamptz`.
const BAD: &[&str] = &[
    "infinity",
    "-infinity",
    "1969-07-20",
    "2039-01-01",
    "4713-01-01 BC",
    "294276-12-31",
];

impl Generator {
    /// One of the columns that [`DATES`] has, and a value for it, which is the same in
    /// all schemas.
    pub(super) fn date(&mut self) -> (&'static str, String) {
        let (column, _, _) = self.random.pick(&DATES);
        let value = match column {
            "at" => self.instant("timestamptz"),
            "moment" => self.instant("timestamp"),
            "day" => self.instant("date"),
            "dates" => self.instants("timestamptz"),
            "moments" => self.instants("timestamp"),
            _ => self.instants("date"),
        };
        (column, value)
    }

    /// The same for the lists of an INSERT, if the relation has such columns; often the row is
    /// expired from the start.
    pub(super) fn new_date(&mut self, relation: &str) -> (String, String) {
        if !has_dates(relation) || self.random.chance(0.3) {
            return (String::new(), String::new());
        }
        let (column, value) = self.date();
        (format!(", {column}"), format!(", {value}"))
    }

    /// After a change of this relation: deletes the rows that it has made expire, in the schema
    /// where expired rows are really deleted.
    pub(super) fn sweep(&self, relation: &str) -> Option<String> {
        has_dates(relation).then(|| "SELECT sweep()".to_owned())
    }

    fn instant(&mut self, ty: &str) -> String {
        let days = match self.random.weighted(&[4, 2, 2, 1, 3]) {
            0 => -40,
            1 => -3,
            2 => 20,
            3 => return format!("NULL::{ty}"),
            _ => {
                let bad = self.random.pick(BAD);
                let bad = if ty == "date" && bad == "294276-12-31" {
                    "5874897-12-31"
                } else {
                    bad
                };
                let zone = if ty == "timestamptz" && bad.starts_with(char::is_numeric) {
                    " UTC"
                } else {
                    ""
                };
                return format!("{ty} '{bad}{zone}'");
            }
        };
        match ty {
            "timestamptz" => format!("(SELECT base + interval '{days} days' FROM src.base)"),
            _ => format!(
                "(SELECT (base AT TIME ZONE 'UTC' + interval '{days} days')::{ty} FROM src.base)"
            ),
        }
    }

    fn instants(&mut self, ty: &str) -> String {
        if self.random.chance(0.15) {
            return format!("'{{}}'::{ty}[]");
        }
        let count = self.random.between(1, 3);
        let elements: Vec<String> = (0..count).map(|_| self.instant(ty)).collect();
        format!("ARRAY[{}]", elements.join(", "))
    }
}
