//! The alarms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rowmill_aws::observe::metrics::Metric;
use serde_json::{Value, json};

use crate::{WITHOUT_READER, default_of, event_sources, is_dead_letter_queue, properties, target, template, workspace};

const ALARM: &str = "AWS::CloudWatch::Alarm";

const HOUR_SECONDS: u64 = 60 * 60;

/// The number of seconds over which an alarm evaluates its metric.
fn evaluation_seconds(alarm: &Value) -> u64 {
    alarm["Period"].as_u64().unwrap() * alarm["EvaluationPeriods"].as_u64().unwrap()
}

/// The seconds between two ticks of `rate(5 minutes)`.
fn seconds_of(rate: &Value) -> u64 {
    let minutes = rate.as_str().unwrap().trim_start_matches("rate(").split(' ').next().unwrap().parse::<u64>();
    minutes.unwrap_or_else(|_| panic!("{rate} is no rate in minutes")) * 60
}

#[test]
fn every_alarm_notifies_the_topic_if_it_is_set() {
    let template = template();
    let topic = json!({ "Fn::If": ["HasAlarmTopic", [{ "Ref": "AlarmTopicArn" }], { "Ref": "AWS::NoValue" }] });
    for (name, alarm) in template.resources_of(ALARM) {
        let alarm = &alarm["Properties"];
        assert_eq!((&alarm["AlarmActions"], &alarm["OKActions"]), (&topic, &topic), "{name}");
        let tells = if alarm["TreatMissingData"] == "missing" { &topic } else { &Value::Null };
        assert_eq!(
            &alarm["InsufficientDataActions"], tells,
            "{name} tells that its metric is gone, if that is an alarm"
        );
        assert!(
            alarm["AlarmDescription"].as_str().unwrap().contains(". "),
            "{name} says what is wrong and what follows"
        );
    }
}

#[test]
fn a_dead_letter_that_is_unsettled_for_an_hour_raises_an_alarm() {
    let template = template();
    let queues = template.resources_of("AWS::SQS::Queue").map(|(name, _)| name);
    for name in queues.filter(|name| is_dead_letter_queue(name) && !WITHOUT_READER.contains(name)) {
        let of_queue = |suffix: &str| {
            let alarm = properties(&template, &format!("{}{suffix}", name.replace("DeadLetterQueue", "DeadLetters")));
            let dimension = &alarm["Dimensions"][0];
            assert_eq!((&dimension["Name"], target(&dimension["Value"])), (&json!("QueueName"), name));
            assert_eq!(alarm["TreatMissingData"], "notBreaching", "SQS reports no metrics of an idle queue");
            alarm
        };
        let unread = of_queue("Unread");
        assert_eq!(
            (&unread["MetricName"], &unread["Threshold"]),
            (&json!("ApproximateAgeOfOldestMessage"), &json!(HOUR_SECONDS))
        );
        let unsettled = of_queue("Unsettled");
        assert_eq!(
            (&unsettled["MetricName"], &unsettled["Threshold"]),
            (&json!("ApproximateNumberOfMessagesNotVisible"), &json!(0))
        );
        assert_eq!(evaluation_seconds(unsettled), HOUR_SECONDS);
    }
}

#[test]
fn a_dead_letter_in_a_queue_without_reader_raises_an_alarm_at_once() {
    let template = template();
    for name in WITHOUT_READER {
        let alarm = properties(&template, &name.replace("DeadLetterQueue", "GivenUp"));
        assert_eq!(target(&alarm["Dimensions"][0]["Value"]), name);
        let waits = (&json!("ApproximateNumberOfMessagesVisible"), &json!(0));
        assert_eq!((&alarm["MetricName"], &alarm["Threshold"]), waits, "{name}");
        assert_eq!(alarm["TreatMissingData"], "notBreaching");
    }
}

#[test]
fn unreceived_files_and_unpublished_events_raise_an_alarm() {
    let template = template();
    let metric = |name: &str, of: &str, metric: &str, threshold: u64| {
        let alarm = properties(&template, name);
        assert_eq!(target(&alarm["Dimensions"][0]["Value"]), of);
        assert_eq!((&alarm["MetricName"], &alarm["Threshold"]), (&json!(metric), &json!(threshold)), "{name}");
    };
    metric("InboxUnread", "InboxQueue", "ApproximateAgeOfOldestMessage", HOUR_SECONDS);
    metric("ReceivingFails", "ReceiveFileFunction", "Errors", 0);
    // In milliseconds. It grows with every kind of failure; not every kind counts as an error of the function.
    metric("AnnouncementsBehind", "AnnounceJobFunction", "IteratorAge", 15 * 60 * 1000);
}

#[test]
fn a_denied_call_of_any_function_raises_an_alarm() {
    let template = template();
    let alarm = properties(&template, "MissingPermissions");
    assert_eq!(alarm["MetricName"], Metric::MissingPermissions.name());
    assert_eq!((&alarm["Threshold"], &alarm["TreatMissingData"]), (&json!(0), &json!("notBreaching")));
}

