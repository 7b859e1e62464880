//! The sweep's schedule.

use std::time::Duration;

use serde_json::json;
use sweep::limits::SweepLimits;

use crate::{properties, target, template};

#[test]
fn the_sweep_runs_every_minute_without_retries() {
    let template = template();
    let schedule = properties(&template, "SweepSchedule");
    assert_eq!(
        (&schedule["ScheduleExpression"], &schedule["State"]),
        (&json!("rate(1 minute)"), &json!("ENABLED")),
        "every minute"
    );
    let targets = schedule["Targets"].as_array().unwrap();
    assert_eq!(targets.iter().map(|to| target(&to["Arn"])).collect::<Vec<_>>(), ["SweepFunction"]);

    let permission = properties(&template, "SweepPermission");
    assert_eq!(target(&permission["FunctionName"]), "SweepFunction");
    assert_eq!(permission["Principal"], "events.amazonaws.com");
    assert_eq!(target(&permission["SourceArn"]), "SweepSchedule", "no other rule may call it");

    let invocations = properties(&template, "SweepInvocations");
    assert_eq!(target(&invocations["FunctionName"]), "SweepFunction");
    assert_eq!(invocations["MaximumRetryAttempts"], json!(0));
}

#[test]
fn the_sweep_has_the_time_limit_that_its_code_assumes() {
    let template = template();
    let timeout = properties(&template, "SweepFunction")["Timeout"].as_u64().unwrap();
    assert_eq!(Duration::from_secs(timeout), sweep::limits::TIMEOUT);
    assert!(SweepLimits::default().time < sweep::limits::TIMEOUT, "the last job of a sweep has time too");
}
