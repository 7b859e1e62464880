//! The parameter `JobTypes`: a JSON object from job type to the limits of its own.
//!
//! ```json
//! {"import": {"activeJobs": 20}, "render": {"activeJobs": 5, "concurrency": 1, "itemsAtOnce": 1}}
//! ```
//!
//! | field | meaning | range | without it |
//! |---|---|---|---|
//! | `activeJobs` | how many jobs of the type may be active | 1–1000000 | `TypeJobCeiling` |
//! | `concurrency` | how many chunks of the type run at once in the whole stack, across all jobs; of a type with workers or `async`, how many tasks are held at once | 1–100 | no limit of its own |
//! | `itemsAtOnce` | how many items of a chunk are processed at once, at most: so many are handed to the job type together | 1–1000 | what the job type says |
//!
//! The functions read it at their start, and `rowmill` checks it before it deploys.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::model::entries::Entries;

pub const ACTIVE_JOBS_MAX: u32 = 1_000_000;

/// The highest `concurrency`: so many lanes a job type may have.
pub const CONCURRENCY_MAX: u32 = 100;

pub const ITEMS_AT_ONCE_MAX: u32 = 1000;

/// The longest name of a job type in the parameter.
const NAME_MAX_CHARS: usize = 64;

/// The limits of one job type. `None` is no limit of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TypeLimits {
    pub active_jobs: Option<u32>,
    /// Maximum number of its running chunks, and number of its lanes.
    pub concurrency: Option<u32>,
    /// Maximum number of items of a chunk that are processed together.
    pub items_at_once: Option<u32>,
}

/// A field of a job type: its name, its highest value, and where it is kept.
type Field = (&'static str, u32, fn(&mut TypeLimits) -> &mut Option<u32>);

const FIELDS: [Field; 3] = [
    ("activeJobs", ACTIVE_JOBS_MAX, |limits| &mut limits.active_jobs),
    ("concurrency", CONCURRENCY_MAX, |limits| &mut limits.concurrency),
    ("itemsAtOnce", ITEMS_AT_ONCE_MAX, |limits| &mut limits.items_at_once),
];

/// The limits of all job types that have limits of their own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobTypeLimits(Arc<BTreeMap<String, TypeLimits>>);

/// Why the parameter is invalid.
#[derive(Debug, thiserror::Error)]
pub enum JobTypesError {
    /// It is not a JSON object.
    #[error(
        "the parameter JobTypes is not a JSON object from job type to limits, such as \
         {{\"import\": {{\"activeJobs\": 20}}}}: {0}"
    )]
    NotJson(#[source] serde_json::Error),
    #[error("the parameter JobTypes: `{name}` {problem}")]
    JobType {
        name: String,
        /// The rest of the sentence that begins with the name.
        problem: String,
    },
}

impl JobTypeLimits {
    /// Parses the parameter. An empty text means that no job type has limits of its own.
    pub fn parse(json: &str) -> Result<Self, JobTypesError> {
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        let Entries(entries) = serde_json::from_str(json).map_err(JobTypesError::NotJson)?;
        let mut limits = BTreeMap::new();
        for (name, fields) in entries {
            let of_type = check_name(&name, limits.contains_key(&name)).and_then(|()| of_fields(&fields));
            let of_type = of_type.map_err(|problem| error(&name, problem))?;
            limits.insert(name, of_type);
        }
        Ok(Self(Arc::new(limits)))
    }

    /// Checks that each name is the name of a job type.
    ///
    /// # Errors
    /// [`JobTypesError::JobType`] with the names in `known`.
    pub fn check_known(&self, known: &[&str]) -> Result<(), JobTypesError> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(error(name, format!("is not a job type of this stack; these are: {}", known.join(", ")))),
        }
    }

    /// The same, with these limits of a type.
    #[must_use]
    pub fn with(&self, job_type: &str, limits: TypeLimits) -> Self {
        let mut all = (*self.0).clone();
        all.insert(job_type.to_owned(), limits);
        Self(Arc::new(all))
    }

    pub fn of(&self, job_type: &str) -> TypeLimits {
        self.0.get(job_type).copied().unwrap_or_default()
    }

    pub fn have_concurrency(&self) -> bool {
        self.0.values().any(|limits| limits.concurrency.is_some())
    }
}

fn error(name: &str, problem: String) -> JobTypesError {
    JobTypesError::JobType { name: name.chars().take(NAME_MAX_CHARS).collect(), problem }
}

