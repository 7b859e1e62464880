//! Times that must fit each other.

use std::time::Duration;

use jiff::SignedDuration;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::job::{DETAILS_KEPT, REQUEST_LIMIT};
use rowmill_core::model::task::TASK_KEPT;
use rowmill_settings::{SettingsGroup, VISIBILITY_TIMEOUTS, time_bounds};

use crate::{DAY_SECONDS, allowed, default_of, maximum_of, template};

/// A shorter limit is for tests only.
const SHORTEST_IN_PRODUCTION: u64 = 60;

#[test]
fn time_limits_are_within_the_assumptions_of_the_protocol() {
    let template = template();
    for limit in ["SplitTimeoutSeconds", "ProcessTimeoutSeconds", "CompleteTimeoutSeconds"] {
        let is_for_production = |seconds: &u64| *seconds >= SHORTEST_IN_PRODUCTION;
        assert!(
            allowed(&template, limit).iter().all(|seconds| is_for_production(seconds) || *seconds <= 10),
            "{limit}"
        );
        assert!(is_for_production(&default_of(&template, limit)), "{limit}");
    }
    assert!(allowed(&template, "ProcessTimeoutSeconds").iter().all(|seconds| *seconds <= 120));
    assert!(default_of(&template, "DefaultDeadlineSeconds") <= default_of(&template, "MaximumDeadlineSeconds"));
}

/// A message, a row of a task and the rows of a job outlive each attempt that they belong to.
#[test]
fn nothing_that_an_attempt_needs_expires_before_its_deadline_and_grace() {
    let template = template();
    let deadline = maximum_of(&template, "MaximumDeadlineSeconds");
    assert_eq!(deadline, 14 * DAY_SECONDS);
    let seconds = |kept: SignedDuration| u64::try_from(kept.as_secs()).unwrap();
    let attempt = deadline + maximum_of(&template, "StopGraceSeconds");
    assert!(seconds(TASK_KEPT) >= attempt + DAY_SECONDS);
    let retention = allowed(&template, "JobRetentionDays").into_iter().max().unwrap() * DAY_SECONDS;
    assert!(seconds(DETAILS_KEPT) > attempt + retention);
    assert_eq!(maximum_of(&template, "DefaultDeadlineSeconds"), deadline);
    assert_eq!(maximum_of(&template, "LongestPauseSeconds"), deadline);
    for (name, queue) in template.resources_of("AWS::SQS::Queue") {
        assert!(queue["Properties"]["MessageRetentionPeriod"].as_u64().unwrap() >= deadline, "{name}");
    }
}

#[test]
fn the_times_of_the_recovery_are_above_their_bounds() {
    let template = template();
    time_bounds::check(|name| Some(default_of(&template, name))).unwrap();
    assert!(default_of(&template, "StaleSeconds") * 2 < default_of(&template, "DefaultDeadlineSeconds"));
    let longest = allowed(&template, "ProcessTimeoutSeconds").into_iter().max().unwrap();
    let beside = |name: &str| if name == "ProcessTimeoutSeconds" { longest } else { default_of(&template, name) };
    time_bounds::check(|name| Some(beside(name))).expect("for every allowed limit");
}

#[test]
fn some_function_checks_each_bound_at_its_start() {
    let groups = |function| rowmill_aws::groups(function).flat_map(|group| (group.settings)());
    for bound in time_bounds::settings() {
        let checks = |function| {
            let read: Vec<_> = groups(function).map(|setting| setting.parameter).collect();
            bound.iter().all(|name| read.contains(name))
        };
        assert!(rowmill_template::functions().into_iter().any(checks), "no function reads all of {bound:?}");
    }
}

#[test]
fn the_grace_counts_with_the_time_limit_of_a_request() {
    let template = template();
    for (name, function) in template.resources_of("AWS::Serverless::Function") {
        let properties = &function["Properties"];
        if properties["CodeUri"].as_str().is_some_and(|folder| folder.starts_with("functions/api/")) {
            assert_eq!(properties["Timeout"].as_u64().map(Duration::from_secs), Some(REQUEST_LIMIT), "{name}");
        }
    }
}

#[test]
fn a_failed_chunk_comes_again_within_the_window_of_a_breaker() {
    let template = template();
    let visibility = default_of(&template, "ProcessTimeoutSeconds") * u64::from(VISIBILITY_TIMEOUTS);
    let window = BreakerLimits::defaults().window.as_secs();
    assert!(window > visibility);
    assert!(default_of(&template, "BreakerProbeSeconds") * 2 <= window);
}
