//! The text of an error in shared memory.

/// The text of an error, of at most `N` bytes. Valid when zeroed: there is none.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorText<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> Default for ErrorText<N> {
    fn default() -> Self {
        Self {
            len: 0,
            bytes: [0; N],
        }
    }
}

impl<const N: usize> ErrorText<N> {
    pub(crate) fn get(&self) -> Option<String> {
        let bytes = self.bytes.get(..usize::from(self.len))?;
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Keeps the text, cut at a character boundary.
    pub(in crate::worker) fn set(&mut self, text: &str) {
        let end = text.floor_char_boundary(N);
        self.bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        self.len = u16::try_from(end).unwrap_or(0);
    }
}
