//! The settings that have no parameter of their own.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// The parameter that sets them, as a JSON object: `{"StaleSeconds": 1200}`. Empty: all have their defaults.
pub const PARAMETER: &str = "OtherSettings";

/// The settings of [`PARAMETER`] that are not left to their defaults.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct OtherSettings(BTreeMap<String, Json>);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OtherSettingsError {
    #[error("{PARAMETER} is no JSON object of settings, such as {{\"StaleSeconds\": 1200}}: {0}")]
    Malformed(String),
    #[error("{PARAMETER} has no setting {0}")]
    Unknown(String),
    #[error("{name} is `{value}`; it must be {allowed}")]
    Refused { name: String, value: String, allowed: Allowed },
}

/// The values of a setting: a number within bounds, or a text whose bytes are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Allowed {
    pub least: u64,
    pub largest: u64,
    pub is_text: bool,
}

impl OtherSettings {
    /// Reads the value of [`PARAMETER`].
    ///
    /// # Errors
    /// [`OtherSettingsError::Malformed`].
    pub fn parse(json: &str) -> Result<Self, OtherSettingsError> {
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(json).map(Self).map_err(|error| OtherSettingsError::Malformed(error.to_string()))
    }

    /// A setting as text; `None` if it has its default.
    ///
    /// # Errors
    /// [`OtherSettingsError::Refused`].
    pub fn get(&self, name: &str, allowed: Allowed) -> Result<Option<String>, OtherSettingsError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let text = match value {
            Json::String(text) => text.clone(),
            other if allowed.is_text => return Err(allowed.refusal(name, &other.to_string())),
            other => other.to_string(),
        };
        allowed.check(name, &text)?;
        Ok(Some(text))
    }

    /// Sets a setting.
    ///
    /// # Errors
    /// [`OtherSettingsError::Refused`].
    pub fn set(&mut self, name: &str, text: &str, allowed: Allowed) -> Result<(), OtherSettingsError> {
        let number = allowed.check(name, text)?;
        self.0.insert(name.to_owned(), number.map_or_else(|| text.into(), Json::from));
        Ok(())
    }

    /// Leaves a setting to its default.
    pub fn reset(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The value of [`PARAMETER`].
    pub fn text(&self) -> String {
        if self.0.is_empty() { String::new() } else { serde_json::to_string(&self.0).expect("JSON has its text") }
    }
}

impl Allowed {
    /// Checks a value, and returns it if it is a number.
    fn check(self, name: &str, text: &str) -> Result<Option<u64>, OtherSettingsError> {
        let number = if self.is_text { None } else { text.trim().parse().ok() };
        let is_plain = !text.contains(|c: char| c == '"' || c == '\\' || c.is_control());
        let measured = if self.is_text { u64::try_from(text.len()).ok().filter(|_| is_plain) } else { number };
        match measured {
            Some(measured) if (self.least..=self.largest).contains(&measured) => Ok(number),
            _ => Err(self.refusal(name, text)),
        }
    }

    fn refusal(self, name: &str, value: &str) -> OtherSettingsError {
        OtherSettingsError::Refused { name: name.to_owned(), value: value.to_owned(), allowed: self }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { least, largest, is_text } = self;
        if *is_text {
            write!(f, "a text of {least} to {largest} bytes without quotes, backslashes and line breaks")
        } else {
            write!(f, "a whole number from {least} to {largest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: Allowed = Allowed { least: 5, largest: 900, is_text: false };
    const TEXT: Allowed = Allowed { least: 0, largest: 4, is_text: true };

    #[test]
    fn a_setting_is_read_as_it_was_set() {
        let mut settings = OtherSettings::parse("").unwrap();
        assert_eq!(settings.text(), "");
        settings.set("A", " 20 ", NUMBER).unwrap();
        settings.set("B", "12", TEXT).unwrap();
        assert_eq!(settings.text(), r#"{"A":20,"B":"12"}"#);

        let mut settings = OtherSettings::parse(&settings.text()).unwrap();
        assert_eq!(settings.get("A", NUMBER), Ok(Some("20".to_owned())));
        assert_eq!(settings.get("B", TEXT), Ok(Some("12".to_owned())));
        assert_eq!(settings.get("C", TEXT), Ok(None));
        settings.reset("A");
        assert_eq!(settings.names().collect::<Vec<_>>(), ["B"]);
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_with_the_bounds() {
        let refusal =
            |json, name, allowed| OtherSettings::parse(json).unwrap().get(name, allowed).unwrap_err().to_string();
        assert_eq!(refusal(r#"{"A": 4}"#, "A", NUMBER), "A is `4`; it must be a whole number from 5 to 900");
        assert_eq!(refusal(r#"{"A": 5.5}"#, "A", NUMBER), "A is `5.5`; it must be a whole number from 5 to 900");
        assert_eq!(refusal(r#"{"A": null}"#, "A", NUMBER), "A is `null`; it must be a whole number from 5 to 900");
        assert_eq!(
            refusal(r#"{"A": "abcde"}"#, "A", TEXT),
            "A is `abcde`; it must be a text of 0 to 4 bytes without quotes, backslashes and line breaks"
        );
        for (json, value) in [(r#"{"A": 1}"#, "1"), (r#"{"A": null}"#, "null"), (r#"{"A": "\""}"#, "\"")] {
            assert!(refusal(json, "A", TEXT).starts_with(&format!("A is `{value}`; it must be a text")));
        }
        assert!(OtherSettings::default().set("A", "901", NUMBER).is_err());
        for malformed in ["[]", "{", "StaleSeconds=5"] {
            let error = OtherSettings::parse(malformed).unwrap_err().to_string();
            assert!(
                error.starts_with("OtherSettings is no JSON object of settings, such as {\"StaleSeconds\": 1200}: ")
            );
        }
    }
}
