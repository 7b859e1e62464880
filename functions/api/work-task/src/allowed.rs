//! Who may work on which job types.

use std::collections::{BTreeMap, BTreeSet};

use rowmill_core::model::ids::Owner;

rowmill_settings::settings! {
    /// The callers that may work on tasks.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WorkerSettings {
        /// A JSON object from the subject of a worker's token to the job types that it may work on, as a list; `*` in it
        /// is every type. Workers see rows of all owners.
        pub workers: String = String::new(), "Workers";
    }
}

/// The job types of each subject.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Allowed(BTreeMap<String, BTreeSet<String>>);

#[derive(Debug, thiserror::Error)]
#[error(
    "the parameter Workers is not a JSON object from subject to a list of job types, such as \
     {{\"worker-1\": [\"render\"]}}: {0}"
)]
pub struct InvalidWorkers(#[source] serde_json::Error);

const ANY: &str = "*";

impl Allowed {
    pub fn parse(json: &str) -> Result<Self, InvalidWorkers> {
        match json.trim().is_empty() {
            true => Ok(Self::default()),
            false => serde_json::from_str(json).map(Self).map_err(InvalidWorkers),
        }
    }

    /// True if this caller may work on this type. In an open API everybody is the same owner, who may do everything.
    pub fn is(&self, caller: &Owner, job_type: &str) -> bool {
        let of_caller = self.0.get(caller.as_str());
        caller.as_str() == Owner::LOCAL
            || of_caller.is_some_and(|types| types.contains(job_type) || types.contains(ANY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_may_only_work_on_the_types_that_the_stack_names() {
        let allowed = Allowed::parse(r#"{"w1": ["render"], "w2": ["*"], "w3": []}"#).unwrap();
        let may = |name: &str, job_type| allowed.is(&Owner(name.to_owned()), job_type);
        assert!(may("w1", "render") && may("w2", "render") && may("w2", "mail"));
        assert!(!may("w1", "mail") && !may("w3", "render") && !may("w4", "render"));
        assert!(may(Owner::LOCAL, "render"), "an open API");
        let nobody = Allowed::parse(" ").unwrap();
        assert!(!nobody.is(&Owner("w1".to_owned()), "render"));
        for wrong in ["[]", r#"{"w1": "render"}"#, "{"] {
            let error = Allowed::parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with("the parameter Workers is not a JSON object"), "{error}");
        }
    }
}
