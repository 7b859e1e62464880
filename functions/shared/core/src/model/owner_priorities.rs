//! The parameter `OwnerPriorities`: a JSON object from owner to the highest priority that the owner may use.
//!
//! ```json
//! {"*": "normal", "local": "high", "ann": "high", "nightly@example.com": "low"}
//! ```
//!
//! `*` stands for all owners that it does not name; without it they may use `normal`. The functions read it at their
//! start, and `rowmill` checks it before it deploys.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::model::entries::Entries;
use crate::model::ids::Owner;
use crate::model::job::Priority;

/// The parameter if nothing is said: the one owner of a stack without login may use every priority, others `normal` at
/// most.
pub const DEFAULT: &str = r#"{"*": "normal", "local": "high"}"#;

/// The name that stands for all other owners.
const OTHERS: &str = "*";

/// The longest parameter, in characters: as in the template, so that no function finds a longer one at its start. All
/// variables of a function share 4 KB.
pub const MAX_CHARS: usize = 3000;

/// Maximum length of a name or of a word in an error.
const SHOWN_MAX_CHARS: usize = 64;

/// The highest priority of each owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerPriorities {
    named: Arc<BTreeMap<String, Priority>>,
    others: Priority,
}

/// Why the parameter is invalid.
#[derive(Debug, thiserror::Error)]
pub enum OwnerPrioritiesError {
    #[error("the parameter OwnerPriorities has {chars} characters; at most {MAX_CHARS} are allowed")]
    TooLong { chars: usize },
    /// It is not a JSON object.
    #[error("the parameter OwnerPriorities is not a JSON object from owner to priority, such as {DEFAULT}: {0}")]
    NotJson(#[source] serde_json::Error),
    #[error("the parameter OwnerPriorities: `{name}` {problem}")]
    Owner {
        name: String,
        /// The rest of the sentence that begins with the name.
        problem: String,
    },
}

/// An owner asks for a higher priority than it may use. The text is the problem detail that the client reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "The owner of the job may use priority `{}` at most, but `priority` is `{}`. Send a lower one or none, or ask the \
     operator of this service.",
    highest.as_str(),
    asked.as_str()
)]
pub struct PriorityNotAllowed {
    pub asked: Priority,
    pub highest: Priority,
}

impl Default for OwnerPriorities {
    /// Those of [`DEFAULT`].
    fn default() -> Self {
        let named = BTreeMap::from([(Owner::LOCAL.to_owned(), Priority::High)]);
        Self { named: Arc::new(named), others: Priority::Normal }
    }
}

impl OwnerPriorities {
    /// Parses the parameter. An empty text means [`DEFAULT`].
    pub fn parse(json: &str) -> Result<Self, OwnerPrioritiesError> {
        let chars = json.chars().count();
        if chars > MAX_CHARS {
            return Err(OwnerPrioritiesError::TooLong { chars });
        }
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        let Entries(entries) = serde_json::from_str(json).map_err(OwnerPrioritiesError::NotJson)?;
        let mut named = BTreeMap::new();
        for (name, word) in entries {
            let highest = check_name(&name, named.contains_key(&name)).and_then(|()| priority_of(&word));
            let highest = highest.map_err(|problem| OwnerPrioritiesError::Owner { name: shortened(&name), problem })?;
            named.insert(name, highest);
        }
        let others = named.remove(OTHERS).unwrap_or(Priority::Normal);
        Ok(Self { named: Arc::new(named), others })
    }

    pub fn highest(&self, owner: &Owner) -> Priority {
        self.named.get(owner.as_str()).copied().unwrap_or(self.others)
    }

    /// The priority that this owner asks for.
    pub fn allow(&self, owner: &Owner, asked: Priority) -> Result<Priority, PriorityNotAllowed> {
        let highest = self.highest(owner);
        if asked.at_most(highest) == asked { Ok(asked) } else { Err(PriorityNotAllowed { asked, highest }) }
    }
}

fn check_name(name: &str, taken: bool) -> Result<(), String> {
    if Owner::of_name(name).is_none() {
        let max = Owner::MAX_BYTES;
        return Err(format!(
            "must be an owner, or `*` for all others: 1 to {max} bytes, no control characters and no `#`"
        ));
    }
    if taken { Err("appears twice; give it one priority".to_owned()) } else { Ok(()) }
}

