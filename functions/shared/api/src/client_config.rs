//! The configuration of a stack, for its clients.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a client must know of a stack before it can use it. It holds nothing of an owner, so no token is needed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// Whether the stack pushes the progress of jobs. If not, clients poll.
    pub live: bool,
    /// How people sign in on the page; null if they cannot.
    pub sign_in: Option<SignIn>,
    /// The web origin of presigned links, to which a page must be allowed to send files.
    pub bucket_origin: String,
    /// The limits of uploads.
    pub limits: ClientLimits,
    /// The names of all job types, sorted.
    pub job_types: Vec<String>,
    /// Those of them that read no file, sorted.
    #[serde(default)]
    pub job_types_without_file: Vec<String>,
}

/// How people sign in: OpenID Connect, authorization code with PKCE.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignIn {
    /// The issuer, which publishes its endpoints in `/.well-known/openid-configuration`.
    pub issuer: String,
    /// The public client that the issuer knows the page as.
    pub client_id: String,
    /// The scopes to ask for, with spaces between them.
    pub scope: String,
    /// The audience to ask for. Some issuers need it to issue a token for an API.
    pub audience: String,
}

/// The limits of uploads that a client chooses the way of an upload by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientLimits {
    /// The largest file that can be the body of `POST /api/uploads`, in bytes.
    pub direct_max_bytes: u64,
    /// The largest file at all, in bytes.
    pub upload_max_bytes: u64,
}
