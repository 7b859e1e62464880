use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::request_limits::{RequestLimits, RequestsCounted, Window};
use rowmill_core::ports::{Counted, PortError, RequestCounts, RequestToCount};

use super::{DynamoDbQuotas, below};
use crate::adapters::dynamodb::attributes::{Item, binary, number};
use crate::adapters::dynamodb::write::{Update, Written};

const DOING: &str = "counting the request";

/// Number of names of requests that a row holds. A name is overwritten by another request whose name falls on the same
/// place, so a write that the SDK repeats within a second is recognised unless that happened meanwhile; then one
/// request counts twice.
const PLACES: u8 = 16;

/// Time after the beginning of its hour at which a row is deleted.
const KEPT_SECONDS: i64 = 2 * 3600;

/// The attributes of a request.
struct Names {
    minute: String,
    place: String,
}

impl Names {
    fn of(request: &RequestToCount) -> Self {
        let minute = Window::Minute.number(request.at).rem_euclid(60);
        let place = request.id.as_bytes()[request.id.as_bytes().len() - 1] % PLACES;
        Self { minute: format!("m{minute}"), place: format!("r{place}") }
    }

    fn counted(&self, row: &Item) -> RequestsCounted {
        let counter = |name: &str| row.get(name).and_then(|count| count.as_n().ok()?.parse().ok()).unwrap_or(0);
        RequestsCounted { minute: counter(&self.minute), hour: counter("h") }
    }
}

fn scope(request: &RequestToCount) -> String {
    format!("requests#{}#{}#{}", request.principal, request.operation, Window::Hour.number(request.at))
}

fn expires_at(at: Timestamp) -> i64 {
    Window::Hour.number(at) * Window::Hour.seconds() + KEPT_SECONDS
}

#[async_trait]
impl RequestCounts for DynamoDbQuotas {
    async fn count(&self, request: &RequestToCount, limits: RequestLimits) -> Result<Counted, PortError> {
        let names = Names::of(request);
        let Names { minute, place } = &names;
        let change = format!("SET #{place} = :id, #expiresAt = :expires ADD #h :one, #{minute} :one");
        let condition = format!(
            "(attribute_not_exists(#{place}) OR #{place} <> :id) AND {} AND {}",
            below("#h", ":hour", limits.per_hour == 0),
            below(&format!("#{minute}"), ":minute", limits.per_minute == 0),
        );
        let id = binary(request.id.as_bytes().to_vec());
        let values = [
            (":id", id.clone()),
            (":expires", number(expires_at(request.at))),
            (":one", number(1)),
            (":hour", number(limits.per_hour)),
            (":minute", number(limits.per_minute)),
        ];
        let update = Update { doing: DOING, change: &change, condition: &condition };
        match update.apply(self.update(&scope(request)), values).await {
            Ok(Written::Applied(row)) => Ok(Counted::Yes(names.counted(&row))),
            // Our own write: its reply was lost.
            Ok(Written::Refused(row)) if row.get(place) == Some(&id) => Ok(Counted::Yes(names.counted(&row))),
            Ok(Written::Refused(row)) => Ok(Counted::No(names.counted(&row))),
            // A limit of zero.
            Err(PortError::NotFound) => Ok(Counted::No(RequestsCounted::default())),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::dynamodb::attributes::{size_of, text};
    use rowmill_core::model::blocks::Principal;
    use rowmill_core::model::ids::{Owner, RunId};

    #[test]
    fn a_full_row_costs_one_write_unit() {
        let request = RequestToCount {
            principal: Principal::Owner(Owner("o".repeat(Owner::MAX_BYTES))),
            operation: "completeUpload".into(),
            id: RunId::from_bytes([255; 7]),
            at: "2099-01-01T00:00:00Z".parse().unwrap(),
        };
        let mut row = Item::from([("scope".to_owned(), text(scope(&request))), ("h".to_owned(), number(99_999))]);
        row.insert("expiresAt".to_owned(), number(expires_at(request.at)));
        row.extend((0..60).map(|minute| (format!("m{minute}"), number(9_999))));
        row.extend((0..PLACES).map(|place| (format!("r{place}"), binary([255; 7]))));
        assert!(size_of(&row) <= 1024, "{} bytes", size_of(&row));
    }
}