#[test]
fn a_sweep_that_does_not_run_or_fails_raises_an_alarm() {
    let template = template();
    let missing = properties(&template, "SweepMissing");
    let silent_in_a_new_stack = json!("missing");
    assert_eq!((&missing["MetricName"], &missing["TreatMissingData"]), (&json!("Invocations"), &silent_in_a_new_stack));
    let rate = &properties(&template, "SweepSchedule")["ScheduleExpression"];
    assert!(seconds_of(rate) < evaluation_seconds(missing), "{rate} would raise the alarm");
    let failing = properties(&template, "SweepFailing");
    assert_eq!((&failing["MetricName"], &failing["TreatMissingData"]), (&json!("Errors"), &json!("notBreaching")));
    let watched: BTreeSet<&str> = [missing, failing].map(|alarm| target(&alarm["Dimensions"][0]["Value"])).into();
    assert_eq!(watched, BTreeSet::from(["SweepFunction"]));
}

/// The alarms by what they watch: metric, and the resource in their dimension.
fn watched(template: &rowmill::template::Template) -> BTreeSet<(String, String)> {
    let alarms = template.resources_of(ALARM).map(|(_, alarm)| &alarm["Properties"]);
    let of = |alarm: &Value| {
        let metric = alarm["MetricName"].as_str().unwrap().to_owned();
        (metric, target(&alarm["Dimensions"][0]["Value"]).to_owned())
    };
    alarms.map(of).collect()
}

#[test]
fn every_queue_that_a_function_reads_has_an_alarm_on_its_oldest_message() {
    let template = template();
    let watched = watched(&template);
    for source in event_sources(&template) {
        let age = ("ApproximateAgeOfOldestMessage".to_owned(), source.queue.to_owned());
        assert!(watched.contains(&age), "nobody hears that messages of {} wait", source.queue);
    }
}

/// Chunks of low priority wait by design.
#[test]
fn waiting_chunks_of_low_priority_raise_an_alarm_after_two_hours_and_before_the_default_deadline() {
    let template = template();
    let behind = |name: &str| properties(&template, &format!("{name}Behind"));
    for name in ["Jobs", "JobsHigh", "Items", "ItemsHigh", "ItemsLow"] {
        let alarm = behind(name);
        assert_eq!(alarm["Threshold"]["Ref"], "QueueAgeAlarmSeconds", "{name}");
        assert_eq!(alarm["EvaluationPeriods"], if name == "ItemsLow" { 24 } else { 1 }, "{name}");
    }
    let lasting = evaluation_seconds(behind("ItemsLow"));
    assert_eq!(lasting, 2 * HOUR_SECONDS);
    assert!(default_of(&template, "QueueAgeAlarmSeconds") + lasting < default_of(&template, "DefaultDeadlineSeconds"));
}

#[test]
fn every_function_that_a_job_needs_has_alarms_on_its_errors_and_throttles() {
    let template = template();
    let watched = watched(&template);
    for function in ["CreateJobFunction", "SplitJobFunction", "ProcessItemsFunction", "CompleteJobFunction"] {
        for metric in ["Errors", "Throttles"] {
            assert!(watched.contains(&(metric.to_owned(), function.to_owned())), "{metric} of {function}");
        }
    }
}

/// No metric of a function has what API Gateway answers when the function crashes, times out or is throttled.
#[test]
fn failing_requests_of_the_http_api_raise_an_alarm() {
    let template = template();
    let alarm = properties(&template, "ApiFailing");
    let watched = (&alarm["Namespace"], &alarm["MetricName"], &alarm["Dimensions"][0]["Name"]);
    assert_eq!(watched, (&json!("AWS/ApiGateway"), &json!("5xx"), &json!("ApiId")));
    assert_eq!(target(&alarm["Dimensions"][0]["Value"]), "HttpApi");
    assert_eq!((&alarm["Statistic"], &alarm["TreatMissingData"]), (&json!("Average"), &json!("notBreaching")));
}

/// The table of alarms in the documentation: what stands in the first column, in backquotes, and how often.
fn documented() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(workspace().join("docs/operating.md")).unwrap();
    let (_, section) = text.split_once("\n## Alarms\n").expect("a section about alarms");
    let section = section.split("\n## ").next().unwrap();
    let mut documented = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let columns: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert!(columns.len() == 4 && columns.iter().all(|column| !column.trim().is_empty()), "{row}");
        for name in columns[0].split('`').skip(1).step_by(2) {
            *documented.entry(name.to_owned()).or_default() += 1;
        }
    }
    documented
}

#[test]
fn every_alarm_has_one_line_that_says_what_to_do() {
    let template = template();
    let alarms: BTreeMap<String, usize> = template.resources_of(ALARM).map(|(name, _)| (name.to_owned(), 1)).collect();
    assert_eq!(documented(), alarms);
}
