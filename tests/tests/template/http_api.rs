//! The HTTP API.

use std::collections::{BTreeMap, BTreeSet};

use rowmill::template::Template;
use rowmill_api::openapi::document;
use rowmill_api::routes::{self, Route};
use serde_json::{Value, json};

use crate::{integration_of, properties, target, template};

/// `job-status` is `JobStatusFunction`.
fn logical_id(function: &str) -> String {
    let words = function.split('-').map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
    words.collect::<String>() + "Function"
}

/// The routes of an API, by their names in the template.
pub fn routes_of<'a>(template: &'a Template, api: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let routes = template.resources_of("AWS::ApiGatewayV2::Route");
    routes.filter(move |(_, route)| target(&route["Properties"]["ApiId"]) == api)
}

#[test]
fn the_document_has_the_routes_of_the_table() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<String> = (paths.iter())
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let table = routes::all().map(key_of).collect::<BTreeSet<String>>();
    assert_eq!(documented, table);
}

/// `GET /api/jobs`.
fn key_of(route: &Route) -> String {
    format!("{} {}", route.method, route.path)
}

#[test]
fn routes_lead_to_their_functions_and_use_the_authorizer_if_it_is_configured() {
    let template = template();
    let (of_table, mut routes) = (routes::all_and_the_page().collect::<Vec<_>>(), BTreeMap::new());
    for (name, route) in routes_of(&template, "HttpApi") {
        let route = &route["Properties"];
        let key = route["RouteKey"].as_str().unwrap().to_owned();
        let integration = properties(&template, integration_of(route));
        assert_eq!(integration["PayloadFormatVersion"], "2.0");
        routes.insert(key.clone(), target(&integration["IntegrationUri"]).to_owned());
        if of_table.iter().any(|known| known.function == "web" && key_of(known) == key) {
            let all = ["ApiId", "AuthorizationType", "RouteKey", "Target"].into_iter().collect::<BTreeSet<_>>();
            assert_eq!(route.as_object().unwrap().keys().map(String::as_str).collect::<BTreeSet<_>>(), all, "{name}");
            assert_eq!(route["AuthorizationType"], "NONE", "{name}");
            continue;
        }
        assert_eq!(route["AuthorizationType"], json!({ "Fn::If": ["HasAuthorizer", "JWT", "NONE"] }), "{name}");
        assert_eq!(target(&route["AuthorizerId"]["Fn::If"][1]), "HttpApiAuthorizer", "{name}");
        let reads = of_table.iter().any(|known| key_of(known) == key && known.needs_only_to_read());
        let (condition, scope) = if reads { ("HasReadScope", "ReadScope") } else { ("HasWriteScope", "WriteScope") };
        let scopes = json!({ "Fn::If": [condition, [{ "Ref": scope }], { "Ref": "AWS::NoValue" }] });
        assert_eq!(route["AuthorizationScopes"], scopes, "{name}");
    }
    let expected: BTreeMap<String, String> =
        of_table.iter().map(|route| (key_of(route), logical_id(route.function))).collect();
    assert_eq!(routes, expected);
    let permissions = template.resources_of("AWS::Lambda::Permission").map(|(_, permission)| &permission["Properties"]);
    let of_api = permissions.filter(|permission| permission["Principal"] == "apigateway.amazonaws.com");
    let of_api = of_api.filter(|permission| permission["SourceArn"].to_string().contains("${HttpApi}"));
    let invoked: BTreeSet<String> = of_api.map(|permission| target(&permission["FunctionName"]).to_owned()).collect();
    assert_eq!(invoked, routes.into_values().collect());
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
    assert!(deploys(&[("JwtIssuer", "https://issuer.example"), ("WriteScope", "write")]));
}

#[test]
fn every_route_that_changes_something_has_a_throttle_of_its_own() {
    let template = template();
    let stage = properties(&template, "HttpApiStage");
    let throttled: BTreeSet<&String> = stage["RouteSettings"].as_object().unwrap().keys().collect();
    let limited = routes::all().filter(|route| !route.reads());
    let limited: BTreeSet<String> = limited.map(key_of).collect();
    assert_eq!(throttled, limited.iter().collect());
    for settings in stage["RouteSettings"].as_object().unwrap().values() {
        let literals =
            json!({ "DetailedMetricsEnabled": true, "ThrottlingRateLimit": 100, "ThrottlingBurstLimit": 200 });
        assert_eq!(*settings, literals, "the Ref of a parameter is a text in a property without a schema");
    }
    // API Gateway refuses settings of a route that does not exist yet.
    let waits_for = &template.document()["Resources"]["HttpApiStage"]["DependsOn"];
    let waits_for: BTreeSet<&str> = waits_for.as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    for (name, route) in routes_of(&template, "HttpApi") {
        let reads = route["Properties"]["RouteKey"].as_str().unwrap().starts_with("GET ");
        assert_ne!(waits_for.contains(name), reads, "{name}");
    }
}
