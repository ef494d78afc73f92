//! Numbers in bytes: LEB128 for what varies, columns of a fixed width for what is looked up by index.

/// What was expected where bytes do not make sense.
pub(crate) type Expected = &'static str;

/// Appends `value`, seven bits a byte, lowest first.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends all values with as many bytes each as the largest needs, after a byte that says how many.
pub(crate) fn put_column(out: &mut Vec<u8>, values: impl Iterator<Item = u32> + Clone) {
    let largest = values.clone().max().unwrap_or(0);
    match largest {
        0..=0xff => {
            out.push(1);
            out.extend(values.map(|value| value as u8));
        }
        0x100..=0xffff => {
            out.push(2);
            out.extend(values.flat_map(|value| (value as u16).to_le_bytes()));
        }
        _ => {
            out.push(4);
            out.extend(values.flat_map(u32::to_le_bytes));
        }
    }
}

/// Reads numbers one after another.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Expected> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or("more bytes")?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline(always)]
    pub fn number(&mut self) -> Result<u64, Expected> {
        match self.bytes {
            [byte @ ..0x80, rest @ ..] => {
                self.bytes = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, Expected> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err("a number of at most 64 bits");
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number of at most 10 bytes")
    }

    #[inline(always)]
    pub fn number32(&mut self) -> Result<u32, Expected> {
        u32::try_from(self.number()?).map_err(|_| "a number of at most 32 bits")
    }

    /// A count of things of which each takes at least `bytes_each` of the bytes that are left.
    pub fn count(&mut self, bytes_each: usize) -> Result<usize, Expected> {
        let count = self.number()?;
        let room = (self.bytes.len() / bytes_each.max(1)) as u64;
        if count > room {
            return Err("as many things as are announced");
        }
        Ok(count as usize)
    }

    pub fn text(&mut self) -> Result<&'a str, Expected> {
        let length = self.count(1)?;
        std::str::from_utf8(self.take(length)?).map_err(|_| "text in UTF-8")
    }

    pub fn column(&mut self, count: usize) -> Result<Column<'a>, Expected> {
        let width = self.take(1)?[0];
        if !matches!(width, 1 | 2 | 4) {
            return Err("a width of 1, 2 or 4 bytes");
        }
        let bytes = count.checked_mul(usize::from(width)).ok_or("fewer rows")?;
        Ok(Column {
            width,
            bytes: self.take(bytes)?,
        })
    }
}

/// Values of one width, by index.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    width: u8,
    bytes: &'a [u8],
}

impl Column<'_> {
    /// The value at an index below the number of values.
    #[inline(always)]
    pub fn get(&self, index: usize) -> u32 {
        match self.width {
            1 => u32::from(self.bytes[index]),
            2 => u32::from(u16::from_le_bytes([
                self.bytes[2 * index],
                self.bytes[2 * index + 1],
            ])),
            _ => {
                let at = 4 * index;
                let four = [0, 1, 2, 3].map(|byte| self.bytes[at + byte]);
                u32::from_le_bytes(four)
            }
        }
    }
}
