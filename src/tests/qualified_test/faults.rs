//! What in a piece of SQL is looked up along the `search_path`.

use crate::tests::qualified_test::tokens::{self, Token};

/// Types that the grammar takes from `pg_catalog`.
const SAFE_TYPES: &[&str] = &[
    "integer",
    "int",
    "bigint",
    "smallint",
    "boolean",
    "real",
    "double",
    "numeric",
    "decimal",
    "timestamp",
    "time",
    "interval",
    "character",
    "varchar",
    "bit",
];

/// Keywords after which a parenthesis is no call.
const NO_CALL: &[&str] = &[
    "AND",
    "OR",
    "NOT",
    "ANY",
    "ALL",
    "SOME",
    "EXISTS",
    "COALESCE",
    "LEAST",
    "GREATEST",
    "WHEN",
    "THEN",
    "ELSE",
    "FILTER",
    "VALUES",
    "OVER",
    "REPEATABLE",
    "AS",
    "ON",
    "WHERE",
    "OPERATOR",
    "FROM",
    "LATERAL",
    "ARRAY",
    "ROW",
    "LIMIT",
    "OFFSET",
    "CHECK",
    "SELECT",
    "BY",
    "HAVING",
    "IN",
    "KEY",
    "UNIQUE",
    "INCLUDE",
    "WITH",
    "MATERIALIZED",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "SET",
    "RETURNING",
    "USING",
    "DEFAULT",
    "ONLY",
    "TABLE",
    "CAST",
    "NULLIF",
    "SET",
    "TO",
    "CROSS",
    "JOIN",
    "RETURN",
];

/// Keywords that stand for operators, and look these up by their names.
const OPERATORS: &[&str] = &[
    "LIKE", "ILIKE", "SIMILAR", "BETWEEN", "OVERLAPS", "NULLIF", "NATURAL", "CAST",
];

/// Attributes of CREATE TYPE that name a function or a type, or are a text.
const TYPE_ATTRIBUTES: &[&str] = &["INPUT", "OUTPUT", "RECEIVE", "SEND", "LIKE", "CATEGORY"];

/// The faults, each with the tokens around it.
pub(super) fn of(sql: &str, is_format: bool) -> Vec<String> {
    let tokens = tokens::of(sql, is_format);
    let common = common_tables(&tokens);
    let operators = qualified_operators(&tokens);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let look = Look {
            tokens: &tokens,
            at,
            common: &common,
        };
        if operators.iter().any(|range| range.contains(&at)) {
            continue;
        }
        if let Some(fault) = look.fault() {
            let around = &tokens[at.saturating_sub(3)..(at + 4).min(tokens.len())];
            found.push(format!("{fault}: {around:?}"));
        }
    }
    found
}

/// The names that WITH gives.
fn common_tables(tokens: &[Token]) -> Vec<String> {
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(name) = token else { continue };
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let begins =
            before.is_some_and(|t| t.is_one_of(&["WITH", "RECURSIVE"]) || *t == Token::Sign(','));
        let mut next = at + 1;
        if tokens.get(next) == Some(&Token::Sign('(')) {
            next = closing(tokens, next) + 1;
        }
        let is_query = tokens.get(next).is_some_and(|t| t.is("AS"))
            && tokens.get(next + 1) == Some(&Token::Sign('('));
        if begins && is_query && tokens.iter().any(|t| t.is("WITH")) {
            names.push(name.clone());
        }
    }
    names
}

/// Where the parenthesis ends.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// `OPERATOR(schema.op)`, wherever it stands.
fn qualified_operators(tokens: &[Token]) -> Vec<std::ops::RangeInclusive<usize>> {
    (0..tokens.len())
        .filter(|&at| {
            tokens[at].is("OPERATOR")
                && tokens.get(at + 1) == Some(&Token::Sign('('))
                && tokens.get(at + 2).is_some_and(Token::is_name)
                && tokens.get(at + 3) == Some(&Token::Sign('.'))
        })
        .map(|at| at..=closing(tokens, at + 1))
        .collect()
}

fn is_safe_type(token: &Token) -> bool {
    matches!(token, Token::Word(word) if SAFE_TYPES.contains(&word.to_lowercase().as_str()))
}

struct Look<'a> {
    tokens: &'a [Token],
    at: usize,
    common: &'a [String],
}

