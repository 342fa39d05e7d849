//! Blocks that cannot be read: left alone, so that what is in others is deleted (S5 of the
//! issues' cases). An index leads to rows, and so into such a block again and again: the table is
//! read block by block instead, until none of its blocks is set aside.

use super::turn::{Step, Turn, note_failure};
use crate::deletion::probe;
use crate::error::Error;
use crate::pg::server::background;
use crate::worker::shared::blocked;

impl Turn<'_> {
    /// From now on reads the table block by block.
    pub(in crate::worker) fn bypass_indexes(&mut self) {
        self.job.read_all();
        self.bypasses_indexes = true;
        self.progress.summarizes = false;
    }

    /// After an error in these blocks that may be one's: sets that block aside. False if all can be
    /// read, so that the error has another cause.
    pub(in crate::worker) fn set_block_aside(
        &mut self,
        blocks: (u32, u32),
        failure: &Error,
    ) -> Result<bool, Error> {
        let Some(block) = probe::unreadable(&self.job, blocks)? else {
            return Ok(false);
        };
        let failure = Error {
            message: format!(
                "block {block} of {} cannot be read, and is left out: {}",
                self.job.name, failure.message
            ),
            ..failure.clone()
        };
        let row = blocked::whole_block(block);
        self.set_aside(row, None, &failure, background::monotonic());
        if !self.aside.blocks.contains(&block) {
            // There was no room: for this turn at least.
            self.aside.blocks.push(block);
        }
        Ok(true)
    }

    /// After an error on the way of an index, which may be a block's: reads the whole table, once in a
    /// pass.
    pub(in crate::worker) fn without_indexes(&mut self, failure: &Error) -> Result<Step, Error> {
        self.bypass_indexes();
        if self.progress.heap_swept {
            // What the index leads to has been read, but for what has expired since.
            if self.aside.count == 0 {
                note_failure(self.key, failure);
            }
            return Ok(Step::Finished);
        }
        self.begin_heap_sweep()?;
        Ok(Step::Pause)
    }
}
