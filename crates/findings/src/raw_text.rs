//! Names that are not UTF-8, as text and back.
//!
//! A path or an argument is any bytes without a zero. What is not UTF-8 is written as `\xNN`, and a backslash as two, so that
//! the bytes can be had again. JSON and reports then need to know nothing of it.

/// The text of any bytes.
#[must_use]
pub fn text_of_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                text.push('\\');
            }
            text.push(character);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The bytes that [`text_of_bytes`] was given. A backslash that it would not have written stands for itself.
#[must_use]
pub fn bytes_of_text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else if let Some((byte, after)) = escaped_byte(rest) {
            bytes.push(byte);
            rest = after;
        } else {
            bytes.push(b'\\');
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// `xNN` at the start, and what comes after it.
fn escaped_byte(text: &str) -> Option<(u8, &str)> {
    let digits = text.strip_prefix('x')?.get(..2)?;
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = u8::from_str_radix(digits, 16).ok().filter(|_| plain)?;
    Some((byte, &text[3..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_utf_8_can_be_read() {
        assert_eq!(text_of_bytes(b"/tmp/caf\xe9.c"), "/tmp/caf\\xe9.c");
        assert_eq!(text_of_bytes("/tmp/café.c".as_bytes()), "/tmp/café.c");
        assert_eq!(text_of_bytes(b"a\\xe9"), "a\\\\xe9");
        assert_eq!(bytes_of_text("a\\q\\x+1\\"), b"a\\q\\x+1\\");
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x'), Just(b'e')], 0..40,
        )) {
            prop_assert_eq!(bytes_of_text(&text_of_bytes(&bytes)), bytes);
        }
    }
}
