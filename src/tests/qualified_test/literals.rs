//! The string literals of Rust source, as the program sees them.

/// A literal and the line on which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The literals of the source, up to its tests.
pub(super) fn of(source: &str) -> Vec<Literal> {
    let tests = source.find("#[cfg(test)]\nmod tests {");
    let chars: Vec<char> = source.chars().take(tests.unwrap_or(usize::MAX)).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        at += if rest.starts_with(&['/', '/']) {
            rest.iter().position(|&c| c == '\n').unwrap_or(rest.len())
        } else if rest.starts_with(&['/', '*']) {
            let end = rest.windows(2).position(|two| two == ['*', '/']);
            end.map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = character(rest) {
            length
        } else if let Some(hashes) = raw_string(rest).filter(|_| !in_word(&chars, at)) {
            let line = line(&chars[..at]);
            let (text, length) = raw(rest, hashes);
            found.push(Literal { line, text });
            length
        } else if rest[0] == '"' {
            let line = line(&chars[..at]);
            let (text, length) = escaped(rest);
            found.push(Literal { line, text });
            length
        } else {
            1
        };
    }
    found
}

fn line(before: &[char]) -> usize {
    before.iter().filter(|&&c| c == '\n').count() + 1
}

fn in_word(chars: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| chars.get(before));
    before.is_some_and(|c| c.is_alphanumeric() && *c != 'c' && *c != 'b')
}

/// The length of a character's literal, which may be a quote; a lifetime is none.
fn character(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', _, tail @ ..] => {
            let end = tail.iter().position(|&c| c == '\'')?;
            Some(end + 4)
        }
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

/// How many `#` a raw string begins with.
fn raw_string(rest: &[char]) -> Option<usize> {
    let after = rest.strip_prefix(&['r'])?;
    let hashes = after.iter().take_while(|&&c| c == '#').count();
    (after.get(hashes) == Some(&'"')).then_some(hashes)
}

fn raw(rest: &[char], hashes: usize) -> (String, usize) {
    let begin = 1 + hashes + 1;
    let end = std::iter::once('"').chain(std::iter::repeat_n('#', hashes));
    let end: Vec<char> = end.collect();
    let length = rest[begin..]
        .windows(end.len())
        .position(|window| window == end);
    let length = length.unwrap_or(rest.len() - begin);
    let text = rest[begin..begin + length].iter().collect();
    (text, begin + length + end.len())
}

fn escaped(rest: &[char]) -> (String, usize) {
    let mut text = String::new();
    let mut at = 1;
    while let Some(&c) = rest.get(at).filter(|&&c| c != '"') {
        at += 1;
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.get(at) {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            // The line goes on.
            Some('\n') => {
                while rest.get(at + 1).is_some_and(|c| c.is_whitespace()) {
                    at += 1;
                }
            }
            Some(&other) => text.push(other),
            None => {}
        }
        at += 1;
    }
    (text, at + 1)
}
