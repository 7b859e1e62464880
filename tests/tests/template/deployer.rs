//! The policies in `docs/deploying.md`: those who deploy paste them.

use serde_json::Value;

use super::{template, workspace};

/// Longest managed policy, without white space.
const POLICY_MAX: usize = 6144;

/// The policy for the command, and the one for CloudFormation.
fn policies() -> Vec<Value> {
    let text = std::fs::read_to_string(workspace().join("docs/deploying.md")).unwrap();
    let blocks = text.split("```json").skip(1).map(|rest| rest.split("```").next().unwrap());
    let documents = blocks.map(|block| serde_json::from_str::<Value>(block).unwrap());
    documents.filter(|document| document["Statement"].is_array()).collect()
}

fn services(policy: &Value) -> Vec<String> {
    let actions = policy["Statement"].as_array().unwrap().iter().map(|statement| &statement["Action"]);
    let one_or_more = |actions: &Value| actions.as_array().cloned().unwrap_or_else(|| vec![actions.clone()]);
    let service = |action: Value| action.as_str().unwrap().split(':').next().unwrap().to_owned();
    actions.flat_map(one_or_more).map(service).collect()
}

#[test]
fn the_policies_fit_into_managed_ones() {
    let policies = policies();
    assert_eq!(policies.len(), 2);
    for policy in policies {
        let length = policy.to_string().len();
        assert!(length <= POLICY_MAX, "{length} characters");
    }
}

#[test]
fn cloudformation_may_make_resources_of_every_service_of_the_template() {
    let allowed = services(&policies()[1]);
    let template = template();
    for (id, resource) in template.document()["Resources"].as_object().unwrap() {
        let service = resource["Type"].as_str().unwrap().split("::").nth(1).unwrap().to_lowercase();
        let service = match service.as_str() {
            "apigatewayv2" => "apigateway",
            "serverless" => "lambda",
            other => other,
        };
        assert!(allowed.iter().any(|of| of == service), "{id} takes rights in {service}");
    }
}
