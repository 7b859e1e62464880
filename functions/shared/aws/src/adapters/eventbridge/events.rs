use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::error::ProvideErrorMetadata;
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use rowmill_core::model::job_event::{JobEvent, SOURCE};
use rowmill_core::ports::{Events, PortError};

use crate::sdk::denied::{denied, is_denied, report};
use crate::sdk::retry::Backoff;

const DOING: &str = "publishing events";

/// The maximum number of events in a request. Their size does not matter: with the longest owner and metadata an event
/// has a few kilobytes, and a request may have 256 KiB.
const REQUEST_EVENTS: usize = 10;

/// The error codes that are caused by the entry itself. All other causes can be fixed, and the
/// event is published then.
const WRONG: [&str; 4] =
    ["InvalidArgument", "MalformedDetail", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException"];

#[derive(Clone, Debug)]
pub struct EventBridgeEvents {
    client: Client,
    bus: String,
}

impl EventBridgeEvents {
    pub const fn new(client: Client, bus: String) -> Self {
        Self { client, bus }
    }

    fn entry(&self, event: &JobEvent) -> Result<PutEventsRequestEntry, PortError> {
        let detail = serde_json::to_string(event).map_err(|error| PortError::invalid(DOING, error))?;
        let entry = PutEventsRequestEntry::builder().event_bus_name(&self.bus).source(SOURCE);
        let entry = entry.detail_type(event.detail_type()).detail(detail);
        Ok(entry.time(DateTime::from_millis(event.at.as_millisecond())).build())
    }

    /// Puts the events of one request, and retries those refused temporarily. Returns the results with their positions.
    async fn put(&self, mut open: Vec<(usize, PutEventsRequestEntry)>) -> Vec<(usize, Result<(), PortError>)> {
        let (mut results, mut backoff) = (Vec::new(), Backoff::after_conflict());
        while !open.is_empty() {
            let entries = open.iter().map(|(_, entry)| entry.clone()).collect();
            let output = match self.client.put_events().set_entries(Some(entries)).send().await {
                Ok(output) => output,
                Err(error) => {
                    let is_denied = is_denied(error.code());
                    if is_denied {
                        report(DOING, error.message());
                    }
                    let kind = if is_denied { PortError::denied } else { PortError::unavailable };
                    let error = Arc::new(error);
                    results.extend(open.into_iter().map(|(place, _)| (place, Err(kind(DOING, Arc::clone(&error))))));
                    break;
                }
            };
            let mut answers = output.entries().iter();
            let mut refused = Vec::new();
            for (place, entry) in open {
                match outcome(answers.next()) {
                    Err(error @ PortError::Unavailable { .. }) => refused.push((place, entry, error)),
                    outcome => results.push((place, outcome)),
                }
            }
            if !refused.is_empty() && !backoff.wait().await {
                results.extend(refused.into_iter().map(|(place, _, error)| (place, Err(error))));
                break;
            }
            open = refused.into_iter().map(|(place, entry, _)| (place, entry)).collect();
        }
        results
    }
}

fn outcome(answer: Option<&PutEventsResultEntry>) -> Result<(), PortError> {
    let answer = answer.ok_or_else(|| PortError::unavailable(DOING, "no answer for this event"))?;
    let Some(code) = answer.error_code() else { return Ok(()) };
    let why = format!("{code}: {}", answer.error_message().unwrap_or("no reason given"));
    if is_denied(Some(code)) {
        return Err(denied(DOING, Some(&why.clone()), why));
    }
    Err(if WRONG.contains(&code) { PortError::invalid(DOING, why) } else { PortError::unavailable(DOING, why) })
}

#[async_trait]
impl Events for EventBridgeEvents {
    async fn publish(&self, events: &[JobEvent]) -> Vec<Result<(), PortError>> {
        let mut results = Vec::with_capacity(events.len());
        let mut entries = Vec::new();
        for (place, event) in events.iter().enumerate() {
            match self.entry(event) {
                Ok(entry) => entries.push((place, entry)),
                Err(error) => results.push((place, Err(error))),
            }
        }
        // One request after the other, so that waiting events of a job are published in order.
        for request in entries.chunks(REQUEST_EVENTS) {
            results.extend(self.put(request.to_vec()).await);
        }
        results.sort_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    }
}
