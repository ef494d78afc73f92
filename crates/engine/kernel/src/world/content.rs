//! The bytes of a regular file: what the real file held, and over it the pages that the guest has changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const PAGE: u64 = 4096;

type Page = Arc<[u8; PAGE as usize]>;

/// Where bytes come from that the guest has not changed.
#[derive(Clone, Debug, Default)]
pub(super) enum Base {
    /// Nowhere: they are zero.
    #[default]
    Nothing,
    /// A copy, for small files and those that cannot be read twice.
    Bytes(Arc<[u8]>),
    /// A real file that is only ever read.
    File(Arc<File>),
}

/// The bytes of a regular file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    base: Base,
    /// Bytes of the base that are still visible: a file that was cut and grew again has zeros beyond.
    base_len: u64,
    len: u64,
    pages: BTreeMap<u64, Page>,
}

impl Content {
    /// The content of a real file.
    pub(super) fn of(base: Base, len: u64) -> Self {
        Content {
            base,
            base_len: len,
            len,
            pages: BTreeMap::new(),
        }
    }

    /// Bytes that are known.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        Content::of(Base::Bytes(bytes.into()), len)
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// True if it is byte for byte the base.
    pub(super) fn is_untouched(&self) -> bool {
        self.pages.is_empty() && self.base_len == self.len
    }

    /// Bytes that changes have cost.
    pub(super) fn stored(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Fills the buffer from `offset`; returns how many bytes there were.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, i32> {
        let count = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < count {
            let at = offset + done as u64;
            let inside = (at % PAGE) as usize;
            let part = (PAGE as usize - inside).min(count - done);
            let target = &mut buffer[done..done + part];
            match self.pages.get(&(at / PAGE)) {
                Some(page) => {
                    target.copy_from_slice(&page[inside..inside + part]);
                    done += part;
                }
                None => {
                    // As far as the next changed page in one go.
                    let next = self.pages.range(at / PAGE..).next();
                    let end = next.map_or(u64::MAX, |(page, _)| page * PAGE);
                    let run = (end - at).min((count - done) as u64) as usize;
                    self.read_base(at, &mut buffer[done..done + run])?;
                    done += run;
                }
            }
        }
        Ok(count)
    }

    /// The bytes from `offset`, at most `len`.
    pub(super) fn bytes(&self, offset: u64, len: u64) -> Result<Vec<u8>, i32> {
        let there = self.len.saturating_sub(offset).min(len);
        let mut bytes = vec![0; there as usize];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn read_base(&self, offset: u64, buffer: &mut [u8]) -> Result<(), i32> {
        let there = self
            .base_len
            .saturating_sub(offset)
            .min(buffer.len() as u64) as usize;
        let (real, beyond) = buffer.split_at_mut(there);
        beyond.fill(0);
        if real.is_empty() {
            return Ok(());
        }
        match &self.base {
            Base::Nothing => real.fill(0),
            Base::Bytes(bytes) => {
                real.copy_from_slice(&bytes[offset as usize..offset as usize + there]);
            }
            Base::File(file) => read_all(file, offset, real)?,
        }
        Ok(())
    }

    /// Writes at `offset`, growing the file where needed.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), i32> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let inside = (at % PAGE) as usize;
            let part = (PAGE as usize - inside).min(bytes.len() - done);
            let page = self.page_mut(at / PAGE, part == PAGE as usize)?;
            page[inside..inside + part].copy_from_slice(&bytes[done..done + part]);
            done += part;
        }
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
        }
        Ok(())
    }

    /// The page, copied from the base if it was not changed before.
    fn page_mut(&mut self, index: u64, replaced: bool) -> Result<&mut [u8; PAGE as usize], i32> {
        if !self.pages.contains_key(&index) {
            let mut page = [0; PAGE as usize];
            if !replaced {
                self.read_base(index * PAGE, &mut page)?;
            }
            self.pages.insert(index, Arc::new(page));
        }
        Ok(Arc::make_mut(
            self.pages.get_mut(&index).expect("just inserted"),
        ))
    }

    /// `ftruncate`: cuts, or grows by zeros.
    pub(super) fn set_len(&mut self, len: u64) -> Result<(), i32> {
        if len < self.len {
            self.base_len = self.base_len.min(len);
            let beyond = self.pages.split_off(&len.div_ceil(PAGE));
            drop(beyond);
            let inside = (len % PAGE) as usize;
            if inside != 0 && self.pages.contains_key(&(len / PAGE)) {
                self.page_mut(len / PAGE, false)?[inside..].fill(0);
            }
        }
        self.len = len;
        Ok(())
    }

    /// Zeros in the middle (`FALLOC_FL_PUNCH_HOLE`).
    pub(super) fn punch(&mut self, offset: u64, len: u64) -> Result<(), i32> {
        let end = offset.saturating_add(len).min(self.len);
        let mut at = offset;
        while at < end {
            let part = (PAGE - at % PAGE).min(end - at);
            self.write(at, &[0; PAGE as usize][..part as usize])?;
            at += part;
        }
        Ok(())
    }
}

