//! The queues of jobs with high and low priority, beside those of normal jobs.

use std::collections::BTreeSet;

use rowmill::template::Template;
use serde_json::{Map, Value, json};

use crate::permissions::granted;
use crate::{event_sources, properties, target, template};

/// Each queue of a priority, and the queue of normal jobs that has the same messages.
const QUEUES: [(&str, &str); 3] =
    [("JobsHighQueue", "JobsQueue"), ("ItemsHighQueue", "ItemsQueue"), ("ItemsLowQueue", "ItemsQueue")];

#[test]
fn a_queue_of_a_priority_is_like_that_of_normal_jobs() {
    let template = template();
    for (queue, normal) in QUEUES {
        assert_eq!(properties(&template, queue), properties(&template, normal), "{queue}");
    }
}

/// The mapping of a queue without its queue and its workers.
fn mapping_of(template: &Template, queue: &str) -> Map<String, Value> {
    let source = event_sources(template).into_iter().find(|source| source.queue == queue).expect("a mapping");
    let mut mapping = source.properties.as_object().unwrap().clone();
    mapping.retain(|name, _| !["EventSourceArn", "ScalingConfig"].contains(&name.as_str()));
    mapping
}

#[test]
fn a_mapping_of_a_priority_differs_in_its_queue_and_its_workers_only() {
    let template = template();
    for (queue, normal) in QUEUES {
        assert_eq!(mapping_of(&template, queue), mapping_of(&template, normal), "{queue}");
    }
}

/// The actions that a role allows on a queue.
fn actions_on(queue: &str, granted: &BTreeSet<(String, String)>) -> BTreeSet<String> {
    granted.iter().filter(|(_, resource)| resource == queue).map(|(action, _)| action.clone()).collect()
}

#[test]
fn a_function_that_uses_a_queue_of_normal_jobs_uses_those_of_the_priorities_alike() {
    let template = template();
    for (function, _) in template.resources_of("AWS::Serverless::Function") {
        let function = properties(&template, function);
        let role = target(&function["Role"]);
        let granted = granted(properties(&template, role));
        let variables = function["Environment"]["Variables"].as_object().expect("every function has variables");
        let is_named = |queue: &str| variables.values().any(|value| *value == json!({ "Ref": queue }));
        for (queue, normal) in QUEUES {
            assert_eq!(actions_on(queue, &granted), actions_on(normal, &granted), "{role} and {queue}");
            assert_eq!(is_named(queue), is_named(normal), "the variables of the function of {role}, and {queue}");
        }
    }
}
