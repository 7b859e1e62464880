//! Queues and who reads them.

use std::collections::{BTreeMap, BTreeSet};

use rowmill_settings::VISIBILITY_TIMEOUTS;
use serde_json::{Value, json};

use crate::{
    EventSource, WITHOUT_READER, default_of, event_sources, is_dead_letter_queue, mapped, maximum_of, number, numbers,
    properties, target, template,
};

/// Two weeks, the longest SQS keeps a message.
const LONGEST_RETENTION_SECONDS: u64 = 1_209_600;

#[test]
fn every_queue_has_a_dead_letter_queue_and_the_longest_retention() {
    let template = template();
    let mut dead_letters_of = BTreeMap::new();
    for (name, queue) in template.resources_of("AWS::SQS::Queue") {
        let queue = &queue["Properties"];
        assert_eq!(queue["MessageRetentionPeriod"], json!(LONGEST_RETENTION_SECONDS), "{name}");
        let redrive = &queue["RedrivePolicy"];
        if is_dead_letter_queue(name) {
            assert_eq!(*redrive, Value::Null, "{name}: what cannot be settled must not move on");
        } else {
            dead_letters_of.insert(name, target(&redrive["deadLetterTargetArn"]));
        }
    }
    let expected = BTreeMap::from([
        ("JobsQueue", "JobsDeadLetterQueue"),
        ("JobsHighQueue", "JobsDeadLetterQueue"),
        ("ItemsQueue", "ItemsDeadLetterQueue"),
        ("ItemsHighQueue", "ItemsDeadLetterQueue"),
        ("ItemsLowQueue", "ItemsDeadLetterQueue"),
        // The same chunk, once more dead.
        ("IsolateQueue", "ItemsDeadLetterQueue"),
        ("LanesQueue", "LanesDeadLetterQueue"),
        ("CompletionsQueue", "CompletionsDeadLetterQueue"),
        ("InboxQueue", "InboxDeadLetterQueue"),
    ]);
    assert_eq!(dead_letters_of, expected);
}

#[test]
fn every_queue_including_dead_letter_queues_is_read_by_its_function() {
    let template = template();
    let sources = event_sources(&template);
    let readers: BTreeMap<&str, &str> = sources.iter().map(|source| (source.queue, source.function)).collect();
    let expected = BTreeMap::from([
        ("JobsQueue", "SplitJobFunction"),
        ("JobsHighQueue", "SplitJobFunction"),
        ("ItemsQueue", "ProcessItemsFunction"),
        ("ItemsHighQueue", "ProcessItemsFunction"),
        ("ItemsLowQueue", "ProcessItemsFunction"),
        ("IsolateQueue", "ProcessItemsFunction"),
        ("LanesQueue", "ProcessItemsFunction"),
        ("CompletionsQueue", "CompleteJobFunction"),
        ("InboxQueue", "ReceiveFileFunction"),
        ("JobsDeadLetterQueue", "DeadLetterFunction"),
        ("ItemsDeadLetterQueue", "DeadLetterFunction"),
        ("LanesDeadLetterQueue", "DeadLetterFunction"),
        ("CompletionsDeadLetterQueue", "DeadLetterFunction"),
    ]);
    assert_eq!(readers, expected);
    let queues = template.resources_of("AWS::SQS::Queue").map(|(name, _)| name);
    let queues: BTreeSet<&str> = queues.filter(|name| !WITHOUT_READER.contains(name)).collect();
    assert_eq!(queues, readers.into_keys().collect(), "a queue has no reader");
    assert_eq!(sources.len(), queues.len(), "no queue has two readers");
}

#[test]
fn a_lane_lets_one_chunk_through_at_a_time() {
    let template = template();
    for name in ["LanesQueue", "LanesDeadLetterQueue"] {
        let queue = properties(&template, name);
        assert_eq!(queue["FifoQueue"], json!(true), "{name}");
        let throughput = (&queue["DeduplicationScope"], &queue["FifoThroughputLimit"]);
        assert_eq!(throughput, (&json!("messageGroup"), &json!("perMessageGroupId")), "{name}");
        // Messages are named by their senders: a chunk that is sent again has the same content.
        assert_eq!(queue["ContentBasedDeduplication"], Value::Null, "{name}");
    }
    let fifo = template.resources_of("AWS::SQS::Queue").filter(|(_, queue)| queue["Properties"]["FifoQueue"] == true);
    assert_eq!(fifo.count(), 2);
    // A batch could hold several messages of a lane.
    let source = event_sources(&template).into_iter().find(|source| source.queue == "LanesQueue").unwrap();
    assert_eq!(source.properties["BatchSize"], json!(1));
}

