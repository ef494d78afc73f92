//! A day of the calendar.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A day, written `2027-01-31`. Later days are greater.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(try_from = "String", into = "String")]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

/// Text that is not a day.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("`{found}` is not a day; days are written as 2027-01-31")]
pub struct DayError {
    found: String,
}

impl Day {
    /// The day, in UTC, that holds a moment given as seconds since the beginning of 1970.
    #[must_use]
    pub fn of_unix_time(seconds: u64) -> Self {
        let mut days = seconds / 86_400;
        let mut year: u16 = 1970;
        loop {
            let length = if is_leap(year) { 366 } else { 365 };
            if days < length || year == u16::MAX {
                break;
            }
            days -= length;
            year += 1;
        }
        let mut month = 1;
        while days >= u64::from(month_length(year, month)) && month < 12 {
            days -= u64::from(month_length(year, month));
            month += 1;
        }
        let day = days.min(30) as u8 + 1;
        Self { year, month, day }
    }
}

fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_length(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let parsed = || {
            let shape = text.len() == 10
                && text.bytes().enumerate().all(|(at, byte)| match at {
                    4 | 7 => byte == b'-',
                    _ => byte.is_ascii_digit(),
                });
            let number = |from: usize, to: usize| text.get(from..to)?.parse::<u16>().ok();
            let (year, month, day) = (number(0, 4)?, number(5, 7)? as u8, number(8, 10)? as u8);
            let real = shape
                && (1..=12).contains(&month)
                && (1..=month_length(year, month)).contains(&day);
            real.then_some(Self { year, month, day })
        };
        parsed().ok_or_else(|| DayError {
            found: text.to_owned(),
        })
    }
}

impl TryFrom<String> for Day {
    type Error = DayError;

    fn try_from(text: String) -> Result<Self, DayError> {
        text.parse()
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_real_days_are_days() {
        for text in [
            "2027-02-29",
            "2027-13-01",
            "2027-00-10",
            "2027-1-1",
            "27-01-01",
            "+027-01-01",
            "",
            "2027-01-é",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        assert_eq!(
            "2028-02-29".parse::<Day>().unwrap().to_string(),
            "2028-02-29"
        );
    }

    #[test]
    fn moments_have_days() {
        let days = [0, 951_782_400, 1_794_700_800, 4_107_542_399]
            .map(|at| Day::of_unix_time(at).to_string());
        assert_eq!(
            days,
            ["1970-01-01", "2000-02-29", "2026-11-15", "2100-02-28"]
        );
    }

    proptest! {
        #[test]
        fn later_moments_have_later_days(seconds in 0u64..200_000_000_000) {
            let (today, tomorrow) = (Day::of_unix_time(seconds), Day::of_unix_time(seconds + 86_400));
            prop_assert!(today < tomorrow);
            prop_assert_eq!(today.to_string().parse::<Day>(), Ok(today));
        }
    }
}
