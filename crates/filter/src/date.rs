//! Days, as people write them in files.

use std::fmt;
use std::str::FromStr;

/// A day: `2027-01-31`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// The day of a time given in seconds since the beginning of 1970, in UTC.
    #[must_use]
    pub fn of_unix_time(seconds: u64) -> Self {
        let mut days = seconds / (24 * 60 * 60);
        let mut year = 1970;
        while days >= u64::from(days_of_year(year)) && year < u16::MAX {
            days -= u64::from(days_of_year(year));
            year += 1;
        }
        let mut month = 1;
        while days >= u64::from(days_of_month(year, month)) && month < 12 {
            days -= u64::from(days_of_month(year, month));
            month += 1;
        }
        let day = u8::try_from(days + 1).unwrap_or(31);
        Self { year, month, day }
    }
}

fn days_of_year(year: u16) -> u16 {
    if is_leap(year) { 366 } else { 365 }
}

fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_month(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Four digits, two digits, two digits, and a day that there is.
impl FromStr for Date {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = |part: &str, width: usize| {
            let plain = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| part.parse::<u16>().ok()).flatten().ok_or(())
        };
        let mut parts = text.split('-');
        let mut next = |width| digits(parts.next().ok_or(())?, width);
        let (year, month, day) = (next(4)?, next(2)?, next(2)?);
        if parts.next().is_some() || !(1..=12).contains(&month) {
            return Err(());
        }
        let month = u8::try_from(month).map_err(|_| ())?;
        let day = u8::try_from(day).map_err(|_| ())?;
        if day == 0 || day > days_of_month(year, month) {
            return Err(());
        }
        Ok(Self { year, month, day })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_there_are_not_are_refused() {
        for text in [
            "2027-02-29",
            "2027-13-01",
            "2027-00-10",
            "2027-1-1",
            "27-01-01",
            "2027-01-01-",
            "+027-01-01",
            "",
        ] {
            assert_eq!(text.parse::<Date>(), Err(()), "{text}");
        }
        assert_eq!(
            "2028-02-29".parse::<Date>().unwrap().to_string(),
            "2028-02-29"
        );
    }

    #[test]
    fn unix_times_are_days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_794_787_199, "2026-11-15"),
            (1_794_787_200, "2026-11-16"),
            (4_102_444_799, "2099-12-31"),
        ] {
            assert_eq!(Date::of_unix_time(seconds).to_string(), day);
        }
    }
}
