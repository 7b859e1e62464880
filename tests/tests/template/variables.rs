//! The size of the environments.

use rowmill::template::Template;
use serde_json::Value;

use crate::{properties, template};

/// Maximum size of the names and values of all variables of a function in Lambda.
const ALLOWED_BYTES: usize = 4096;

/// Minimum left for [`WRITTEN`]. `docs/limits.md` says so.
const LEFT_BYTES: usize = 1700;

/// The parameters in which operators write as much as they need.
const WRITTEN: [&str; 5] = ["JobTargets", "JobTypes", "OtherSettings", "OwnerPriorities", "RouteLimits"];

/// The longest value of a number without a maximum: hundreds of gigabytes in bytes.
const NUMBER_BYTES: usize = 12;

/// A long value of a parameter that takes any text, such as the URL of an issuer.
const TEXT_BYTES: usize = 60;

/// A long name of a resource: the URL of a queue whose name has the 80 characters that SQS allows.
const RESOURCE_BYTES: usize = 140;

fn longest(template: &Template, value: &Value) -> usize {
    let Some(name) = value["Ref"].as_str().filter(|name| template.has_parameter(name)) else { return RESOURCE_BYTES };
    if WRITTEN.contains(&name) {
        return 0;
    }
    let parameter = &template.document()["Parameters"][name];
    let bytes = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
    let of_list = parameter["AllowedValues"].as_array().and_then(|values| values.iter().map(bytes).max());
    let of_number = parameter["MaxValue"].is_number().then(|| bytes(&parameter["MaxValue"]));
    let of_any = if parameter["Type"] == "Number" { NUMBER_BYTES } else { TEXT_BYTES };
    of_list.or(of_number).unwrap_or(of_any)
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
