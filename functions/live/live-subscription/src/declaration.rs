//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{CONNECTIONS_TABLE, JOBS_TABLE, LIVE_URL};

pub static FUNCTION: Function = Function {
    name: "live-subscription",
    purpose: "Answers the messages of live connections, also those that ask for nothing known.",
    triggers: &[Trigger::WebSocket(&[(
        "LiveMessage",
        "$default",
        "Only a connection that was let in can send messages.",
    )])],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:BatchGetItem"], &[JOBS_TABLE]),
        Use::of("JobsOfOwner", &["dynamodb:Query"], &[JOBS_TABLE]).parts(&["/index/owner-index"]),
        Use::of(
            "Connections",
            &["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"],
            &[CONNECTIONS_TABLE],
        ),
        Use::of("Send", &["execute-api:ManageConnections"], &[LIVE_URL]).parts(&["/live/POST/@connections/*"]),
        Use::of("HangUp", &["execute-api:ManageConnections"], &[LIVE_URL]).parts(&["/live/DELETE/@connections/*"]),
    ],
    ..Function::DEFAULT
};
