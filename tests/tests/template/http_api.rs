//! The HTTP API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::{properties, target, template};

#[test]
fn routes_lead_to_their_functions_and_take_the_authorizer_where_there_is_one() {
    let template = template();
    let mut routes = BTreeMap::new();
    for (name, route) in template.resources_of("AWS::ApiGatewayV2::Route") {
        let route = &route["Properties"];
        assert_eq!(route["AuthorizationType"], json!({ "Fn::If": ["HasAuthorizer", "JWT", "NONE"] }), "{name}");
        assert_eq!(target(&route["AuthorizerId"]["Fn::If"][1]), "HttpApiAuthorizer", "{name}");
        let integration = route["Target"]["Fn::Sub"].as_str().unwrap();
        let integration = integration.trim_start_matches("integrations/${").trim_end_matches('}');
        let integration = properties(&template, integration);
        assert_eq!(integration["PayloadFormatVersion"], "2.0");
        routes.insert(route["RouteKey"].as_str().unwrap(), target(&integration["IntegrationUri"]));
    }
    let expected = BTreeMap::from([
        ("POST /api/uploads", "UploadFunction"),
        ("POST /api/uploads/{fileGuid}/complete", "UploadFunction"),
        ("GET /api/uploads/{fileGuid}", "UploadFunction"),
        ("POST /api/jobs", "CreateJobFunction"),
        ("GET /api/jobs", "JobStatusFunction"),
        ("GET /api/jobs/{jobGuid}", "JobStatusFunction"),
        ("GET /api/jobs/{jobGuid}/items", "JobStatusFunction"),
        ("GET /api/jobs/{jobGuid}/results", "JobStatusFunction"),
        ("GET /api/jobs/{jobGuid}/dead-letters", "JobStatusFunction"),
        ("POST /api/jobs/{jobGuid}/cancel", "CancelJobFunction"),
        ("POST /api/jobs/{jobGuid}/redrive", "RedriveJobFunction"),
    ]);
    assert_eq!(routes, expected);
    let permissions = template.resources_of("AWS::Lambda::Permission").map(|(_, permission)| &permission["Properties"]);
    let of_api = permissions.filter(|permission| permission["Principal"] == "apigateway.amazonaws.com");
    let invoked: BTreeSet<&str> = of_api.map(|permission| target(&permission["FunctionName"])).collect();
    assert_eq!(invoked, routes.into_values().collect());
}
