//! What a client asks before it signs in.

use super::{Answer, ETAG, IF_NONE_MATCH, Json, NOT_MODIFIED, Operation, Route};
use crate::client_config::ClientConfig;

routes!(Route {
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
    ],
    problems: &[],
    guarded: false,
},);
