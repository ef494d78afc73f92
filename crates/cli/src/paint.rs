//! Colour for people, nothing for pipes.

use std::fmt::{self, Display};

use verdict_report::Tone;

/// Wraps text in terminal colours, or leaves it as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paint {
    enabled: bool,
}

/// Text with a colour, made by [`Paint`]. Honours width and alignment of the format string.
struct Painted<T> {
    text: T,
    code: Option<&'static str>,
}

impl Paint {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled }
    }

    /// For headings and what matters most.
    pub fn bold<T: Display>(self, text: T) -> impl Display {
        self.with("1", text)
    }

    /// For what matters least.
    pub fn dim<T: Display>(self, text: T) -> impl Display {
        self.with("2", text)
    }

    /// For errors and harmful races.
    pub fn red<T: Display>(self, text: T) -> impl Display {
        self.with("1;31", text)
    }

    /// For warnings.
    pub fn yellow<T: Display>(self, text: T) -> impl Display {
        self.with("33", text)
    }

    /// For what is fine.
    pub fn green<T: Display>(self, text: T) -> impl Display {
        self.with("32", text)
    }

    /// For advice and places in the program.
    pub fn cyan<T: Display>(self, text: T) -> impl Display {
        self.with("36", text)
    }

    /// How reports are painted.
    pub(crate) fn tones(self) -> impl Fn(Tone, &str) -> String {
        move |tone, text| match tone {
            Tone::Heading => self.bold(text).to_string(),
            Tone::Bad => self.red(text).to_string(),
            Tone::Good => self.green(text).to_string(),
            Tone::Dim => self.dim(text).to_string(),
        }
    }

    fn with<T: Display>(self, code: &'static str, text: T) -> Painted<T> {
        Painted {
            text,
            code: self.enabled.then_some(code),
        }
    }
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(code) = self.code else {
            return self.text.fmt(f);
        };
        write!(f, "\x1b[{code}m")?;
        self.text.fmt(f)?;
        f.write_str("\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_outside_the_padding() {
        assert_eq!(format!("[{:>4}]", Paint::new(false).red("ab")), "[  ab]");
        assert_eq!(
            format!("[{:>4}]", Paint::new(true).red("ab")),
            "[\x1b[1;31m  ab\x1b[0m]"
        );
    }
}
