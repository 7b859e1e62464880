//! The parameter `RouteLimits`: a JSON object from a limited route, by its `operationId`, to the requests that one
//! caller may send to it in a minute and in an hour of the clock.
//!
//! ```json
//! {"auditJob": {"minute": 30, "hour": 300}, "createJob": {"minute": 600, "hour": 20000}}
//! ```
//!
//! A route that it does not name has the limits of the table of [`routes`], or, if it has none there, those of
//! `PostsPerMinute` and `PostsPerHour`. The functions read it at their start, and `rowmill` checks it before it
//! deploys.

use std::collections::BTreeMap;

use rowmill_core::model::entries::Entries;
use rowmill_core::model::request_limits::RequestLimits;
use serde::Deserialize;
use serde_json::Value;

use crate::routes::{self, Route};

/// The longest parameter, in characters: as in the template. All variables of a function share 4 KB.
pub const MAX_CHARS: usize = 1700;

/// The highest limit, as that of `PostsPerMinute`.
const LIMIT_MAX: u32 = 1_000_000;

/// Maximum length of a name or of a value in an error.
const SHOWN_MAX_CHARS: usize = 64;

/// The limits of every limited route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteLimits {
    named: BTreeMap<String, RequestLimits>,
    others: RequestLimits,
}

/// Why the parameter is invalid.
#[derive(Debug, thiserror::Error)]
pub enum RouteLimitsError {
    /// It has too many characters.
    #[error("the parameter RouteLimits has {chars} characters; at most {MAX_CHARS} are allowed")]
    TooLong {
        /// Their number.
        chars: usize,
    },
    /// It is not a JSON object.
    #[error(
        "the parameter RouteLimits is not a JSON object from operation to limits, such as \
         {{\"auditJob\": {{\"minute\": 30, \"hour\": 300}}}}: {0}"
    )]
    NotJson(#[source] serde_json::Error),
    /// An entry is wrong.
    #[error("the parameter RouteLimits: `{name}` {problem}")]
    Route {
        /// The name of the entry.
        name: String,
        /// The rest of the sentence that begins with the name.
        problem: String,
    },
}

/// The limits of an entry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    minute: u32,
    hour: u32,
}

impl RouteLimits {
    /// Parses the parameter. `others` are the limits of the routes that neither it nor the table gives any.
    ///
    /// # Errors
    /// The first entry that is wrong.
    pub fn parse(json: &str, others: RequestLimits) -> Result<Self, RouteLimitsError> {
        let (chars, mut named) = (json.chars().count(), BTreeMap::new());
        if chars > MAX_CHARS {
            return Err(RouteLimitsError::TooLong { chars });
        }
        if json.trim().is_empty() {
            return Ok(Self { named, others });
        }
        let Entries(entries) = serde_json::from_str(json).map_err(RouteLimitsError::NotJson)?;
        for (name, limits) in entries {
            let limits = check_name(&name, named.contains_key(&name)).and_then(|()| limits_of(&limits));
            let limits = limits.map_err(|problem| RouteLimitsError::Route { name: shortened(&name), problem })?;
            named.insert(name, limits);
        }
        Ok(Self { named, others })
    }

    /// The limits of a limited route.
    pub fn of(&self, route: &Route) -> RequestLimits {
        self.named.get(&route.operation.id()).copied().or(route.limits).unwrap_or(self.others)
    }
}

fn check_name(name: &str, taken: bool) -> Result<(), String> {
    let limited = || routes::all().filter(|route| route.is_limited()).map(|route| route.operation.id());
    if !limited().any(|known| known == name) {
        let known: Vec<String> = limited().map(|known| format!("`{known}`")).collect();
        return Err(format!("is not a limited route; these are: {}", known.join(", ")));
    }
    if taken { Err("appears twice; give it one pair of limits".to_owned()) } else { Ok(()) }
}

