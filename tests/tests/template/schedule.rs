//! The sweep's schedule.

use serde_json::json;

use crate::{allowed_values, properties, target, template};

#[test]
fn the_sweep_runs_at_its_rate_and_a_failed_one_leaves_it_to_the_next() {
    let template = template();
    let schedule = properties(&template, "SweepSchedule");
    assert_eq!((target(&schedule["ScheduleExpression"]), &schedule["State"]), ("SweepRate", &json!("ENABLED")));
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
fn the_sweep_comes_every_minute_unless_told_otherwise() {
    let template = template();
    let usual = &template.document()["Parameters"]["SweepRate"]["Default"];
    assert_eq!(usual, "rate(1 minute)");
    assert!(allowed_values(&template, "SweepRate").contains(usual));
}
