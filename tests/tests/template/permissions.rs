//! The roles of the functions, and what the tests have used of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{properties, target, template};

/// Names the file in which `infra/local/launcher.py` has recorded what functions used, if the roles are to be checked
/// against it.
const RECORDED: &str = "ROWMILL_RECORDED_PERMISSIONS";

/// Every statement of a role, including the conditional ones.
fn statements(role: &Value) -> impl Iterator<Item = &Value> {
    let statements = role["Policies"][0]["PolicyDocument"]["Statement"].as_array().unwrap().iter();
    statements.map(|statement| statement.get("Fn::If").map_or(statement, |branches| &branches[1]))
}

#[test]
fn no_statement_has_a_wildcard_action_and_no_managed_policy_grants_more() {
    let template = template();
    for (name, role) in template.resources_of("AWS::IAM::Role") {
        let role = &role["Properties"];
        assert_eq!(role["ManagedPolicyArns"], Value::Null, "{name}: managed policies grant on every resource");
        for statement in statements(role) {
            assert!(!statement["Action"].to_string().contains('*'), "{name}: {statement}");
            assert!(statement["Resource"] != "*" || statement["Sid"] == "Trace", "{name}: {statement}");
        }
    }
}

/// What a function may do by a declared statement, by the position of the resource in it.
fn used_by(record: &str) -> BTreeSet<(&'static str, String, &'static str)> {
    let permission = |line: &str| {
        let [role, sid, action, position] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let functions = rowmill_template::functions().into_iter();
        let mut of_role = functions.filter(|function| format!("{}Role", rowmill_template::stem(function.name)) == role);
        let function = of_role.next().unwrap_or_else(|| panic!("no function has {role}"));
        let statement = rowmill_template::statements(function).into_iter().find(|statement| statement.sid == sid)?;
        let action = statement.actions.iter().find(|declared| **declared == action).expect("a declared action");
        // A parameter may be several resources, but is one in the template.
        let position: usize = position.parse().expect("a number");
        let resource = statement.names.get(position).unwrap_or(&statement.names[0]).clone();
        Some((function.name, resource, *action))
    };
    record.lines().filter_map(permission).collect()
}

/// A permission that nothing shows to be needed is declared as `unseen`, with its reason.
#[test]
fn every_permission_was_used_by_a_test_or_is_declared_with_its_reason() {
    let Some(record) = std::env::var_os(RECORDED) else { return };
    let (declared, unseen) = (rowmill_template::used(), rowmill_template::unseen());
    // What a run does not always need, such as closing a connection that a busy machine starves, is declared so.
    let used = &used_by(&std::fs::read_to_string(record).unwrap()) - &unseen;
    let (unused, undeclared) = (&declared - &used, &used - &declared);
    assert!(unused.is_empty(), "no test used {unused:#?}");
    assert!(undeclared.is_empty(), "not declared: {undeclared:#?}");
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
fn process_items_may_use_the_configured_functions_and_tables_and_read_the_webhook_secret_only() {
    let tables = statement_if("HasImportTables");
    assert_eq!(tables["Action"], json!(["dynamodb:PutItem"]));
    assert_eq!(
        tables["Resource"],
        json!({ "Fn::Split": [",", { "Ref": "ImportTables" }] }),
        "the configured tables only"
    );
    let those = json!({ "Fn::Split": [",", { "Ref": "InvokeTargetArns" }] });
    assert_eq!(statement_if("HasInvokeTargets")["Resource"], those, "the configured functions only");
    let made = json!({ "Fn::GetAtt": ["WebhookSecret", "Id"] });
    let that = json!({ "Fn::If": ["NamesWebhookSecret", { "Ref": "WebhookSecretArn" }, made] });
    assert_eq!(statement_if("HasJobTargets")["Resource"], that);
    let no_name = json!({ "Fn::Not": [{ "Condition": "NamesWebhookSecret" }] });
    let makes = json!({ "Fn::And": [{ "Condition": "HasJobTargets" }, no_name] });
    let document = template().document().clone();
    assert_eq!(document["Conditions"]["MakesWebhookSecret"], makes, "a stack without targets pays for no secret");
}

#[test]
fn every_function_that_reads_uploads_can_read_the_inbox() {
    let template = template();
    for (name, role) in template.resources_of("AWS::IAM::Role") {
        let reads = |prefix: &str| {
            let path = format!("${{Bucket.Arn}}/{prefix}/*");
            let mut reading = statements(&role["Properties"]).filter(|s| s["Action"] == json!(["s3:GetObject"]));
            reading.any(|statement| statement["Resource"].to_string().contains(&path))
        };
        assert!(reads("inbox") || !reads("uploads"), "{name}");
    }
}

/// The queues that a function may send to.
pub fn sends_to<'a>(template: &'a rowmill::template::Template, function: &str) -> Vec<&'a str> {
    let role = properties(template, target(&properties(template, function)["Role"]));
    let sending = statements(role).filter(|statement| statement["Action"].to_string().contains("sqs:SendMessage"));
    let resources = sending.flat_map(|statement| match &statement["Resource"] {
        Value::Array(resources) => resources.iter().collect(),
        one => vec![one],
    });
    resources.map(target).collect()
}
