//! The OpenAPI document as an answer of the API.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// An OpenAPI document.
#[derive(Serialize, ToSchema)]
pub struct OpenApiDocument {
    /// The version of OpenAPI.
    pub openapi: &'static str,
    /// What the API is.
    #[schema(value_type = serde_json::Map<String, Value>)]
    pub info: Value,
    /// The routes.
    #[schema(value_type = serde_json::Map<String, Value>)]
    pub paths: Value,
}
