//! Numbers in bytes: LEB128 for what varies, columns of a fixed width for what is looked up by index.

pub(crate) use verdict_events::native::varint::{Cursor, Expected, put};

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

/// A count of things of which each takes at least `bytes_each` of the bytes that are left.
pub(crate) fn count_of(cursor: &mut Cursor, bytes_each: usize) -> Result<usize, Expected> {
    let count = cursor.varint()?;
    let room = (cursor.remaining() / bytes_each.max(1)) as u64;
    if count > room {
        return Err("as many things as are announced");
    }
    Ok(count as usize)
}

/// Values of one width, by index.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    width: u8,
    bytes: &'a [u8],
}

impl<'a> Column<'a> {
    /// A column of `count` values.
    pub fn read(cursor: &mut Cursor<'a>, count: usize) -> Result<Column<'a>, Expected> {
        let width = cursor.byte()?;
        if !matches!(width, 1 | 2 | 4) {
            return Err("a width of 1, 2 or 4 bytes");
        }
        let bytes = count.checked_mul(usize::from(width)).ok_or("fewer rows")?;
        let bytes = cursor.bytes(bytes)?;
        Ok(Column { width, bytes })
    }

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
