//! Rows that could not be deleted, and blocks that could not be read: left alone for a while.

/// A table's rows and blocks that are set aside.
#[derive(Debug, Default)]
pub(crate) struct SetAside {
    /// To be left alone for now.
    pub(crate) rows: Vec<(u32, u16)>,
    /// A condition that leaves out rows to which live ones refer; empty: it was not asked for.
    pub(crate) referred: String,
    /// Blocks to be left alone for now.
    pub(crate) blocks: Vec<u32>,
    /// How many rows and blocks there are, including those that are to be tried again now.
    pub(crate) count: i64,
    /// When the first of them is to be tried again.
    pub(crate) next: Option<i64>,
    /// When the row expired that expired first.
    pub(crate) oldest: Option<i64>,
}

impl SetAside {
    /// The first block from `from` to before `to` that is to be left alone.
    pub(crate) fn first_block(&self, from: i64, to: i64) -> Option<i64> {
        let blocks = self.blocks.iter().map(|&block| i64::from(block));
        blocks.filter(|block| (from..to).contains(block)).min()
    }

    /// A condition that excludes them, to be appended to others.
    pub(crate) fn exclusion(&self) -> String {
        if self.rows.is_empty() {
            return self.referred.clone();
        }
        format!(
            " AND NOT (ctid OPERATOR(pg_catalog.=) ANY ({})){}",
            tid_array(self.rows.iter().copied()),
            self.referred
        )
    }
}

/// Rows as an array in SQL.
pub(crate) fn tid_array(rows: impl Iterator<Item = (u32, u16)>) -> String {
    let mut array = String::from("'{");
    for (number, (block, offset)) in rows.enumerate() {
        let comma = if number == 0 { "" } else { "," };
        array += &format!("{comma}\"({block},{offset})\"");
    }
    array + "}'::pg_catalog.tid[]"
}
