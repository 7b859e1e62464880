//! The OpenAPI 3.1 document, made from the types of this crate and the table of routes.

pub mod examples;
mod paths;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};

use crate::problem::{ProblemCode, ProblemView};
use crate::routes::{self, Json};

/// The document.
///
/// # Panics
/// Never: the schemas are JSON.
pub fn document() -> Value {
    let mut schemas = schemas();
    schemas["ProblemCode"]["description"] = Value::from(problem_code_table());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rowmill",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": LICENSE, "identifier": LICENSE },
        },
        // The stack that serves the document.
        "servers": [{ "url": "/" }],
        "tags": routes::parts().map(|part| json!({ "name": part.name, "description": part.description })),
        "paths": paths::paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A token of the issuer that the stack was deployed with. A stack that was deployed \
                                    without an issuer needs none.",
                },
            },
        },
        "security": [{ "token": [] }, {}],
    })
}

/// The schemas of the problems and of all that the routes take and answer, with the schemas that these use.
fn schemas() -> Value {
    let bodies = routes::all().filter_map(|route| route.body.map(|body| body.json));
    let answers = routes::all().flat_map(|route| route.answers).flat_map(|answer| answer.json);
    let all = bodies.chain(answers.copied()).chain([Json::of::<ProblemView>()]);
    let schemas: BTreeMap<String, RefOr<Schema>> = all.flat_map(|json| json.schemas()).collect();
    json!(schemas)
}

/// An SPDX expression.
const LICENSE: &str = "MIT OR Apache-2.0";

const DESCRIPTION: &str = "Processes big files with counts that can be proved: upload a file, create a job, follow it, fetch \
                           its results. Every problem is `application/problem+json` (RFC 9457) with a stable `code`. \
                           API Gateway itself answers requests that no route matches, that its authorizer rejects, or that \
                           exceed its limits; such an answer is `{\"message\": …}`. In an answer, a field that is null means \
                           the same as one that is left out, and a later version may add fields and words.";

fn problem_code_table() -> String {
    let mut text = String::from("The stable name of a kind of problem, with its HTTP status.\n");
    for code in ProblemCode::ALL {
        let statuses: Vec<String> = code.statuses().iter().map(u16::to_string).collect();
        text += &format!("\n- `{}` ({}): {}", code.as_str(), statuses.join(" or "), code.meaning());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` of the document.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_has_a_target_and_every_schema_a_description() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name} has no description");
        }
    }
}
