//! Queues and their readers.

use rowmill_settings::VISIBILITY_TIMEOUTS;
use serde_json::{Value, json};

use crate::{allowed, default_of, event_sources, mapped, maximum_of, number, properties, target, template};

/// AWS asks for a dead-letter queue of the same kind, and a message that expires before its dead letter is read is
/// lost.
#[test]
fn a_dead_letter_queue_is_of_the_kind_of_its_queue_and_every_queue_keeps_messages_longest() {
    let template = template();
    for (name, queue) in template.resources_of("AWS::SQS::Queue") {
        let queue = &queue["Properties"];
        assert_eq!(queue["MessageRetentionPeriod"], json!(1_209_600), "{name}");
        if !queue["RedrivePolicy"].is_null() {
            let dead_letters = properties(&template, target(&queue["RedrivePolicy"]["deadLetterTargetArn"]));
            assert_eq!(queue["FifoQueue"], dead_letters["FifoQueue"], "{name}");
            assert_eq!(dead_letters["RedrivePolicy"], Value::Null, "{name}: what cannot be settled must not move on");
        }
    }
}

#[test]
fn a_lane_lets_one_chunk_through_at_a_time() {
    let template = template();
    let queue = properties(&template, "LanesQueue");
    let throughput = (&queue["DeduplicationScope"], &queue["FifoThroughputLimit"]);
    assert_eq!(throughput, (&json!("messageGroup"), &json!("perMessageGroupId")));
    // Messages are named by their senders: a chunk that is sent again has the same content.
    assert_eq!(queue["ContentBasedDeduplication"], Value::Null);
    // A batch could hold several messages of a lane.
    let (.., source) = event_sources(&template).into_iter().find(|(queue, ..)| *queue == "LanesQueue").unwrap();
    assert_eq!(source["BatchSize"], json!(1));
}

/// AWS asks for at least six times, so that a throttled invocation does not make its messages visible while the poller
/// still holds them.
#[test]
fn the_visibility_timeout_is_six_times_every_allowed_time_limit() {
    let template = template();
    for parameter in ["SplitTimeoutSeconds", "ProcessTimeoutSeconds", "CompleteTimeoutSeconds"] {
        let visibility = json!({ "Fn::FindInMap": ["SixTimes", { "Ref": parameter }, "Seconds"] });
        for seconds in allowed(&template, parameter) {
            assert_eq!(
                mapped(&template, &visibility, seconds),
                u64::from(VISIBILITY_TIMEOUTS) * seconds,
                "{parameter}"
            );
        }
    }
}

#[test]
fn the_default_deadline_is_more_than_twice_the_time_of_all_deliveries() {
    let template = template();
    // A file that is dropped or fetched has no job yet, so no deadline runs.
    let without_job = ["FetchesQueue", "InboxQueue"];
    let of_jobs = |queue: &str| !queue.ends_with("DeadLetterQueue") && !without_job.contains(&queue);
    for (name, function, _) in event_sources(&template).into_iter().filter(|(queue, ..)| of_jobs(queue)) {
        let timeout = number(&template, &properties(&template, function)["Timeout"]);
        let queue = properties(&template, name);
        // That of a function whose time limit is no parameter is a number.
        let visibility = &queue["VisibilityTimeout"];
        let visibility = visibility.as_u64().unwrap_or_else(|| mapped(&template, visibility, timeout));
        let deliveries = number(&template, &queue["RedrivePolicy"]["maxReceiveCount"]);
        let deadline = default_of(&template, "DefaultDeadlineSeconds");
        assert!(deliveries * visibility * 2 < deadline, "{name}: 2 × {deliveries} × {visibility} s");
    }
}

