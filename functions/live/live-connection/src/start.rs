//! Start-up: builds the use case once, then serves connections.

use rowmill_aws::host::live_events;
use rowmill_core::ports::BoxError;
use rowmill_settings::{ConnectionLimits, SettingsGroup};

use crate::connect::Doorkeeper;
use crate::handler;

const NAME: &str = "live-connection";

pub async fn start() -> Result<(), BoxError> {
    let ports = rowmill_aws::start(NAME).await?.ports;
    let (tickets, connections, clock) = (ports.tickets.get()?, ports.connections.get()?, ports.clock.get()?);
    let per_owner = ConnectionLimits::from_env()?.per_owner;
    let door = Doorkeeper { tickets, connections, clock, per_owner };
    live_events::live(NAME, door, handler::handle).await
}
