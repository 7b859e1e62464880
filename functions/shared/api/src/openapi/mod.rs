//! The OpenAPI 3.1 document, made from the types of this crate and the table of routes.

pub mod examples;
mod paths;

use serde_json::{Value, json};
use utoipa::OpenApi;

use crate::dead_letter::{DeadChunk, DeadLetter, DeadLetterKind, DeadLetterList};
use crate::ids::{FileGuid, JobGuid};
use crate::item::{FailedItem, FailedItemPage, SkippedItem, SkippedItemPage};
use crate::job::{JobError, JobLinks, JobPage, JobView, Unprocessed};
use crate::problem::{ProblemCode, ProblemView};
use crate::request::{AnnounceRequest, CreateJobRequest, RedriveRequest, Tolerance};
use crate::results::{FileView, LeftOut, LinkView, ManifestView, ResultFile, ResultKind, ResultsView};
use crate::status::{JobOutcome, Stage, Status, StopCode};
use crate::upload::{PartView, RequestView, UploadStatus, UploadView};

#[derive(OpenApi)]
#[openapi(components(schemas(
    AnnounceRequest,
    CreateJobRequest,
    DeadChunk,
    DeadLetter,
    DeadLetterKind,
    DeadLetterList,
    FailedItem,
    FailedItemPage,
    FileGuid,
    FileView,
    JobError,
    JobGuid,
    JobLinks,
    JobOutcome,
    JobPage,
    JobView,
    LeftOut,
    LinkView,
    ManifestView,
    PartView,
    ProblemCode,
    ProblemView,
    RedriveRequest,
    RequestView,
    ResultFile,
    ResultKind,
    ResultsView,
    SkippedItem,
    SkippedItemPage,
    Stage,
    Status,
    StopCode,
    Tolerance,
    Unprocessed,
    UploadStatus,
    UploadView,
)))]
struct Schemas;

/// The document.
///
/// # Panics
/// Never: the schemas are JSON.
pub fn document() -> Value {
    let schemas = serde_json::to_value(Schemas::openapi()).expect("schemas are JSON");
    let mut schemas = schemas["components"]["schemas"].clone();
    schemas["ProblemCode"]["description"] = Value::from(problem_code_table());
    schemas["OpenApiDocument"] = json!({
        "type": "object",
        "description": "An OpenAPI document.",
        "required": ["openapi", "info", "paths"],
        "properties": { "openapi": { "type": "string" }, "info": { "type": "object" }, "paths": { "type": "object" } },
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rowmill",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
        },
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
