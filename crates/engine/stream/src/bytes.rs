//! Numbers and strings in payloads.

use crate::StreamError;

/// Appends to a payload.
#[derive(Default, Debug)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// How many things follow.
    pub(crate) fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }
}

/// Takes a payload apart. The guest may have been there: nothing is believed.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], StreamError> {
        let (head, tail) = self.0.split_first_chunk().ok_or(StreamError::Damaged)?;
        self.0 = tail;
        Ok(*head)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StreamError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, StreamError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, StreamError> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, StreamError> {
        Ok(u8::from_le_bytes(self.take()?))
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8], StreamError> {
        let len = self.u32()? as usize;
        let (head, tail) = self.0.split_at_checked(len).ok_or(StreamError::Damaged)?;
        self.0 = tail;
        Ok(head)
    }

    /// As many things as a count says, of so many bytes each at least: no more than there are bytes left for. The list has no
    /// room for more: lists of blocks are kept as long as the run lasts.
    pub(crate) fn list<T>(
        &mut self,
        bytes_min: usize,
        mut one: impl FnMut(&mut Self) -> Result<T, StreamError>,
    ) -> Result<Vec<T>, StreamError> {
        let count = self.u32()? as usize;
        if count > self.0.len() / bytes_min {
            return Err(StreamError::Damaged);
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(one(self)?);
        }
        Ok(list)
    }
}
