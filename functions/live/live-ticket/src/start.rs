//! Start-up: builds the use case once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_settings::ConnectionLimits;

use crate::declaration::FUNCTION;
use crate::handler;
use crate::issue::TicketOffice;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let (tickets, connections) = (ports.tickets.get()?, ports.connections.get()?);
    let (clock, entropy) = (ports.clock.get()?, ports.entropy.get()?);
    let per_owner = runtime.settings::<ConnectionLimits>()?.per_owner;
    // A stack without an HTTP API has no live connections.
    let url = rowmill_settings::LIVE_URL.read().ok();
    let office = url.map(|url| TicketOffice { tickets, connections, clock, entropy, url, per_owner });
    serve::api(&runtime, office, |office, call| async move { handler::handle(office.as_ref(), &call).await }).await
}
