//! SQL in tokens, with holes where Rust's `format!` puts something.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword or a name.
    Word(String),
    /// A name in quotes.
    Quoted(String),
    /// A string's text.
    Text(String),
    Number,
    Operator(String),
    /// `(`, `)`, `,`, `.`, `;`, `[`, `]`, `:`, and what else stands alone.
    Sign(char),
    /// `::`
    Cast,
    /// `{…}` of a format, or a parameter.
    Hole,
}

impl Token {
    /// Whether it is this keyword, which are all written in upper case here.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word == keyword)
    }

    pub(super) fn is_one_of(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(keyword))
    }

    pub(super) fn is_name(&self) -> bool {
        matches!(self, Token::Word(_) | Token::Quoted(_) | Token::Hole)
    }
}

const OPERATORS: &str = "+-*/<>=~!@#%^&|`?";

/// `is_format`: whether braces are holes.
pub(super) fn of(sql: &str, is_format: bool) -> Vec<Token> {
    let chars: Vec<char> = sql.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let run = |is: &dyn Fn(char) -> bool| rest.iter().take_while(|&&c| is(c)).count();
        let text = |range: std::ops::Range<usize>| rest[range].iter().collect::<String>();
        let (token, length) = match rest {
            [c, ..] if c.is_whitespace() => (None, 1),
            ['-', '-', ..] => (None, run(&|c| c != '\n')),
            [':', ':', ..] => (Some(Token::Cast), 2),
            ['$', '$', ..] => {
                let end = rest[2..].windows(2).position(|two| two == ['$', '$']);
                (
                    Some(Token::Text(String::new())),
                    end.map_or(rest.len(), |end| end + 4),
                )
            }
            ['$', ..] => (
                Some(Token::Hole),
                1 + rest[1..].iter().take_while(|c| c.is_ascii_digit()).count(),
            ),
            ['\'', ..] => {
                let length = quoted(rest, '\'');
                (
                    Some(Token::Text(text(1..length.saturating_sub(1).max(1)))),
                    length,
                )
            }
            ['"', ..] => {
                let length = quoted(rest, '"');
                (
                    Some(Token::Quoted(text(1..length.saturating_sub(1).max(1)))),
                    length,
                )
            }
            ['{', ..] if is_format && !rest.starts_with(&['{', '{']) => {
                (Some(Token::Hole), run(&|c| c != '}') + 1)
            }
            [c, ..] if c.is_ascii_digit() => {
                (Some(Token::Number), run(&|c| c.is_ascii_alphanumeric()))
            }
            [c, ..] if c.is_alphabetic() || *c == '_' => {
                let length = run(&|c| c.is_alphanumeric() || c == '_');
                (Some(Token::Word(text(0..length))), length)
            }
            [c, ..] if OPERATORS.contains(*c) => {
                let length = run(&|c| OPERATORS.contains(c));
                (Some(Token::Operator(text(0..length))), length)
            }
            [c, ..] => (Some(Token::Sign(*c)), 1),
            [] => (None, 1),
        };
        found.extend(token);
        at += length.max(1);
    }
    found
}

/// The length of what is in quotes, with them; a quote within is doubled.
fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        if rest[at] != quote {
            at += 1;
        } else if rest.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    rest.len()
}
