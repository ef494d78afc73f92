//! The body of a names frame: what got a name since the names frame before.
//!
//! ```text
//! body      = threads, sites, locations, syncs
//! threads   = number of threads named before, count, name*
//! sites     = number of sites named before, count, name*
//! locations = count, (address - address before, name)*
//! syncs     = count, (id - id before, name)*
//! name      = length, UTF-8 text
//! ```

use super::varint::{Cursor, Expected, put, put_signed};
use crate::{Addr, NameTable, SyncId};

/// Names waiting to be written.
#[derive(Default)]
pub(crate) struct NewNames {
    threads: Section,
    sites: Section,
    locations: Section,
    syncs: Section,
}

#[derive(Default)]
struct Section {
    /// How many names earlier frames hold.
    before: u64,
    count: u64,
    last: u64,
    bytes: Vec<u8>,
}

impl Section {
    fn push(&mut self, name: &str) {
        self.count += 1;
        put(&mut self.bytes, name.len() as u64);
        self.bytes.extend_from_slice(name.as_bytes());
    }

    fn push_at(&mut self, id: u64, name: &str) {
        put_signed(&mut self.bytes, id.wrapping_sub(self.last) as i64);
        self.last = id;
        self.push(name);
    }

    fn clear(&mut self) {
        self.before += self.count;
        self.count = 0;
        self.last = 0;
        self.bytes.clear();
    }
}

impl NewNames {
    pub(crate) fn push_thread(&mut self, name: &str) {
        self.threads.push(name);
    }

    pub(crate) fn push_site(&mut self, name: &str) {
        self.sites.push(name);
    }

    pub(crate) fn name_location(&mut self, addr: Addr, name: &str) {
        self.locations.push_at(addr.0, name);
    }

    pub(crate) fn name_sync(&mut self, id: SyncId, name: &str) {
        self.syncs.push_at(id.0, name);
    }

    /// Threads named so far.
    pub(crate) fn threads(&self) -> u64 {
        self.threads.before + self.threads.count
    }

    /// Sites named so far.
    pub(crate) fn sites(&self) -> u64 {
        self.sites.before + self.sites.count
    }

    /// Bytes waiting.
    pub(crate) fn bytes(&self) -> usize {
        self.sections()
            .iter()
            .map(|section| section.bytes.len())
            .sum()
    }

    fn sections(&self) -> [&Section; 4] {
        [&self.threads, &self.sites, &self.locations, &self.syncs]
    }

    /// Takes the names that are waiting.
    pub(crate) fn take_body(&mut self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.bytes() + 32);
        for dense in [&self.threads, &self.sites] {
            put(&mut body, dense.before);
            put(&mut body, dense.count);
            body.extend_from_slice(&dense.bytes);
        }
        for sparse in [&self.locations, &self.syncs] {
            put(&mut body, sparse.count);
            body.extend_from_slice(&sparse.bytes);
        }
        self.threads.clear();
        self.sites.clear();
        self.locations.clear();
        self.syncs.clear();
        body
    }
}

/// Adds the names of a body to `names`.
pub(crate) fn read(body: &[u8], names: &mut NameTable) -> Result<(), Expected> {
    let mut cursor = Cursor::new(body);
    expect_next(&mut cursor, names.threads())?;
    for _ in 0..cursor.count()? {
        names.push_thread(cursor.text()?);
    }
    expect_next(&mut cursor, names.sites())?;
    for _ in 0..cursor.count()? {
        names.push_site(cursor.text()?);
    }
    let mut last = 0u64;
    for _ in 0..cursor.count()? {
        last = last.wrapping_add(cursor.signed()? as u64);
        names.name_location(Addr(last), cursor.text()?);
    }
    last = 0;
    for _ in 0..cursor.count()? {
        last = last.wrapping_add(cursor.signed()? as u64);
        names.name_sync(SyncId(last), cursor.text()?);
    }
    match cursor.is_empty() {
        true => Ok(()),
        false => Err("the end of the names"),
    }
}

fn expect_next(cursor: &mut Cursor<'_>, named: usize) -> Result<(), Expected> {
    match cursor.varint()? == named as u64 {
        true => Ok(()),
        false => Err("the names that follow those read so far"),
    }
}
