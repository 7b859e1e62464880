//! The HTTP API and the WebSocket API.

use std::collections::{BTreeMap, BTreeSet};

use rowmill_api::openapi::document;
use rowmill_api::{route_limits, routes};
use serde_json::{Value, json};

use crate::{properties, target, template};

#[test]
fn the_document_has_the_routes_of_the_table() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<String> = (paths.iter())
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let table: BTreeSet<String> = routes::all().map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(documented, table);
}

/// The value of a condition function of the template, with these parameters. The others have their defaults.
fn holds(condition: &Value, parameters: &BTreeMap<&str, &str>) -> bool {
    let (function, arguments) = condition.as_object().unwrap().iter().next().unwrap();
    let arguments = arguments.as_array().unwrap();
    match function.as_str() {
        "Fn::And" => arguments.iter().all(|argument| holds(argument, parameters)),
        "Fn::Not" => !holds(&arguments[0], parameters),
        "Fn::Equals" => {
            let name = arguments[0]["Ref"].as_str().unwrap();
            let value = parameters.get(name).map(|value| json!(value));
            arguments[1] == value.unwrap_or_else(|| template().document()["Parameters"][name]["Default"].clone())
        }
        other => panic!("{other} is not in this rule"),
    }
}

#[test]
fn an_open_api_must_be_wanted() {
    let template = template();
    let deploys = |parameters: &[(&'static str, &'static str)]| {
        let parameters = parameters.iter().copied().collect();
        ["AnOpenApiIsOpenOnPurpose", "ScopesNeedAnIssuer"].iter().all(|rule| {
            let rule = &template.document()["Rules"][rule];
            !holds(&rule["RuleCondition"], &parameters) || holds(&rule["Assertions"][0]["Assert"], &parameters)
        })
    };
    assert!(!deploys(&[]), "neither an issuer nor the wish");
    assert!(deploys(&[("AllowOpenApi", "true")]));
    assert!(deploys(&[("JwtIssuer", "https://issuer.example")]));
    assert!(deploys(&[("WithHttpApi", "false")]), "only who may invoke the functions can call them");
    assert!(!deploys(&[("AllowOpenApi", "true"), ("ReadScope", "read")]), "nobody checks the scope");
    assert!(!deploys(&[("AllowOpenApi", "true"), ("WorkScope", "work")]), "nor this one");
    assert!(deploys(&[("JwtIssuer", "https://issuer.example"), ("WriteScope", "write")]));
}

#[test]
fn every_route_but_those_of_the_page_asks_for_a_token_if_there_is_an_issuer() {
    let template = template();
    for (name, route) in template.resources_of("AWS::ApiGatewayV2::Route") {
        let route = &route["Properties"];
        let is_open = route["AuthorizationType"] == "NONE";
        let is_of_page = route["Target"].to_string().contains("${WebIntegration}");
        assert_eq!(is_open, is_of_page || target(&route["ApiId"]) == "LiveApi", "{name}");
    }
}

/// CloudFormation passes the `Ref` of a parameter on as a text in a property without a schema. API Gateway refuses it.
#[test]
fn settings_of_routes_are_numbers() {
    let template = template();
    let of_stage = |stage: &str| properties(&template, stage)["RouteSettings"].as_object().unwrap();
    for settings in ["HttpApiStage", "LiveStage"].into_iter().flat_map(|stage| of_stage(stage).values()) {
        assert!(settings["ThrottlingRateLimit"].is_u64() && settings["ThrottlingBurstLimit"].is_u64(), "{settings}");
    }
}

#[test]
fn every_route_but_those_that_clients_poll_has_a_throttle_of_its_own() {
    let template = template();
    let throttled = properties(&template, "HttpApiStage")["RouteSettings"].as_object().unwrap();
    let without = routes::all_and_the_page().map(|route| format!("{} {}", route.method, route.path));
    let without: Vec<String> = without.filter(|key| !throttled.contains_key(key)).collect();
    assert_eq!(without, ["GET /api/uploads/{fileGuid}", "GET /api/jobs", "GET /api/jobs/{jobGuid}"]);
    assert_eq!(throttled["GET /api/jobs/{jobGuid}/audit"]["ThrottlingRateLimit"], 10);
    // 10,000 workers that come back within ten seconds, see docs/performance.md.
    assert!(throttled["POST /api/tasks/lease"]["ThrottlingRateLimit"].as_u64() > Some(1000));
    assert!(properties(&template, "LiveStage")["RouteSettings"]["$connect"].is_object());
}

/// `rowmill` refuses a longer one before it deploys, and CloudFormation in any deployment.
#[test]
fn the_longest_route_limits_are_those_of_the_template() {
    let max = template().document()["Parameters"]["RouteLimits"]["MaxLength"].clone();
    assert_eq!(max, json!(route_limits::MAX_CHARS));
}

/// Any kind of log of a WebSocket API needs a CloudWatch role of the account: without one the stage, and with it a new
/// stack, is rolled back.
#[test]
fn a_web_socket_stage_has_no_log_unless_asked_for() {
    let template = template();
    let stage = properties(&template, "LiveStage");
    let log = &stage["AccessLogSettings"]["Fn::If"];
    assert_eq!((&log[0], &log[2]), (&json!("HasLiveAccessLog"), &json!({ "Ref": "AWS::NoValue" })));
    assert_eq!(template.document()["Resources"][target(&log[1]["DestinationArn"])]["Condition"], log[0]);
    assert!(!["LoggingLevel", "DataTraceEnabled"].iter().any(|log| stage.to_string().contains(log)));
    let asked_for = json!({ "Fn::Equals": [{ "Ref": "LiveAccessLog" }, "true"] });
    let document = template.document();
    assert_eq!(document["Conditions"]["HasLiveAccessLog"]["Fn::And"][1], asked_for);
    assert_eq!(document["Parameters"]["LiveAccessLog"]["Default"], "false");
    let format = log[1]["Format"].as_str().unwrap();
    assert!(!format.contains("query") && !format.contains("path"), "the address has the ticket");
}
