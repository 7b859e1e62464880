//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{ADMISSION_TABLE, CONNECTIONS_TABLE, ConnectionLimits, JOBS_TABLE, LIVE_URL, SettingsGroup};

pub static FUNCTION: Function = Function {
    name: "live-subscription",
    purpose: "Answers the messages of live connections, also those that ask for nothing known.",
    triggers: &[Trigger::WebSocket(&[(
        "LiveMessage",
        "$default",
        "Only a connection that was let in can send messages.",
    )])],
    settings: &[ConnectionLimits::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:BatchGetItem"], &[JOBS_TABLE]),
        Use::of("JobsOfOwner", &["dynamodb:Query"], &[JOBS_TABLE]).parts(&["/index/owner-index"]),
        Use::of(
            "Connections",
            &["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"],
            &[CONNECTIONS_TABLE],
        ),
        Use::of("Admission", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Counts the messages of an owner who sends many, and looks whether the owner is blocked."),
        Use::of("Send", &["execute-api:ManageConnections"], &[LIVE_URL]).parts(&["/live/POST/@connections/*"]),
        Use::of("HangUp", &["execute-api:ManageConnections"], &[LIVE_URL]).parts(&["/live/DELETE/@connections/*"]),
    ],
    ..Function::DEFAULT
};
