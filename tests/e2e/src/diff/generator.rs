//! The state of the query generator, and its random numbers.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::schema::{COLUMNS, DATES, Type, has_dates, has_override};

/// A generator of random numbers that gives the same for the same seed.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Start from a seed.
    pub fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Start from `TTL_SEED`, or else from a new seed, which is printed.
    pub fn from_environment() -> Random {
        let given = std::env::var("TTL_SEED").ok();
        let seed = given.map_or_else(rand::random, |seed| {
            seed.parse().expect("TTL_SEED is a number")
        });
        println!("TTL_SEED={seed}");
        Random::new(seed)
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.random_range(0..choices.len())]
    }

    /// The index of one of these weights.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut at = self.0.random_range(0..weights.iter().sum::<u32>());
        for (index, weight) in weights.iter().enumerate() {
            if at < *weight {
                return index;
            }
            at -= weight;
        }
        unreachable!("the numbers below the sum are used up")
    }
}

/// A column that an expression can use.
#[derive(Debug, Clone)]
pub struct Column {
    /// How to write it, with its alias: `t3.val`.
    pub sql: String,
    /// The name alone.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// The columns in sight.
pub type Scope = Vec<Column>;

/// A relation that only a part of the query knows: a CTE.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) columns: Vec<(String, Type)>,
}

/// Generates queries. They are valid (or fail in the same way in all schemas), and their result as
/// a multiset depends only on the tables' rows.
#[derive(Debug)]
pub struct Generator {
    /// The dice.
    pub random: Random,
    pub(super) major: u32,
    pub(super) named: Vec<Named>,
    /// Literals may be parameters of a prepared statement: $1 to $3, integers.
    pub(super) parameters: bool,
    /// `_ts` differs after changes of rows, so queries leave it out.
    pub(super) changed: bool,
    next: u32,
}

impl Generator {
    /// A generator for a server of this major version.
    pub fn new(seed: u64, major: u32) -> Generator {
        Generator {
            random: Random::new(seed),
            major,
            named: Vec::new(),
            parameters: false,
            changed: false,
            next: 0,
        }
    }

    /// A name that is not used anywhere else in the query.
    pub(super) fn alias(&mut self, letter: char) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }

    /// Begin a new query, whose names start from one again.
    pub(super) fn begin(&mut self) {
        self.next = 0;
        self.named.clear();
        self.parameters = false;
        self.changed = false;
    }

    /// The columns of one of the schema's relations, under an alias.
    pub(super) fn columns_of(&self, relation: &str, alias: &str) -> Scope {
        let there = |name: &str| match name {
            "ttl" => has_override(relation),
            "_ts" => !self.changed,
            _ => true,
        };
        let columns: Vec<_> = COLUMNS.iter().filter(|(name, _)| there(name)).collect();
        let mut scope = scope_of(alias, columns);
        if has_dates(relation) {
            scope.extend(DATES.map(|(name, sql, ty)| Column {
                sql: format!("{alias}.{sql}"),
                name: name.to_owned(),
                ty,
            }));
        }
        scope
    }

    pub(super) fn any_type(&mut self) -> Type {
        use Type::*;
        self.random.pick(&[
            Int, Int, Int, Int, Int, Text, Text, Text, Time, Time, Day, Bool, Json,
        ])
    }
}

/// The columns of `alias`, by name and type.
pub(super) fn scope_of<'c, N: AsRef<str> + 'c>(
    alias: &str,
    columns: impl IntoIterator<Item = &'c (N, Type)>,
) -> Scope {
    let column = |(name, ty): &(N, Type)| Column {
        sql: format!("{alias}.{}", name.as_ref()),
        name: name.as_ref().to_owned(),
        ty: *ty,
    };
    columns.into_iter().map(column).collect()
}