fn read_all(file: &File, offset: u64, buffer: &mut [u8]) -> Result<(), i32> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            // Somebody outside has cut the file: what is gone reads as zero, as in a mapping.
            Ok(0) => {
                buffer[done..].fill(0);
                break;
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(len: usize) -> Content {
        Content::from_bytes((0..len).map(|at| (at % 251) as u8).collect())
    }

    #[test]
    fn a_write_changes_its_bytes_and_no_others() {
        let before = file(10_000);
        let mut after = before.clone();
        after.write(4090, b"hello, world").unwrap();
        assert!(before.is_untouched() && !after.is_untouched());
        let (old, new) = (
            before.bytes(0, 10_000).unwrap(),
            after.bytes(0, 10_000).unwrap(),
        );
        assert_eq!(&new[4090..4102], b"hello, world");
        assert_eq!(&new[..4090], &old[..4090]);
        assert_eq!(&new[4102..], &old[4102..]);
    }

    /// Against the simplest file there is: a vector.
    #[test]
    fn random_changes_are_those_of_a_vector() {
        let random = &mut verdict_schedule::SplitMix::new(7);
        for _ in 0..50 {
            let mut content = file(12_000);
            let mut model = content.bytes(0, 12_000).unwrap();
            for _ in 0..60 {
                let at = random.below(20_000) as usize;
                let len = random.below(6000) as usize;
                match random.below(4) {
                    0 => {
                        content.set_len(at as u64).unwrap();
                        model.resize(at, 0);
                    }
                    1 => {
                        content.punch(at as u64, len as u64).unwrap();
                        let end = (at + len).min(model.len());
                        if at < end {
                            model[at..end].fill(0);
                        }
                    }
                    _ => {
                        let bytes = vec![random.next_u64() as u8; len];
                        content.write(at as u64, &bytes).unwrap();
                        if len > 0 {
                            model.resize(model.len().max(at + len), 0);
                            model[at..at + len].copy_from_slice(&bytes);
                        }
                    }
                }
                assert_eq!(content.len(), model.len() as u64);
                assert!(content.bytes(0, 1 << 20).unwrap() == model);
            }
        }
    }

    #[test]
    fn what_was_cut_off_does_not_come_back() {
        let mut content = file(9000);
        content.write(5000, &[7; 100]).unwrap();
        content.set_len(5050).unwrap();
        content.set_len(9000).unwrap();
        let bytes = content.bytes(0, 9000).unwrap();
        assert_eq!(bytes[5049], 7);
        assert!(bytes[5050..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_hole_before_a_far_write_is_zero() {
        let mut content = Content::default();
        content.write(1 << 40, b"x").unwrap();
        assert_eq!(content.len(), (1 << 40) + 1);
        assert_eq!(content.stored(), PAGE);
        assert_eq!(content.bytes(1 << 20, 3).unwrap(), [0, 0, 0]);
    }
}
