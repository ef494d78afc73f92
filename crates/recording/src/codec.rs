//! Values as bytes: numbers are LEB128, everything else is built of numbers and bytes.

/// What was expected where bytes make no sense.
pub(crate) type Expected = &'static str;

/// A value that can be written and read back.
pub(crate) trait Codec: Sized {
    fn encode(&self, out: &mut Vec<u8>);
    fn decode(input: &mut Input) -> Result<Self, Expected>;
}

/// Bytes that are being read.
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Expected> {
        let (&byte, rest) = self.bytes.split_first().ok_or("another byte")?;
        self.bytes = rest;
        Ok(byte)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Expected> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or("more bytes")?;
        self.bytes = rest;
        Ok(taken)
    }

    /// How many elements follow. Each takes at least a byte, so no more than there are bytes.
    fn count(&mut self) -> Result<usize, Expected> {
        let count = usize::try_from(u64::decode(self)?).map_err(|_| "a length")?;
        if count > self.remaining() {
            return Err("a length within the frame");
        }
        Ok(count)
    }
}

impl Codec for u64 {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut value = *self;
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = input.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err("a number of at most 64 bits");
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number of at most 10 bytes")
    }
}

impl Codec for i64 {
    fn encode(&self, out: &mut Vec<u8>) {
        // Small numbers of both signs are short.
        ((*self as u64) << 1 ^ (*self >> 63) as u64).encode(out);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        let value = u64::decode(input)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

macro_rules! narrow {
    ($($narrow:ty as $wide:ty),*) => {$(
        impl Codec for $narrow {
            fn encode(&self, out: &mut Vec<u8>) {
                <$wide>::from(*self).encode(out);
            }

            fn decode(input: &mut Input) -> Result<Self, Expected> {
                Self::try_from(<$wide>::decode(input)?).map_err(|_| "a smaller number")
            }
        }
    )*};
}

narrow!(u32 as u64, i32 as i64);

impl Codec for u8 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        input.byte()
    }
}

impl Codec for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("0 or 1"),
        }
    }
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u64).encode(out);
    out.extend_from_slice(bytes);
}

fn decode_bytes(input: &mut Input) -> Result<Vec<u8>, Expected> {
    let count = input.count()?;
    input.take(count).map(<[u8]>::to_vec)
}

impl Codec for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self, out);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        decode_bytes(input)
    }
}

impl Codec for String {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self.as_bytes(), out);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        Self::from_utf8(decode_bytes(input)?).map_err(|_| "UTF-8 text")
    }
}

impl<const COUNT: usize> Codec for [u8; COUNT] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        let bytes = input.take(COUNT)?;
        Ok(bytes.try_into().expect("as many as were asked for"))
    }
}

impl<T: Codec> Codec for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        match bool::decode(input)? {
            true => T::decode(input).map(Some),
            false => Ok(None),
        }
    }
}

/// What there are lists of: everything but bytes, which are not taken one at a time.
pub(crate) trait Element: Codec {}

impl Element for u64 {}
impl Element for Vec<u8> {}

impl<T: Element> Codec for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u64).encode(out);
        for value in self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        let count = input.count()?;
        // Grows as elements are found: a lying count must not cost memory.
        let mut values = Self::new();
        for _ in 0..count {
            values.push(T::decode(input)?);
        }
        Ok(values)
    }
}

impl<T: Codec> Codec for Box<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        T::decode(input).map(Self::new)
    }
}

/// A struct is its fields in the given order.
macro_rules! codec_struct {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::codec::Codec for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $($crate::codec::Codec::encode(&self.$field, out);)*
            }

            fn decode(
                input: &mut $crate::codec::Input,
            ) -> Result<Self, $crate::codec::Expected> {
                Ok(Self { $($field: $crate::codec::Codec::decode(input)?),* })
            }
        }
    };
}

/// An enum is a byte that says which variant, then the variant's fields in the given order.
macro_rules! codec_enum {
    ($name:ident, $expected:literal { $($tag:literal => $variant:ident { $($field:ident),* }),* $(,)? }) => {
        impl $crate::codec::Codec for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant { $($field),* } => {
                        out.push($tag);
                        $($crate::codec::Codec::encode($field, out);)*
                    })*
                }
            }

            fn decode(
                input: &mut $crate::codec::Input,
            ) -> Result<Self, $crate::codec::Expected> {
                match input.byte()? {
                    $($tag => Ok(Self::$variant {
                        $($field: $crate::codec::Codec::decode(input)?),*
                    }),)*
                    _ => Err($expected),
                }
            }
        }
    };
}

pub(crate) use {codec_enum, codec_struct};
