//! What a client asks before it signs in, and the document that it is made from.

use super::{Answer, AnswerHeader, ETAG, IF_NONE_MATCH, Json, NOT_MODIFIED, Operation, Route};
use crate::client_config::ClientConfig;
use crate::document::OpenApiDocument;
use crate::problem::GatewayMessage;

routes!(
    Route {
        operation: ShowClientConfig,
        method: "GET",
        path: "/api/client-config",
        function: "web",
        summary: "Show what a client must know of this stack",
        description: "Whether it pushes progress, how people sign in, its limits and its job types. No token is needed.",
        parameters: &[IF_NONE_MATCH],
        body: None,
        answers: &[
            Answer {
                status: 200,
                description: "The configuration.",
                json: &[Json::of::<ClientConfig>()],
                headers: &[ETAG],
            },
            NOT_MODIFIED,
            Answer {
                status: 429,
                description: "Too many requests come at once. API Gateway itself answers so.",
                json: &[Json::of::<GatewayMessage>()],
                headers: &[],
            },
        ],
        problems: &[],
        guarded: false,
    },
    Route {
        operation: ShowDocument,
        method: "GET",
        path: "/api/openapi.json",
        function: "job-status",
        summary: "Show this document",
        description: "The OpenAPI document of this version. It may be cached for an hour.",
        parameters: &[IF_NONE_MATCH],
        body: None,
        answers: &[
            Answer {
                status: 200,
                description: "The OpenAPI document.",
                json: &[Json::of::<OpenApiDocument>()],
                headers: &[ETAG, CACHE_CONTROL],
            },
            Answer { headers: &[ETAG, CACHE_CONTROL], ..NOT_MODIFIED },
            Answer {
                status: 401,
                description: "The token is missing or not valid. API Gateway itself answers so, if the stack has an issuer.",
                json: &[Json::of::<GatewayMessage>()],
                headers: &[],
            },
        ],
        problems: &[],
        guarded: false,
    },
);

const CACHE_CONTROL: AnswerHeader = AnswerHeader {
    name: "Cache-Control",
    required: true,
    description: "How long the answer may be kept.",
    schema: r#"{"type": "string"}"#,
};
