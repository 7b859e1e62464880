//! Settings from the environment.

use std::any::type_name;
use std::str::FromStr;

/// Why a function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that has no default is not there.
    #[error("{name} is not set; it must be {expected}")]
    Missing {
        /// The environment variable.
        name: String,
        /// What it must hold.
        expected: &'static str,
    },
    /// A setting does not hold what it must.
    #[error("{name} is `{value}`; it must be {expected}")]
    Invalid {
        /// The environment variable.
        name: String,
        /// What it holds.
        value: String,
        /// What it must hold.
        expected: &'static str,
    },
}

/// The setting of this name, or the default where it is not set or empty.
///
/// # Errors
/// [`StartError::Invalid`], which names the variable, what it holds and what it must hold.
pub fn setting<T: FromStr>(name: &str, default: T) -> Result<T, StartError> {
    read(name, std::env::var(name).ok(), default)
}

/// The setting of this name, which has no default.
///
/// # Errors
/// [`StartError::Missing`].
pub fn required(name: &str, expected: &'static str) -> Result<String, StartError> {
    let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    value.ok_or_else(|| StartError::Missing { name: name.to_owned(), expected })
}

fn read<T: FromStr>(name: &str, value: Option<String>, default: T) -> Result<T, StartError> {
    match value.filter(|value| !value.trim().is_empty()) {
        None => Ok(default),
        Some(value) => value.trim().parse().map_err(|_| StartError::Invalid {
            name: name.to_owned(),
            value,
            expected: expected::<T>(),
        }),
    }
}

/// What a value of this type looks like, for a person.
fn expected<T>() -> &'static str {
    match type_name::<T>() {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" => "true or false",
        _ => "a value of another form",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_not_made_has_its_default() {
        assert_eq!(read("ROWMILL_X", None, 7_u64).unwrap(), 7);
        assert_eq!(read("ROWMILL_X", Some(" ".into()), 7_u64).unwrap(), 7);
        assert_eq!(read("ROWMILL_X", Some(" 12 ".into()), 7_u64).unwrap(), 12);
    }

    #[test]
    fn a_wrong_setting_says_which_one_what_it_is_and_what_it_must_be() {
        let error = read("ROWMILL_CHUNK_MAX_ITEMS", Some("many".into()), 500_u32).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ROWMILL_CHUNK_MAX_ITEMS is `many`; it must be a whole number from 0 to 4294967295"
        );
        assert!(read("ROWMILL_X", Some("-1".into()), 7_u64).is_err());
    }

    #[test]
    fn a_missing_setting_says_what_it_must_be() {
        let error = required("ROWMILL_SURELY_NOT_SET", "the name of the jobs table").unwrap_err();
        assert_eq!(error.to_string(), "ROWMILL_SURELY_NOT_SET is not set; it must be the name of the jobs table");
    }
}