fn priority_of(word: &Value) -> Result<Priority, String> {
    let known = || Priority::ALL.map(|priority| format!("`{}`", priority.as_str())).join(", ");
    let unknown = || format!("has {}; its highest priority must be one of {}", shortened(&word.to_string()), known());
    word.as_str().and_then(Priority::parse).ok_or_else(unknown)
}

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> OwnerPriorities {
        OwnerPriorities::parse(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    fn error_for(json: &str) -> String {
        OwnerPriorities::parse(json).expect_err("it is invalid").to_string()
    }

    fn highest(priorities: &OwnerPriorities, owner: &str) -> Priority {
        priorities.highest(&Owner(owner.into()))
    }

    #[test]
    fn an_owner_has_the_priority_that_is_set_and_all_others_that_of_the_star() {
        let priorities = parsed(r#"{"größe of Rome": "high", "*": "low", "a\"b\\": "normal", "auth0|7": "normal"}"#);
        assert_eq!(highest(&priorities, "größe of Rome"), Priority::High);
        assert_eq!(highest(&priorities, "a\"b\\"), Priority::Normal);
        assert_eq!(highest(&priorities, "auth0|7"), Priority::Normal);
        for other in ["local", "ann", "*", "", "Größe of Rome", "auth0|7 "] {
            assert_eq!(highest(&priorities, other), Priority::Low, "{other}");
        }
    }

    #[test]
    fn without_a_star_all_others_may_use_normal() {
        let priorities = parsed(r#"{"ann": "high", "bob": "low"}"#);
        let all = ["ann", "bob", "local"].map(|owner| highest(&priorities, owner));
        assert_eq!(all, [Priority::High, Priority::Low, Priority::Normal]);
        assert_eq!(highest(&parsed("{}"), Owner::LOCAL), Priority::Normal);
    }

    #[test]
    fn nothing_said_is_the_default() {
        for json in [DEFAULT, "", "  \n"] {
            assert_eq!(parsed(json), OwnerPriorities::default(), "{json}");
        }
        let default = OwnerPriorities::default();
        assert_eq!(highest(&default, Owner::LOCAL), Priority::High);
        assert_eq!(highest(&default, "ann"), Priority::Normal);
    }

    #[test]
    fn an_error_names_the_owner_and_what_is_allowed() {
        for (word, shown) in [
            (r#""urgent""#, r#""urgent""#),
            (r#""High""#, r#""High""#),
            (r#""""#, r#""""#),
            ("1", "1"),
            ("null", "null"),
            (r#"["high"]"#, r#"["high"]"#),
            (r#"{"high": null}"#, r#"{"high":null}"#),
        ] {
            let message = error_for(&format!(r#"{{"ann": {word}}}"#));
            let expected = format!(
                "the parameter OwnerPriorities: `ann` has {shown}; its highest priority must be one of `high`, `normal`, `low`"
            );
            assert_eq!(message, expected);
        }
        let long = error_for(&format!(r#"{{"ann": "{}"}}"#, "x".repeat(500)));
        assert!(long.len() < 250, "{long}");
        assert!(error_for(r#"{"a": "low", "*": "low", "a": "low"}"#).contains("`a` appears twice"));
        assert!(error_for(r#"{"*": "low", "*": "high"}"#).contains("`*` appears twice"));
        for name in ["", "  ", "a#b", "a\\nb", &"a".repeat(257)] {
            assert!(error_for(&format!(r#"{{"{name}": "low"}}"#)).contains("must be an owner, or `*`"), "{name}");
        }
        for json in ["[]", "null", "{", "\"high\"", "{} {}"] {
            assert!(error_for(json).starts_with("the parameter OwnerPriorities is not a JSON object"), "{json}");
        }
    }

    #[test]
    fn a_parameter_that_is_too_long_is_refused() {
        let padded = |chars: usize| format!(r#"{{"größe":"low"}}{}"#, " ".repeat(chars - 15));
        assert_eq!(highest(&parsed(&padded(MAX_CHARS)), "größe"), Priority::Low);
        let message = error_for(&padded(MAX_CHARS + 1));
        assert_eq!(message, "the parameter OwnerPriorities has 3001 characters; at most 3000 are allowed");
    }
}
