//! LEB128 integers and the cursor that reads them, for every file with numbers that are mostly small.

/// Appends `value`, seven bits a byte, lowest first.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number so that small ones of both signs are short.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, (value as u64) << 1 ^ (value >> 63) as u64);
}

/// What was expected where the bytes of a frame do not make sense.
pub type Expected = &'static str;

/// Reads numbers from bytes.
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// From their first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether all have been read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many have not been read.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// The next byte.
    #[inline(always)]
    pub fn byte(&mut self) -> Result<u8, Expected> {
        let (&byte, rest) = self.bytes.split_first().ok_or("another byte")?;
        self.bytes = rest;
        Ok(byte)
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Expected> {
        let (bytes, rest) = self.bytes.split_at_checked(count).ok_or("more bytes")?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// The next bytes, if there are so many and they are such.
    #[inline(always)]
    pub fn take_if<const N: usize>(&mut self, such: impl Fn([u8; N]) -> bool) -> Option<[u8; N]> {
        let (&bytes, rest) = self.bytes.split_first_chunk()?;
        such(bytes).then(|| {
            self.bytes = rest;
            bytes
        })
    }

    /// A number of 64 bits.
    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64, Expected> {
        match self.bytes {
            [byte @ ..0x80, rest @ ..] => {
                self.bytes = rest;
                Ok(u64::from(*byte))
            }
            [low, high @ ..0x80, rest @ ..] => {
                self.bytes = rest;
                Ok(u64::from(*low & 0x7f) | u64::from(*high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Expected> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
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

    /// A signed number.
    #[inline(always)]
    pub fn signed(&mut self) -> Result<i64, Expected> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number of 32 bits.
    #[inline(always)]
    pub fn varint_u32(&mut self) -> Result<u32, Expected> {
        u32::try_from(self.varint()?).map_err(|_| "a number of at most 32 bits")
    }

    /// A count of things that take at least one byte each.
    pub fn count(&mut self) -> Result<usize, Expected> {
        let count = usize::try_from(self.varint()?).map_err(|_| "a count")?;
        if count > self.remaining() {
            return Err("a count that fits the bytes that follow");
        }
        Ok(count)
    }

    /// Text after its length.
    pub fn text(&mut self) -> Result<&'a str, Expected> {
        let length = self.count()?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| "UTF-8 text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, signed: i64) {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            put_signed(&mut bytes, signed);
            let mut cursor = Cursor::new(&bytes);
            prop_assert_eq!(cursor.varint(), Ok(value));
            prop_assert_eq!(cursor.signed(), Ok(signed));
            prop_assert!(cursor.is_empty());
        }
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused() {
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert!(Cursor::new(&too_large).varint().is_err());
        assert!(Cursor::new(&[0x80; 11]).varint().is_err());
        assert!(Cursor::new(&[0x80]).varint().is_err());
    }
}
