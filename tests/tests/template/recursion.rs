//! Functions whose own messages lead back to them. Lambda detects this as a recursive loop and stops it after about 16
//! invocations, unless the function is exempt.

use std::collections::{BTreeMap, BTreeSet};

use rowmill::template::Template;
use serde_json::{Value, json};

use crate::permissions::sends_to;
use crate::{event_sources, properties, target, template};

/// The functions that each reader of a queue can invoke: through the queues it may send to, and through their
/// dead-letter queues.
fn wakes(template: &Template) -> BTreeMap<String, BTreeSet<String>> {
    let sources = event_sources(template);
    let reader =
        |queue: &str| sources.iter().find(|(read, ..)| *read == queue).map(|(_, function, _)| (*function).to_owned());
    let dead_letters_of = |queue: &str| {
        let redrive = &properties(template, queue)["RedrivePolicy"];
        (!redrive.is_null()).then(|| target(&redrive["deadLetterTargetArn"]))
    };
    let woken_by = |function: &str| -> BTreeSet<String> {
        let queues = sends_to(template, function).into_iter();
        queues.flat_map(|queue| [reader(queue), dead_letters_of(queue).and_then(reader)]).flatten().collect()
    };
    let readers: BTreeSet<&str> = sources.iter().map(|(_, function, _)| *function).collect();
    readers.into_iter().map(|function| (function.to_owned(), woken_by(function))).collect()
}

/// True if the messages of a function can lead back to it.
fn comes_back(function: &str, wakes: &BTreeMap<String, BTreeSet<String>>) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![function]);
    while let Some(next) = open.pop() {
        for woken in wakes.get(next).into_iter().flatten() {
            if seen.insert(woken.as_str()) {
                open.push(woken);
            }
        }
    }
    seen.contains(function)
}

#[test]
fn recursion_is_allowed_for_functions_that_receive_their_own_messages_only() {
    let template = template();
    let wakes = wakes(&template);
    let coming_back: BTreeSet<&str> = wakes.keys().map(String::as_str).filter(|f| comes_back(f, &wakes)).collect();
    let expected = [
        "CompleteJobFunction",
        "DeadLetterFunction",
        "FetchFileFunction",
        "ProcessItemsFunction",
        "SplitJobFunction",
        "StartJobFunction",
    ];
    assert_eq!(coming_back, BTreeSet::from(expected));

    let functions = template.resources_of("AWS::Serverless::Function");
    let exempt = functions.filter(|(_, function)| function["Properties"].get("RecursiveLoop").is_some());
    let exempt: Vec<(&str, &Value)> =
        exempt.map(|(name, function)| (name, &function["Properties"]["RecursiveLoop"])).collect();
    assert!(exempt.iter().all(|(_, value)| **value == json!("Allow")), "{exempt:?}");
    assert_eq!(exempt.into_iter().map(|(name, _)| name).collect::<BTreeSet<_>>(), coming_back);
}
