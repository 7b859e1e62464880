//! The types that a setting may have.

use std::time::Duration;

/// The value of a setting. The parameter's name gives the unit of a [`Duration`].
pub trait Value: Sized {
    /// The format of a value, for people.
    const EXPECTED: &'static str;

    /// True if the bounds of a value are those of its length.
    const IS_TEXT: bool = false;

    /// Reads a value; `None` if the text is none.
    fn parse(text: &str, parameter: &str) -> Option<Self>;

    /// The value as the template writes it.
    fn text(&self, parameter: &str) -> String;
}

macro_rules! numbers {
    ($($type:ty: $expected:literal;)+) => {$(
        impl Value for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str, _parameter: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn text(&self, _parameter: &str) -> String {
                self.to_string()
            }
        }
    )+};
}

numbers! {
    u32: "a whole number from 0 to 4294967295";
    u64: "a whole number, 0 or more";
    usize: "a whole number, 0 or more";
}

impl Value for String {
    const EXPECTED: &'static str = "a text";
    const IS_TEXT: bool = true;

    fn parse(text: &str, _parameter: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn text(&self, _parameter: &str) -> String {
        self.clone()
    }
}

impl Value for Duration {
    const EXPECTED: &'static str = "a whole number, 0 or more, in the unit that the name ends with";

    fn parse(text: &str, parameter: &str) -> Option<Self> {
        let count: u64 = text.parse().ok()?;
        count.checked_mul(unit_seconds(parameter)).map(Self::from_secs)
    }

    fn text(&self, parameter: &str) -> String {
        (self.as_secs() / unit_seconds(parameter)).to_string()
    }
}

/// The seconds in the unit that a parameter's name ends with.
///
/// # Panics
/// If the name ends with no unit. The tests of the template call this for every setting.
fn unit_seconds(parameter: &str) -> u64 {
    let units = [("Seconds", 1), ("Hours", 60 * 60), ("Days", 24 * 60 * 60)];
    let unit = units.into_iter().find(|(name, _)| parameter.ends_with(name));
    unit.unwrap_or_else(|| panic!("{parameter} must end with Seconds, Hours or Days")).1
}
