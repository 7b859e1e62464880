//! The roles of the functions. `permission_list` compares them with the documented permissions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{properties, target, template};

/// A resource of a statement as text: `Bucket/uploads/*` for `!Sub ${Bucket.Arn}/uploads/*`, and the last part of an
/// ARN.
pub(crate) fn resource_text(resource: &Value) -> String {
    match resource["Fn::Sub"].as_str() {
        Some(text) => {
            let names = text.replace(".Arn}", "").replace("AWS::", "").replace("${", "").replace('}', "");
            names.rsplit(':').next().unwrap_or_default().to_owned()
        }
        None if let Some([_, named, made]) = resource["Fn::If"].as_array().map(Vec::as_slice) => {
            format!("{} or {}", target(named), target(made))
        }
        None if resource == "*" => "*".to_owned(),
        None if resource["Fn::Split"].is_array() => target(&resource["Fn::Split"][1]).to_owned(),
        None => target(resource).to_owned(),
    }
}

pub(crate) fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

/// Every statement of a role, including the conditional ones.
pub(crate) fn statements(role: &Value) -> Vec<&Value> {
    assert_eq!(role["ManagedPolicyArns"], Value::Null, "managed policies grant on every resource");
    let statements =
        list(&role["Policies"]).into_iter().flat_map(|policy| list(&policy["PolicyDocument"]["Statement"]));
    statements.map(|statement| statement.get("Fn::If").map_or(statement, |branches| &branches[1])).collect()
}

/// (action, resource) of every statement of a role, including the conditional statements.
pub(crate) fn granted(role: &Value) -> BTreeSet<(String, String)> {
    let mut granted = BTreeSet::new();
    for statement in statements(role) {
        assert_eq!(statement["Effect"], "Allow");
        for action in list(&statement["Action"]) {
            for resource in list(&statement["Resource"]) {
                granted.insert((action.as_str().unwrap().to_owned(), resource_text(resource)));
            }
        }
    }
    granted
}

#[test]
fn the_key_is_used_only_if_it_is_set() {
    let template = template();
    for (name, role) in template.resources_of("AWS::IAM::Role") {
        let statements = role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"].as_array().unwrap();
        let of_key: Vec<&Value> =
            statements.iter().filter(|statement| statement.to_string().contains("kms:")).collect();
        let [statement] = &of_key[..] else { panic!("{name}: {of_key:?}") };
        let branches = &statement["Fn::If"];
        assert_eq!((&branches[0], &branches[2]), (&json!("HasKmsKey"), &json!({ "Ref": "AWS::NoValue" })), "{name}");
        assert_eq!(branches[1]["Resource"], json!({ "Ref": "KmsKeyArn" }), "{name}");
    }
}

#[test]
fn no_two_functions_share_a_role() {
    let template = template();
    let roles: Vec<&str> =
        template.resources_of("AWS::Serverless::Function").map(|(_, f)| target(&f["Properties"]["Role"])).collect();
    assert_eq!(roles.iter().collect::<BTreeSet<_>>().len(), roles.len());
}

/// The statement of `process-items` that depends on this condition.
fn statement_if(condition: &str) -> Value {
    let template = template();
    let role = properties(&template, "ProcessItemsRole");
    let statements = role["Policies"][0]["PolicyDocument"]["Statement"].as_array().unwrap();
    let mut branches = statements.iter().filter_map(|statement| statement.get("Fn::If"));
    let branches = branches.find(|branches| branches[0] == condition).expect("a statement with this condition");
    assert_eq!(branches[2]["Ref"], "AWS::NoValue");
    branches[1].clone()
}

#[test]
fn process_items_may_invoke_the_configured_functions_only() {
    let those = json!({ "Fn::Split": [",", { "Ref": "InvokeTargetArns" }] });
    assert_eq!(statement_if("HasInvokeTargets")["Resource"], those, "the configured functions only");
    assert_eq!(template().document()["Parameters"]["InvokeTargetArns"]["Default"], "");
}

#[test]
fn process_items_may_read_the_webhook_secret_only_and_only_with_targets() {
    let template = template();
    let made = json!({ "Fn::GetAtt": ["WebhookSecret", "Id"] });
    let that = json!({ "Fn::If": ["NamesWebhookSecret", { "Ref": "WebhookSecretArn" }, made] });
    assert_eq!(statement_if("HasJobTargets")["Resource"], that);
    let is_set = |parameter: &str| json!({ "Fn::Not": [{ "Fn::Equals": [{ "Ref": parameter }, ""] }] });
    let conditions = &template.document()["Conditions"];
    assert_eq!(conditions["HasJobTargets"], is_set("JobTargets"));
    assert_eq!(conditions["NamesWebhookSecret"], is_set("WebhookSecretArn"));
    let no_name = json!({ "Fn::Not": [{ "Condition": "NamesWebhookSecret" }] });
    let makes = json!({ "Fn::And": [{ "Condition": "HasJobTargets" }, no_name] });
    assert_eq!(conditions["MakesWebhookSecret"], makes, "a stack without targets pays for no secret");
    assert_eq!(template.document()["Resources"]["WebhookSecret"]["Condition"], "MakesWebhookSecret");
}