#[test]
fn the_visibility_timeout_is_six_times_every_allowed_time_limit() {
    let template = template();
    for source in event_sources(&template) {
        let (queue, function) = (source.queue, source.function);
        let timeout = &properties(&template, function)["Timeout"];
        let visibility = &properties(&template, queue)["VisibilityTimeout"];
        if timeout["Ref"].is_string() {
            let limit = &visibility["Fn::FindInMap"][1];
            assert_eq!(limit, timeout, "{queue} goes by another limit than {function}");
        }
        for seconds in numbers(&template, timeout) {
            let hidden = visibility.as_u64().unwrap_or_else(|| mapped(&template, visibility, seconds));
            assert_eq!(hidden, u64::from(VISIBILITY_TIMEOUTS) * seconds, "{queue}");
        }
    }
}

#[test]
fn the_default_deadline_is_more_than_twice_the_time_of_all_deliveries() {
    let template = template();
    // A dropped file has no job yet, so no deadline runs.
    let of_jobs = |source: &&EventSource| !is_dead_letter_queue(source.queue) && source.queue != "InboxQueue";
    for source in event_sources(&template).iter().filter(of_jobs) {
        let timeout = number(&template, &properties(&template, source.function)["Timeout"]);
        let queue = properties(&template, source.queue);
        let visibility = mapped(&template, &queue["VisibilityTimeout"], timeout);
        let deliveries = number(&template, &queue["RedrivePolicy"]["maxReceiveCount"]);
        let deadline = default_of(&template, "DefaultDeadlineSeconds");
        assert!(deliveries * visibility * 2 < deadline, "{}: 2 × {deliveries} × {visibility} s", source.queue);
    }
}

#[test]
fn batches_report_failed_messages_and_workers_are_capped_at_the_event_source() {
    let template = template();
    for EventSource { queue, function, properties: source } in event_sources(&template) {
        assert_eq!(source["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]), "{queue}");
        // SQS takes no more than ten without a batching window, and process-items holds as many chunks in memory.
        let most = match source["BatchSize"]["Ref"].as_str() {
            None => source["BatchSize"].as_u64().unwrap(),
            Some(parameter) => maximum_of(&template, parameter),
        };
        let has_batches = ["ItemsQueue", "ItemsHighQueue", "ItemsLowQueue"].contains(&queue);
        assert_eq!(most, if has_batches { 10 } else { 1 }, "{queue}");
        let cap = &source["ScalingConfig"]["MaximumConcurrency"];
        let least = match cap["Ref"].as_str() {
            None => cap.as_u64().unwrap(),
            Some(parameter) => {
                // Jobs with high priority have as many workers as others.
                let named = queue.trim_end_matches("Queue").trim_end_matches("High");
                assert_eq!(parameter, format!("{named}MaximumConcurrency"));
                template.document()["Parameters"][parameter]["MinValue"].as_u64().unwrap()
            }
        };
        assert!(least >= 2, "Lambda takes no less for {queue}");
        assert_eq!(properties(&template, function)["ReservedConcurrentExecutions"], Value::Null, "{function}");
    }
}

#[test]
fn every_queue_refuses_plain_http() {
    let template = template();
    let mut refusing = BTreeSet::new();
    for (_, policy) in template.resources_of("AWS::SQS::QueuePolicy") {
        let statements = policy["Properties"]["PolicyDocument"]["Statement"].as_array().unwrap();
        let refusal = statements.iter().find(|statement| statement["Effect"] == "Deny").expect("a refusal");
        assert_eq!((&refusal["Principal"], &refusal["Action"]), (&json!("*"), &json!("sqs:*")));
        assert_eq!(refusal["Condition"], json!({ "Bool": { "aws:SecureTransport": "false" } }));
        for queue in policy["Properties"]["Queues"].as_array().unwrap() {
            assert!(refusing.insert(target(queue)), "the last policy of a queue replaces all others");
        }
    }
    assert_eq!(refusing, template.resources_of("AWS::SQS::Queue").map(|(name, _)| name).collect());
}
