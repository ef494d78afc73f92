//! `THREAD:COUNT`.

use verdict_protocol::Until;

/// `2:15000` is the moment at which thread 2 has executed 15,000 instructions.
pub(crate) fn parse(text: &str) -> Result<Until, String> {
    let parsed = text.split_once(':').and_then(|(thread, count)| {
        Some(Until {
            thread: thread.parse().ok()?,
            instructions: count.replace(',', "").parse().ok()?,
        })
    });
    parsed.ok_or_else(|| "expected THREAD:COUNT, such as 2:15000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_be_grouped() {
        let until = Until {
            thread: 2,
            instructions: 15_000,
        };
        assert_eq!(parse("2:15000"), Ok(until));
        assert_eq!(parse("2:15,000"), Ok(until));
        for bad in ["", "2", "2:", ":5", "-1:5", "2:5:6", "two:5"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
