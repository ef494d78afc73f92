//! Numbers out of text, eight digits at a time in one register.

use crate::intern::Numbered;

const ONES: u64 = 0x0101_0101_0101_0101;

/// The name of shape letter + number (or bare number) at `at`, if `stop` follows it, and where the byte
/// after `stop` is. `None` for everything else, including numbers of 8 digits and more or with leading
/// zeros, which are names in their own right. Agrees with [`crate::intern::split_numbered`].
#[inline(always)]
pub(crate) fn numbered(window: &[u8], at: usize, stop: u8) -> Option<(Numbered, usize)> {
    let first = *window.get(at)?;
    let has_prefix = !first.is_ascii_digit();
    let start = at + usize::from(has_prefix);
    let (number, digits) = number(window.get(start..start + 8)?.try_into().ok()?)?;
    let end = start + digits;
    if *window.get(end)? != stop || (has_prefix && matches!(first, 0 | b'|' | b'(' | b')' | b'\n'))
    {
        return None;
    }
    let prefix = if has_prefix { first } else { 0 };
    Some((Numbered { prefix, number }, end + 1))
}

/// The number of 1 to 7 digits at the start of eight bytes, without leading zeros, and its length.
#[inline(always)]
fn number(bytes: [u8; 8]) -> Option<(u32, usize)> {
    // Each byte becomes its digit; what is no digit becomes at least 10.
    let digits = u64::from_le_bytes(bytes) ^ (ONES * b'0' as u64);
    // Adding 0x76 carries a byte of 10 or more into its top bit. A carry out of a byte can only disturb
    // later bytes, and only the first one that is no digit counts.
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80);
    let length = (others.trailing_zeros() / 8) as usize;
    if length == 0 || length == 8 || (digits & 0xff == 0 && length > 1) {
        return None;
    }
    // Leading digits become zeros, then neighbours are joined: 8 x 1 digit, 4 x 2, 2 x 4, 1 x 8.
    let ones = digits << (64 - 8 * length);
    let twos = (ones.wrapping_mul(10 * 256 + 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100 * 65536 + 1) >> 16) & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul((10_000 << 32) + 1) >> 32;
    Some((eight as u32, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intern::split_numbered;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_plain_way(name in "[VTé]?[0-9]{0,9}[a-z]?", rest in "[|)\n].{8}") {
            let text = format!("{name}{rest}          ");
            let stop = rest.as_bytes()[0];
            let expected = split_numbered(name.as_bytes());
            let found = numbered(text.as_bytes(), 0, stop);
            prop_assert_eq!(found.map(|(name, _)| name), expected);
            if let Some((_, after)) = found {
                prop_assert_eq!(after, name.len() + 1);
            }
        }
    }
}
