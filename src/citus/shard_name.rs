//! The names of shards: that of the table, `_`, and the shard's number; a name too long for that is
//! cut, and has a hash of the whole in between.

/// Bytes of a name, with the 0 at its end.
const NAMEDATALEN: usize = 64;
/// `_`, and the hash in eight digits, and one byte that Citus leaves.
const HASH: usize = 10;

/// The name of a shard, in the server's encoding. `hash` is PostgreSQL's, of bytes; `clip` says how
/// many bytes of the name are whole characters within a limit.
pub(super) fn of(
    table: &[u8],
    number: i64,
    hash: impl FnOnce(&[u8]) -> u32,
    clip: impl FnOnce(&[u8], usize) -> usize,
) -> Vec<u8> {
    let suffix = format!("_{number}");
    if table.len() < NAMEDATALEN - suffix.len() {
        return [table, suffix.as_bytes()].concat();
    }
    let end = clip(table, NAMEDATALEN - suffix.len() - HASH);
    let start = table.get(..end).unwrap_or(table);
    let hash = format!("_{:08x}", hash(table));
    [start, hash.as_bytes(), suffix.as_bytes()].concat()
}

/// The number with which a shard's name ends.
pub(super) fn number(name: &str) -> Option<i64> {
    let (_, digits) = name.rsplit_once('_')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}
