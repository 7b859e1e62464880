//! Start-up: builds the use case once, then serves connections.

use rowmill_aws::host::live_events;
use rowmill_core::ports::BoxError;
use rowmill_settings::ConnectionLimits;

use crate::connect::Doorkeeper;
use crate::declaration::FUNCTION;
use crate::handler;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let (tickets, connections, clock) = (ports.tickets.get()?, ports.connections.get()?, ports.clock.get()?);
    let per_owner = runtime.settings::<ConnectionLimits>()?.per_owner;
    let door = Doorkeeper { tickets, connections, clock, per_owner };
    live_events::live(&runtime, door, handler::handle).await
}