impl Look<'_> {
    fn get(&self, distance: isize) -> Option<&Token> {
        self.tokens.get(self.at.checked_add_signed(distance)?)
    }

    fn sign(&self, distance: isize, sign: char) -> bool {
        self.get(distance) == Some(&Token::Sign(sign))
    }

    fn word(&self, distance: isize, keywords: &[&str]) -> bool {
        self.get(distance).is_some_and(|t| t.is_one_of(keywords))
    }

    /// Whether a name with its schema stands there.
    fn is_qualified(&self, distance: isize) -> bool {
        self.get(distance).is_some_and(Token::is_name) && self.sign(distance + 1, '.')
    }

    fn is_type(&self, distance: isize) -> bool {
        self.is_qualified(distance) || self.get(distance).is_some_and(is_safe_type)
    }

    fn fault(&self) -> Option<&'static str> {
        match self.get(0)? {
            Token::Cast => self.cast(),
            Token::Operator(operator) => self.operator(operator),
            Token::Word(word) if !self.sign(-1, '.') => self.keyword().or_else(|| self.name(word)),
            Token::Quoted(_) if !self.sign(-1, '.') && self.sign(1, '(') => Some("a function"),
            _ => None,
        }
    }

    fn cast(&self) -> Option<&'static str> {
        if !self.is_type(1) {
            return Some("a type");
        }
        let registered = ["regclass", "regtype", "regproc", "regprocedure", "regoper"];
        match self.get(-1) {
            Some(Token::Text(text)) if self.word(3, &registered) && !text.contains('.') => {
                Some("a name in a string")
            }
            _ => None,
        }
    }

    fn operator(&self, operator: &str) -> Option<&'static str> {
        let opens = self.at == 0
            || self.sign(-1, '(')
            || self.sign(-1, ',')
            || self.word(
                -1,
                &[
                    "SELECT",
                    "DEFAULT",
                    "WHEN",
                    "THEN",
                    "ELSE",
                    "LIMIT",
                    "RETURNING",
                ],
            );
        match operator {
            "=>" => None,
            "*" if opens || self.sign(-1, '.') => None,
            "-" if opens && self.get(1) == Some(&Token::Number) => None,
            // SET search_path = …
            "=" if self.word(-2, &["SET"]) => None,
            "=" if self.word(-1, TYPE_ATTRIBUTES) => {
                let is_known = self.is_type(1) || matches!(self.get(1), Some(Token::Text(_)));
                (!is_known).then_some("a name")
            }
            _ => Some("an operator"),
        }
    }

    /// Keywords that make names of what follows, or stand for operators.
    fn keyword(&self) -> Option<&'static str> {
        if self.word(0, &["CAST"]) && self.word(-1, &["CREATE", "ON"]) {
            return self.cast_object();
        }
        if self.word(0, &["LIKE"]) && self.get(1) == Some(&Token::Operator("=".into())) {
            return None;
        }
        if self.word(0, OPERATORS) {
            return Some("a keyword that looks an operator up");
        }
        if (self.word(0, &["IN"]) && self.sign(1, '('))
            || (self.word(0, &["CASE"]) && !self.word(1, &["WHEN"]))
            || (self.word(0, &["DISTINCT"]) && self.word(1, &["FROM"]))
            || (self.word(0, &["USING"]) && self.sign(1, '('))
        {
            return Some("a keyword that looks an operator up");
        }
        if self.word(0, &["TABLESAMPLE", "COLLATE"]) && !self.is_qualified(1) {
            return Some("a name");
        }
        if self.word(0, &["FROM", "JOIN", "INTO", "TABLE", "VIEW"]) || self.updates() {
            return self.relation();
        }
        if self.word(0, &["RETURNS", "SETOF"])
            && !self.word(1, &["SETOF", "TABLE"])
            && !self.is_type(1)
        {
            return Some("a type");
        }
        if self.word(0, &["COLUMN"]) && self.word(-1, &["ADD"]) && !self.is_type(2) {
            return Some("a type");
        }
        if self.word(0, &["FUNCTION"]) && !self.word(-1, &["WITHOUT"]) {
            return self.signature();
        }
        None
    }

    /// The types of a cast that is made or named: CAST (a AS b).
    fn cast_object(&self) -> Option<&'static str> {
        let end = closing(self.tokens, self.at + 1);
        let mut types = self.tokens[self.at + 2..end].split(|token| token.is("AS"));
        let is_known = |of: &[Token]| match of {
            [name, Token::Sign('.'), ..] => name.is_name(),
            [name, ..] => is_safe_type(name),
            [] => false,
        };
        (!types.all(is_known)).then_some("a type")
    }

    fn updates(&self) -> bool {
        self.word(0, &["UPDATE"]) && !self.word(-1, &["FOR", "ON", "OR", "BEFORE", "DO"])
    }

    /// The relation after FROM and the like.
    fn relation(&self) -> Option<&'static str> {
        let mut at = 1;
        while self.word(
            at,
            &["ONLY", "LATERAL", "ROWS", "FROM", "IF", "EXISTS", "PUBLIC"],
        ) {
            if self.word(at, &["PUBLIC"]) {
                return None;
            }
            at += 1;
        }
        let is_common =
            matches!(self.get(at), Some(Token::Word(name)) if self.common.contains(name));
        let is_known = self.is_qualified(at)
            || is_common
            || self.sign(at, '(')
            || matches!(self.get(at), None | Some(Token::Hole));
        (!is_known).then_some("a relation")
    }

    /// The arguments' types of a function that is made or named.
    fn signature(&self) -> Option<&'static str> {
        if !self.is_qualified(1) {
            return Some("a function");
        }
        if !self.sign(4, '(') {
            return None;
        }
        let end = closing(self.tokens, self.at + 4);
        let arguments = &self.tokens[self.at + 5..end];
        let is_safe = |argument: &[Token]| {
            let modes = ["IN", "OUT", "INOUT", "VARIADIC"];
            let argument = match argument {
                [mode, rest @ ..] if mode.is_one_of(&modes) => rest,
                all => all,
            };
            let is_type = |rest: &[Token]| match rest {
                [name, Token::Sign('.'), ..] => name.is_name(),
                [name, ..] => is_safe_type(name),
                [] => true,
            };
            is_type(argument)
                || matches!(argument, [_, rest @ ..] if !rest.is_empty() && is_type(rest))
        };
        let all_safe = arguments
            .split(|token| *token == Token::Sign(','))
            .all(is_safe);
        (!all_safe).then_some("a type")
    }

    /// A name that is none of a keyword's: a function, or the type of a literal.
    fn name(&self, word: &str) -> Option<&'static str> {
        if self.sign(1, '(') {
            let names_columns = self.word(-1, &["AS", "USING", "RECURSIVE", "WITH"])
                || self.common.iter().any(|name| name == word);
            if !names_columns && !self.word(0, NO_CALL) {
                return Some("a function");
            }
        }
        let is_lower_case = word.chars().all(|c| !c.is_uppercase());
        if matches!(self.get(1), Some(Token::Text(_)))
            && is_lower_case
            && !self.get(0).is_some_and(is_safe_type)
        {
            return Some("the type of a literal");
        }
        None
    }
}