/// Lambda takes no `MaximumConcurrency` below 2, and SQS no batch above ten without a window.
#[test]
fn workers_and_batches_are_within_what_lambda_takes() {
    let template = template();
    for (queue, function, source) in event_sources(&template) {
        let scaling = &source["ScalingConfig"];
        let cap = &scaling.get("Fn::If").map_or(scaling, |branches| &branches[2])["MaximumConcurrency"];
        let least = cap.as_u64().unwrap_or_else(|| {
            template.document()["Parameters"][target(cap)]["MinValue"].as_u64().expect("a least number of workers")
        });
        assert!(least >= 2, "{queue}");
        let batch = source["BatchSize"].as_u64().unwrap_or_else(|| maximum_of(&template, target(&source["BatchSize"])));
        assert!(batch <= 10, "{queue}");
        assert_eq!(properties(&template, function)["ReservedConcurrentExecutions"], Value::Null, "{function}");
    }
}

/// Lambda takes one of the two.
#[test]
fn queues_of_chunks_have_pollers_or_a_maximum_concurrency() {
    let template = template();
    let (no_value, polled) = (json!({ "Ref": "AWS::NoValue" }), ["ItemsQueue", "ItemsHighQueue"]);
    for (queue, _, source) in event_sources(&template) {
        let (scaling, pollers) = (&source["ScalingConfig"], &source["ProvisionedPollerConfig"]);
        if !polled.contains(&queue) {
            assert!(
                scaling["MaximumConcurrency"].is_u64() || scaling["MaximumConcurrency"]["Ref"].is_string(),
                "{queue}"
            );
            assert_eq!(*pollers, Value::Null, "{queue}");
            continue;
        }
        let concurrency = json!({ "MaximumConcurrency": { "Ref": "ItemsMaximumConcurrency" } });
        assert_eq!(*scaling, json!({ "Fn::If": ["HasItemsPollers", {}, concurrency] }), "{queue}");
        // With a dash more, the parts are there also if it is empty.
        let parts = json!({ "Fn::Split": ["-", { "Fn::Sub": "${ItemsPollers}-" }] });
        let part = |index: u8| json!({ "Fn::Select": [index, parts] });
        let bounds = json!({ "MinimumPollers": part(0), "MaximumPollers": part(1) });
        assert_eq!(*pollers, json!({ "Fn::If": ["HasItemsPollers", bounds, no_value] }), "{queue}");
    }
    let document = template.document();
    let is_off = json!({ "Fn::Equals": [{ "Ref": "ItemsPollers" }, ""] });
    assert_eq!(document["Conditions"]["HasItemsPollers"], json!({ "Fn::Not": [is_off] }));
    assert_eq!(document["Parameters"]["ItemsPollers"]["Default"], "", "off by default");
}

/// Chunks of low priority wait by design.
#[test]
fn waiting_chunks_of_low_priority_raise_an_alarm_before_the_default_deadline() {
    let template = template();
    let alarm = properties(&template, "ItemsLowBehind");
    let lasting = alarm["Period"].as_u64().unwrap() * alarm["EvaluationPeriods"].as_u64().unwrap();
    assert!(default_of(&template, "QueueAgeAlarmSeconds") + lasting < default_of(&template, "DefaultDeadlineSeconds"));
}

/// The policy of a queue applies to that queue only, and the last one replaces all others.
#[test]
fn every_queue_refuses_plain_http() {
    let template = template();
    let mut refusing = std::collections::BTreeSet::new();
    for (_, policy) in template.resources_of("AWS::SQS::QueuePolicy") {
        let statements = policy["Properties"]["PolicyDocument"]["Statement"].as_array().unwrap();
        let refusal = statements.iter().find(|statement| statement["Effect"] == "Deny").expect("a refusal");
        assert_eq!(refusal["Condition"], json!({ "Bool": { "aws:SecureTransport": "false" } }));
        for queue in policy["Properties"]["Queues"].as_array().unwrap() {
            assert!(refusing.insert(target(queue)), "the last policy of a queue replaces all others");
        }
    }
    assert_eq!(refusing, template.resources_of("AWS::SQS::Queue").map(|(name, _)| name).collect());
}