fn limits_of(value: &Value) -> Result<RequestLimits, String> {
    let entry = Entry::deserialize(value).ok().filter(|_| value.is_object());
    let entry = entry.filter(|entry| [entry.minute, entry.hour].iter().all(|limit| (1..=LIMIT_MAX).contains(limit)));
    let entry = entry.ok_or_else(|| {
        let shown = shortened(&value.to_string());
        format!("has {shown}; it must have `minute` and `hour`, each a whole number from 1 to {LIMIT_MAX}")
    })?;
    Ok(RequestLimits { per_minute: entry.minute, per_hour: entry.hour })
}

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Operation;

    const POSTS: RequestLimits = RequestLimits { per_minute: 7, per_hour: 8 };

    fn parsed(json: &str) -> RouteLimits {
        RouteLimits::parse(json, POSTS).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    fn error_for(json: &str) -> String {
        RouteLimits::parse(json, POSTS).expect_err("it is invalid").to_string()
    }

    const fn limits(per_minute: u32, per_hour: u32) -> RequestLimits {
        RequestLimits { per_minute, per_hour }
    }

    #[test]
    fn a_route_has_the_limits_that_are_set_or_those_of_the_table_or_those_of_posts() {
        let set = parsed(r#"{"auditJob": {"minute": 1, "hour": 2}, "createJob": {"hour": 1000000, "minute": 3}}"#);
        assert_eq!(set.of(Operation::AuditJob.route()), limits(1, 2));
        assert_eq!(set.of(Operation::CreateJob.route()), limits(3, 1_000_000));
        assert_eq!(set.of(Operation::CancelJob.route()), POSTS);
        assert_eq!(set.of(Operation::ListItems.route()), Operation::ListItems.route().limits.unwrap());
        for nothing in ["", " \n", "{}"] {
            assert_eq!(parsed(nothing).of(Operation::AuditJob.route()), Operation::AuditJob.route().limits.unwrap());
        }
    }

    #[test]
    fn expensive_reads_are_limited_and_polling_is_free() {
        let limited = |operation: Operation| operation.route().is_limited();
        use Operation as O;
        assert!(
            [O::AuditJob, O::ExplainJob, O::ListItems, O::ShowResults, O::ListDeadLetters].into_iter().all(limited)
        );
        assert!(![O::ShowJob, O::ListJobs, O::ShowUpload, O::ShowDocument].into_iter().any(limited));
        assert!(routes::all().filter(|route| !route.reads()).all(Route::is_limited));
    }

    /// A connection lost by all of them at once, and one more try of each.
    #[test]
    fn five_hundred_watchers_of_an_owner_get_tickets_at_once() {
        let tickets = parsed("").of(Operation::CreateLiveTicket.route());
        assert!(tickets.per_minute >= 2 * 500, "{tickets:?}");
        assert!(tickets.per_hour >= 10 * 2 * 500, "{tickets:?}");
    }

    #[test]
    fn an_error_names_the_entry_and_what_is_allowed() {
        for (value, shown) in [
            (r#"{"minute": 1}"#, r#"{"minute":1}"#),
            (r#"{"minute": 0, "hour": 5}"#, r#"{"hour":5,"minute":0}"#),
            (r#"{"minute": 1000001, "hour": 5}"#, r#"{"hour":5,"minute":1000001}"#),
            (r#"{"minute": 1.5, "hour": 5}"#, r#"{"hour":5,"minute":1.5}"#),
            (r#"{"minute": 1, "hour": 5, "day": 9}"#, r#"{"day":9,"hour":5,"minute":1}"#),
            ("[1, 5]", "[1,5]"),
            ("60", "60"),
            ("null", "null"),
        ] {
            let expected = format!(
                "the parameter RouteLimits: `auditJob` has {shown}; it must have `minute` and `hour`, each a whole \
                 number from 1 to 1000000"
            );
            assert_eq!(error_for(&format!(r#"{{"auditJob": {value}}}"#)), expected);
        }
        for name in ["audit", "AuditJob", "showJob", "showPage", "*", ""] {
            let error = error_for(&format!(r#"{{"{name}": {{"minute": 1, "hour": 1}}}}"#));
            assert!(error.contains(&format!("`{name}` is not a limited route; these are: `createUpload`")), "{error}");
        }
        let pair = r#"{"minute": 1, "hour": 1}"#;
        assert!(error_for(&format!(r#"{{"auditJob": {pair}, "auditJob": {pair}}}"#)).contains("appears twice"));
        for json in ["[]", "null", "{", "60"] {
            assert!(error_for(json).starts_with("the parameter RouteLimits is not a JSON object"), "{json}");
        }
    }

    #[test]
    fn the_parameter_may_name_every_limited_route_and_not_be_longer() {
        let of = |route: &Route| format!(r#""{}":{{"minute":1000000,"hour":1000000}}"#, route.operation.id());
        let all: Vec<String> = routes::all().filter(|route| route.is_limited()).map(of).collect();
        let all = format!("{{{}}}", all.join(","));
        assert_eq!(parsed(&all).of(Operation::AuditJob.route()), limits(LIMIT_MAX, LIMIT_MAX));
        let long = format!("{{}}{}", " ".repeat(MAX_CHARS));
        assert_eq!(error_for(&long), "the parameter RouteLimits has 1702 characters; at most 1700 are allowed");
    }
}