fn check_name(name: &str, taken: bool) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_MAX_CHARS || !name.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!(
            "must be the name of a job type: 1 to {NAME_MAX_CHARS} letters, digits and ASCII punctuation"
        ));
    }
    if taken { Err("appears twice; give it one entry with all its limits".to_owned()) } else { Ok(()) }
}

fn of_fields(fields: &Value) -> Result<TypeLimits, String> {
    let known = || FIELDS.map(|(name, max, _)| format!("`{name}` (1 to {max})")).join(", ");
    let Some(fields) = fields.as_object() else { return Err(format!("must be an object with {}", known())) };
    let mut limits = TypeLimits::default();
    for (name, value) in fields {
        let Some((name, max, field)) = FIELDS.iter().find(|(known, ..)| known == name) else {
            return Err(format!("has an unknown field `{name}`; it may have {}", known()));
        };
        let value =
            value.as_u64().and_then(|value| u32::try_from(value).ok()).filter(|value| (1..=*max).contains(value));
        let Some(value) = value else {
            return Err(format!("must have a `{name}` that is a whole number from 1 to {max}"));
        };
        *field(&mut limits) = Some(value);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_for(json: &str) -> String {
        JobTypeLimits::parse(json).expect_err("it is invalid").to_string()
    }

    #[test]
    fn a_type_has_the_limits_that_are_set_and_no_others() {
        let limits = r#"{"import": {"activeJobs": 20}, "render": {"activeJobs": 5, "concurrency": 1, "itemsAtOnce": 2}, "plain": {}}"#;
        let limits = JobTypeLimits::parse(limits).unwrap();
        assert_eq!(limits.of("import"), TypeLimits { active_jobs: Some(20), ..TypeLimits::default() });
        assert_eq!(
            limits.of("render"),
            TypeLimits { active_jobs: Some(5), concurrency: Some(1), items_at_once: Some(2) }
        );
        assert_eq!(limits.of("plain"), TypeLimits::default());
        assert_eq!(limits.of("validate"), TypeLimits::default());
        assert!(limits.have_concurrency());
        assert!(!JobTypeLimits::parse(r#"{"import": {"activeJobs": 20}}"#).unwrap().have_concurrency());
        for empty in ["", "  \n", "{}"] {
            assert_eq!(JobTypeLimits::parse(empty).unwrap(), JobTypeLimits::default());
        }
    }

    #[test]
    fn an_error_names_the_type_the_field_and_what_is_allowed() {
        for (fields, expected) in [
            (r#"{"concurrency": 0}"#, "must have a `concurrency` that is a whole number from 1 to 100"),
            (r#"{"concurrency": 101}"#, "must have a `concurrency` that is a whole number from 1 to 100"),
            (r#"{"concurrency": "1"}"#, "must have a `concurrency` that is a whole number from 1 to 100"),
            (r#"{"activeJobs": 1.5}"#, "must have a `activeJobs` that is a whole number from 1 to 1000000"),
            (r#"{"activeJobs": -1}"#, "must have a `activeJobs` that is a whole number from 1 to 1000000"),
            (r#"{"activejobs": 1}"#, "has an unknown field `activejobs`; it may have `activeJobs` (1 to 1000000), "),
            (
                "5",
                "must be an object with `activeJobs` (1 to 1000000), `concurrency` (1 to 100), `itemsAtOnce` (1 to 1000)",
            ),
        ] {
            let message = error_for(&format!(r#"{{"render": {fields}}}"#));
            assert!(message.starts_with(&format!("the parameter JobTypes: `render` {expected}")), "{message}");
        }
        assert!(error_for(r#"{"a": {}, "a": {}}"#).contains("`a` appears twice"));
        for name in ["", "ren der", "rendér", &"r".repeat(65)] {
            assert!(error_for(&format!(r#"{{"{name}": {{}}}}"#)).contains("must be the name of a job type"), "{name}");
        }
        for json in ["[]", "null", "{", "\"render\"", "{} {}"] {
            assert!(error_for(json).starts_with("the parameter JobTypes is not a JSON object"), "{json}");
        }
    }

    #[test]
    fn a_type_that_no_function_knows_is_refused_with_the_known_ones() {
        let limits = JobTypeLimits::parse(r#"{"rendr": {"concurrency": 1}}"#).unwrap();
        assert!(limits.check_known(&["import", "rendr"]).is_ok());
        let message = limits.check_known(&["import", "render"]).unwrap_err().to_string();
        assert_eq!(
            message,
            "the parameter JobTypes: `rendr` is not a job type of this stack; these are: import, render"
        );
    }
}
