//! The WebSocket API, and the stream that feeds it.

use std::collections::BTreeMap;

use rowmill_core::model::live::CONNECTION_LIFETIME;
use serde_json::json;

use crate::http_api::routes_of;
use crate::{integration_of, passes, properties, target, template};

#[test]
fn every_route_of_the_web_socket_api_leads_to_its_function_and_is_deployed() {
    let template = template();
    let mut functions = BTreeMap::new();
    for (name, route) in routes_of(&template, "LiveApi") {
        let stage = &template.document()["Resources"]["LiveStage"];
        assert!(stage["DependsOn"].as_array().unwrap().contains(&json!(name)), "{name} comes before the stage");
        let route = &route["Properties"];
        let uri = properties(&template, integration_of(route))["IntegrationUri"]["Fn::Sub"].as_str().unwrap();
        let function = uri.split("${").find_map(|part| part.split_once("Function.Arn}")).unwrap().0;
        functions.insert(route["RouteKey"].as_str().unwrap(), function.to_owned());
    }
    let expected =
        [("$connect", "LiveConnection"), ("$disconnect", "LiveConnection"), ("$default", "LiveSubscription")];
    assert_eq!(functions, expected.map(|(key, function)| (key, function.to_owned())).into());
    assert_eq!(properties(&template, "LiveStage")["AutoDeploy"], true);
    let log = properties(&template, "LiveStage")["AccessLogSettings"]["Fn::If"][1]["Format"].as_str().unwrap();
    assert!(!log.contains("query") && !log.contains("path"), "the address has the ticket");
}

/// Any kind of log of a WebSocket API needs a CloudWatch role of the account: without one the stage, and with it a new
/// stack, is rolled back.
#[test]
fn a_web_socket_stage_has_no_log_unless_asked_for() {
    let template = template();
    let mut checked = 0;
    for (name, stage) in template.resources_of("AWS::ApiGatewayV2::Stage").map(|(name, s)| (name, &s["Properties"])) {
        if properties(&template, target(&stage["ApiId"]))["ProtocolType"] != "WEBSOCKET" {
            continue;
        }
        let log = &stage["AccessLogSettings"]["Fn::If"];
        assert_eq!((&log[0], &log[2]), (&json!("HasLiveAccessLog"), &json!({ "Ref": "AWS::NoValue" })), "{name}");
        assert_eq!(template.document()["Resources"][target(&log[1]["DestinationArn"])]["Condition"], log[0]);
        assert!(!["LoggingLevel", "DataTraceEnabled"].iter().any(|log| stage.to_string().contains(log)), "{name}");
        checked += 1;
    }
    assert_eq!(checked, 1);
    let asked_for = json!({ "Fn::Equals": [{ "Ref": "LiveAccessLog" }, "true"] });
    let document = template.document();
    assert_eq!(document["Conditions"]["HasLiveAccessLog"]["Fn::And"][1], asked_for);
    assert_eq!(document["Parameters"]["LiveAccessLog"]["Default"], "false");
}

#[test]
fn the_rows_that_a_view_is_made_of_invoke_push_progress() {
    let template = template();
    let source = properties(&template, "PushesEventSource");
    assert_eq!(target(&source["FunctionName"]), "PushProgressFunction");
    assert_eq!(source["EventSourceArn"], json!({ "Fn::GetAtt": ["JobsTable", "StreamArn"] }));
    let passes = |event: &str, row: &str| {
        passes(source, &json!({ "eventName": event, "dynamodb": { "Keys": { "row": { "S": row } } } }))
    };
    for (event, row) in [("INSERT", "job"), ("MODIFY", "job"), ("MODIFY", "tally#1#0")] {
        assert!(passes(event, row), "{event} {row}");
    }
    // A job counts the tally before it shows in its view; totals repeat what tallies said.
    for (event, row) in [
        ("REMOVE", "job"),
        ("INSERT", "tally#1#0"),
        ("REMOVE", "tally#1#0"),
        ("INSERT", "spec"),
        ("MODIFY", "totals#1"),
        ("MODIFY", "checkpoint#1#0#0"),
    ] {
        assert!(!passes(event, row), "{event} {row}");
    }
}

#[test]
fn a_message_is_tried_as_long_as_a_connection_can_live() {
    let template = template();
    let source = properties(&template, "PushesEventSource");
    assert_eq!(source["MaximumRecordAgeInSeconds"], CONNECTION_LIFETIME.as_secs());
    assert_eq!(source["MaximumRetryAttempts"], -1);
    assert_eq!(source["MaximumBatchingWindowInSeconds"], 1);
    let alarm = properties(&template, "PushesBehind");
    assert_eq!(target(&alarm["Dimensions"][0]["Value"]), "PushProgressFunction");
    assert_eq!((&alarm["MetricName"], &alarm["Threshold"]), (&json!("IteratorAge"), &json!(300_000)));
}
