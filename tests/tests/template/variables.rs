//! The size of the environments.

use rowmill::template::Template;
use serde_json::Value;

use crate::{properties, template};

/// Maximum size of the names and values of all variables of a function in Lambda.
const ALLOWED_BYTES: usize = 4096;

/// Minimum left for [`WRITTEN`]. `docs/limits.md` says so.
const LEFT_BYTES: usize = 1600;

/// The parameters in which operators write as much as they need.
const WRITTEN: [&str; 4] = ["JobTargets", "JobTypes", "OwnerPriorities", "RouteLimits"];

/// The longest value of a number: hundreds of gigabytes in bytes.
const NUMBER_BYTES: usize = 12;

/// A long value of any other parameter, such as the URL of an issuer.
const TEXT_BYTES: usize = 60;

/// A long name of a resource: the URL of a queue whose name has the 80 characters that SQS allows.
const RESOURCE_BYTES: usize = 140;

fn longest(template: &Template, value: &Value) -> usize {
    let parameter = value["Ref"].as_str().filter(|name| template.has_parameter(name));
    match parameter {
        Some(name) if WRITTEN.contains(&name) => 0,
        Some(name) if template.document()["Parameters"][name]["Type"] == "Number" => NUMBER_BYTES,
        Some(_) => TEXT_BYTES,
        None => RESOURCE_BYTES,
    }
}

#[test]
fn the_variables_of_every_function_leave_room_for_what_operators_write() {
    let template = template();
    for (function, _) in template.resources_of("AWS::Serverless::Function") {
        let variables = properties(&template, function)["Environment"]["Variables"].as_object().unwrap();
        let taken: usize = variables.iter().map(|(name, value)| name.len() + longest(&template, value)).sum();
        assert!(taken + LEFT_BYTES <= ALLOWED_BYTES, "{function} has {taken} bytes of variables");
    }
}
