//! The options `ttl.*` of CREATE TABLE and ALTER TABLE: their names, and values as they are written.

use super::options::{OPTIONS, SetBy, TableOption, Value, option};
use crate::error::{Error, Result};
use pgrx::PgSqlErrorCode;

/// Not stored: they say how the statement changes the others.
const ONCE: [&str; 2] = ["confirm", "revive_expired"];

/// What a statement asks of a table's policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableOptions {
    /// Names and values in the order that they were written in; `None`: RESET.
    pub(crate) settings: Vec<(&'static str, Option<String>)>,
    /// C19: most of the table may expire with it.
    pub(crate) confirm: bool,
    /// What is expired may live again.
    pub(crate) revive_expired: bool,
}

/// The names that there are, for a HINT.
fn known() -> String {
    let names = OPTIONS.iter().map(|option| option.name);
    let names = names.chain(ONCE);
    let names: Vec<String> = names.map(|name| format!("ttl.{name}")).collect();
    names.join(", ")
}

impl TableOptions {
    /// Reads options: name, value, and whether it is reset.
    pub(crate) fn read(
        given: impl IntoIterator<Item = (String, Option<String>, bool)>,
    ) -> Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<String> = vec![];
        for (name, value, is_reset) in given {
            if seen.contains(&name) {
                let message = format!("parameter \"ttl.{name}\" specified more than once");
                return Err(Error::invalid(message).hint("Give each parameter once."));
            }
            seen.push(name.clone());
            if is_reset && value.is_some() {
                let message = "RESET must not include values for parameters";
                return Err(Error::new(PgSqlErrorCode::ERRCODE_SYNTAX_ERROR, message));
            }
            if ONCE.contains(&name.as_str()) {
                let flag = boolean(&name, value.as_deref())?;
                match name.as_str() {
                    "confirm" => options.confirm = flag,
                    _ => options.revive_expired = flag,
                }
                continue;
            }
            let Some(option) = option(&name) else {
                let message = format!("unrecognized parameter \"ttl.{name}\"");
                let hint = format!("Available parameters: {}.", known());
                return Err(Error::invalid(message).hint(hint));
            };
            let setting = match (is_reset, value) {
                (true, _) => None,
                (false, Some(value)) => Some(value),
                // As for PostgreSQL's own: the name of a boolean means true.
                (false, None) if matches!(option.value, Value::Boolean(_)) => {
                    Some("true".to_owned())
                }
                (false, None) => return Err(Self::no_value(&name)),
            };
            options.settings.push((option.name, setting));
        }
        match seen.into_iter().next() {
            Some(name) if options.settings.is_empty() => {
                let message = format!("parameter \"ttl.{name}\" cannot be given alone");
                let hint = "It says how the statement changes other parameters, and is not stored.";
                Err(Error::invalid(message).hint(hint))
            }
            _ => Ok(options),
        }
    }

    /// The error for an option without a value.
    pub(crate) fn no_value(name: &str) -> Error {
        Error::invalid(format!("parameter \"ttl.{name}\" needs a value")).hint(match name {
            "default_ttl" => "Write ttl.default_ttl = '30 days', or -1 for TTL without a default.",
            _ => "Write a value after \"=\".",
        })
    }

    /// What is said of an option: `None` nothing, `Some(None)` RESET.
    pub(crate) fn get(&self, name: &str) -> Option<Option<&str>> {
        self.settings
            .iter()
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value.as_deref())
    }

    /// Whether the default, a column or the kind of index is set: what `ttl.enable` does.
    pub(crate) fn enables(&self) -> bool {
        self.given().any(|(option, value)| match option.value {
            Value::Default => value.is_some(),
            _ => option.set_by == SetBy::Enable,
        })
    }

    /// The other options, as `ttl.set_option` takes them; `with_enabling` leaves out those that
    /// [`Self::enables`] sets as well.
    pub(crate) fn others(
        &self,
        with_enabling: bool,
    ) -> impl Iterator<Item = (&'static TableOption, Option<&str>)> {
        self.given().filter(move |(option, _)| match option.set_by {
            SetBy::Enable => false,
            SetBy::Both => !with_enabling && !matches!(option.value, Value::Default),
            SetBy::SetOption => true,
        })
    }

    fn given(&self) -> impl Iterator<Item = (&'static TableOption, Option<&str>)> {
        let settings = self.settings.iter();
        settings.filter_map(|(name, value)| Some((option(name)?, value.as_deref())))
    }

    /// The value that an option is given; RESET gives it this default.
    pub(crate) fn value<'a>(&'a self, name: &str, default: &'a str) -> Option<&'a str> {
        self.get(name).map(|value| value.unwrap_or(default))
    }

    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(None) => Ok(Some(default)),
            Some(value) => boolean(name, value).map(Some),
        }
    }

    /// An option that names a column; `none` for no column.
    pub(crate) fn column(&self, name: &str) -> Option<Option<String>> {
        let value = self.get(name)?;
        Some(value.filter(|&name| name != "none").map(str::to_owned))
    }

    /// An option that is set, if one is.
    pub(crate) fn first_set(&self) -> Option<&str> {
        let mut set = self.given().filter(|(_, value)| value.is_some());
        set.next().map(|(option, _)| option.name)
    }

    /// A column or the kind of index that is set, if one is.
    pub(crate) fn first_built(&self) -> Option<&str> {
        let mut set = self.given().filter(|(_, value)| value.is_some());
        let built = set.find(|(option, _)| option.set_by == SetBy::Enable);
        built.map(|(option, _)| option.name)
    }

    /// How a flag that is not stored is written.
    pub(crate) fn flag_is_true(name: &str) -> String {
        format!("ttl.{name} = true")
    }

    /// The actions of an ALTER TABLE that asks the same with `confirm`; `quoted` makes a literal.
    pub(crate) fn confirmed(&self, quoted: impl Fn(&str) -> String) -> String {
        let mut set: Vec<String> = self
            .settings
            .iter()
            .filter_map(|(name, value)| Some(format!("ttl.{name} = {}", quoted(value.as_deref()?))))
            .collect();
        if self.revive_expired {
            set.push(Self::flag_is_true("revive_expired"));
        }
        set.push(Self::flag_is_true("confirm"));
        let reset = self.settings.iter().filter(|(_, value)| value.is_none());
        let reset: Vec<String> = reset.map(|(name, _)| format!("ttl.{name}")).collect();
        let mut actions = format!("SET ({})", set.join(", "));
        if !reset.is_empty() {
            actions += &format!(", RESET ({})", reset.join(", "));
        }
        actions
    }
}

/// A boolean as PostgreSQL's parameters read it.
fn boolean(name: &str, value: Option<&str>) -> Result<bool> {
    let Some(value) = value else { return Ok(true) };
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" | "t" | "y" => Ok(true),
        "false" | "off" | "no" | "0" | "f" | "n" => Ok(false),
        _ => {
            let message =
                format!("invalid value for boolean parameter \"ttl.{name}\": \"{value}\"");
            Err(Error::invalid(message).hint("Write true or false."))
        }
    }
}
