//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{CONNECTIONS_TABLE, ConnectionLimits, SettingsGroup};

pub static FUNCTION: Function = Function {
    name: "live-connection",
    purpose: "Opens and closes live connections.",
    triggers: &[Trigger::WebSocket(&[
        ("LiveConnect", "$connect", "The function behind it asks for a ticket."),
        ("LiveDisconnect", "$disconnect", "Only a connection that was let in can be closed."),
    ])],
    settings: &[ConnectionLimits::GROUP],
    uses: &[Use::of(
        "Connections",
        &["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:Query"],
        &[CONNECTIONS_TABLE],
    )],
    ..Function::DEFAULT
};
