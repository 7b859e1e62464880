//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{ADMISSION_TABLE, CONNECTIONS_TABLE, ConnectionLimits, LIVE_URL, SettingsGroup};

pub static FUNCTION: Function = Function {
    name: "live-ticket",
    purpose: "Gives out tickets for live connections.",
    triggers: &[Trigger::Http],
    settings: &[ConnectionLimits::GROUP],
    uses: &[
        Use::of("Tickets", &["dynamodb:PutItem", "dynamodb:Query"], &[CONNECTIONS_TABLE]),
        Use::of("Admission", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Counts the caller's requests, and looks whether the caller is blocked."),
        // Without a WebSocket API the function answers live_unavailable.
        Use::names(&[LIVE_URL]),
    ],
    ..Function::DEFAULT
};
