//! Sizes as people write them.

/// `100M` as 104857600.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "a number is expected, with K, M or G behind it if you like".to_owned())?;
    number
        .checked_mul(unit)
        .ok_or_else(|| "no disk is that large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("17"), Ok(17));
        assert_eq!(parse("2k"), Ok(2048));
        assert_eq!(parse("3M"), Ok(3 << 20));
        assert_eq!(parse("1G"), Ok(1 << 30));
        for bad in ["", "K", "-1", "1.5M", "1T", "99999999999G", "é"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
