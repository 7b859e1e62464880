//! The routes for clients that have not signed in, and for the document that clients are made from.

use super::{Answer, AnswerHeader, ETAG, IF_NONE_MATCH, NOT_MODIFIED, Operation, Route};
use crate::client_config::ClientConfig;
use crate::document::OpenApiDocument;
use crate::problem::GatewayMessage;

routes! {
    ShowClientConfig = "GET" "/api/client-config" by "web" {
        summary: "Show what a client must know of this stack",
        description: "Whether it pushes progress, how people sign in, its limits and its job types. No token is needed.",
        parameters: &[IF_NONE_MATCH],
        answers: &[
            Answer::of::<ClientConfig>(200, "The configuration.").with(&[ETAG]),
            NOT_MODIFIED,
            Answer::of::<GatewayMessage>(429, "Too many requests come at once. API Gateway itself answers so."),
        ],
        guarded: false,
    }
    ShowDocument = "GET" "/api/openapi.json" by "job-status" {
        summary: "Show this document",
        description: "The OpenAPI document of this version. It may be cached for an hour.",
        parameters: &[IF_NONE_MATCH],
        answers: &[
            Answer::of::<OpenApiDocument>(200, "The OpenAPI document.").with(&[ETAG, CACHE_CONTROL]),
            Answer { headers: &[ETAG, CACHE_CONTROL], ..NOT_MODIFIED },
            Answer::of::<GatewayMessage>(
                401,
                "The token is missing or not valid. API Gateway itself answers so, if the stack has an issuer.",
            ),
        ],
        guarded: false,
    }
}

const CACHE_CONTROL: AnswerHeader = AnswerHeader {
    name: "Cache-Control",
    required: true,
    description: "How long the answer may be kept.",
    schema: r#"{"type": "string"}"#,
};
