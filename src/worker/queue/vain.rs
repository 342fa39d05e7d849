//! Ranges of blocks to which an index led although they have no expired row. Pure.

/// The ranges of a table's BRIN index in which a sweep has found nothing, by their first blocks.
#[derive(Debug)]
pub(in crate::worker) struct Vain {
    /// How many blocks a range has,
    range: u32,
    /// and the table: a last range that is not full will be written to.
    table: u32,
    /// Nothing was found from this block on,
    from: u32,
    /// to before this one.
    to: u32,
}

impl Vain {
    /// For a table of so many blocks, in ranges of so many.
    pub(in crate::worker) fn new(range: u32, table: u32) -> Self {
        Self {
            range: range.max(1),
            table,
            from: 0,
            to: 0,
        }
    }

    /// Notes that blocks were read; returns the ranges that were read to their ends without a row.
    pub(in crate::worker) fn read(&mut self, from: u32, to: u32, found: bool) -> Vec<u32> {
        if found {
            (self.from, self.to) = (to, to);
            return vec![];
        }
        if self.to != from {
            self.from = from;
        }
        self.to = to;
        let first = self.from.div_ceil(self.range).saturating_mul(self.range);
        let full = self.to.min(self.table) / self.range * self.range;
        if first >= full {
            return vec![];
        }
        self.from = full;
        (first..full).step_by(self.range as usize).collect()
    }
}
