//! Times that must fit each other.

use std::time::Duration;

use jiff::SignedDuration;
use rowmill::template::Template;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::job::{DETAILS_KEPT, REQUEST_LIMIT};
use rowmill_core::model::task::TASK_KEPT;
use rowmill_settings::{SettingsGroup, VISIBILITY_TIMEOUTS, time_bounds};
use serde_json::Value;

use crate::{DAY_SECONDS, allowed, default_of, maximum_of, template};

/// A shorter limit is for tests only.
const SHORTEST_IN_PRODUCTION: u64 = 60;

#[test]
fn time_limits_are_within_the_assumptions_of_the_protocol() {
    let template = template();
    for limit in ["SplitTimeoutSeconds", "ProcessTimeoutSeconds", "CompleteTimeoutSeconds", "DeadLetterTimeoutSeconds"]
    {
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

#[test]
fn every_margin_is_shorter_than_its_time_limit() {
    let template = template();
    for (limit, margin) in
        [("SplitTimeoutSeconds", "SplitMarginSeconds"), ("ProcessTimeoutSeconds", "ProcessMarginSeconds")]
    {
        for seconds in allowed(&template, limit) {
            let longest = longest_beside(&template, margin, limit, seconds);
            assert!(longest < seconds, "{margin} may be {longest} with a limit of {seconds}");
        }
        let chosen = default_of(&template, margin);
        assert!(chosen <= longest_beside(&template, margin, limit, default_of(&template, limit)));
    }
}

/// An item is looked at ten times during its timeout, so it is found a tenth later at most.
#[test]
fn an_item_that_holds_its_thread_is_found_before_its_run_hands_over() {
    let template = template();
    let (limit, margin, item) = ("ProcessTimeoutSeconds", "ProcessMarginSeconds", "ItemTimeoutSeconds");
    for seconds in allowed(&template, limit) {
        let [margin, item] = [margin, item].map(|parameter| longest_beside(&template, parameter, limit, seconds));
        assert!(
            seconds * 10 > margin * 10 + item * 11,
            "a limit of {seconds}, a margin of {margin}, an item of {item}"
        );
    }
    assert!(default_of(&template, item) <= maximum_of(&template, item));
}

/// The largest value a parameter may have when another one has this value, by its own bound and the template's rules.
fn longest_beside(template: &Template, parameter: &str, other: &str, value: u64) -> u64 {
    let rules = template.document()["Rules"].as_object().unwrap().values();
    let asserted = rules.flat_map(|rule| {
        let applies = contained(&rule["RuleCondition"], other).is_some_and(|values| values.contains(&value));
        let assertions = rule["Assertions"].as_array().filter(|_| applies);
        assertions.into_iter().flatten().filter_map(|assertion| contained(&assertion["Assert"], parameter))
    });
    asserted.filter_map(|values| values.into_iter().max()).min().unwrap_or_else(|| maximum_of(template, parameter))
}

/// The numbers in `!Contains [[…], !Ref parameter]`.
fn contained(condition: &Value, parameter: &str) -> Option<Vec<u64>> {
    let contains = &condition["Fn::Contains"];
    let values = contains[0].as_array().filter(|_| contains[1]["Ref"] == parameter)?;
    Some(values.iter().map(|value| value.as_str().unwrap().parse().unwrap()).collect())
}
