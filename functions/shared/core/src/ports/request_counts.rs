use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::blocks::Principal;
use crate::model::ids::RunId;
use crate::model::request_limits::{RequestLimits, RequestsCounted};
use crate::ports::PortError;

/// Counts the requests of each caller to each limited route, and live messages.
#[async_trait]
pub trait RequestCounts: Send + Sync {
    /// Counts a request, unless a limit is reached. One write. Idempotent for a while: the same request again is not
    /// counted again, since the first reply was lost.
    async fn count(&self, request: &RequestToCount, limits: RequestLimits) -> Result<Counted, PortError>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestToCount {
    pub principal: Principal,
    /// Its route, by the `operationId` of the OpenAPI document, or another name for what is counted.
    pub operation: String,
    pub id: RunId,
    pub at: Timestamp,
}

/// The result of counting a request, and the counts of its minute and its hour by then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// It is among them.
    Yes(RequestsCounted),
    /// A limit is reached.
    No(RequestsCounted),
}
