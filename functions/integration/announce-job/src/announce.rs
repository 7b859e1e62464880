//! Announces jobs: turns changes of job rows into events, publishes them, and starts the jobs that wait for an ended one.

use std::sync::Arc;

use rowmill_core::model::job::Job;
use rowmill_core::model::job_event::JobEvent;
use rowmill_core::ports::{Events, PortError};
use rowmill_core::progress::waits::Waker;

/// The use case and the ports it works through.
pub struct Announcer {
    pub events: Arc<dyn Events>,
    /// Starts the jobs that wait for an ended one.
    pub waker: Waker,
}

#[derive(Debug)]
pub enum Announced {
    /// The change is no event.
    Nothing,
    /// This event is published.
    Event(JobEvent),
    /// This event is not published: `Unavailable` if a later try may succeed, `Invalid` if none will.
    Failed(JobEvent, PortError),
}

impl Announcer {
    /// Publishes the events of these changes, each a job before and after, in their order. Returns a result for each.
    pub async fn announce<'a>(&self, changes: impl Iterator<Item = (Option<&'a Job>, &'a Job)>) -> Vec<Announced> {
        let events: Vec<Option<JobEvent>> = changes.map(|(before, after)| JobEvent::between(before, after)).collect();
        let to_tell: Vec<JobEvent> = events.iter().flatten().cloned().collect();
        let mut results = self.events.publish(&to_tell).await.into_iter();
        let announced = |event| {
            let Some(event) = event else { return Announced::Nothing };
            match results.next() {
                Some(Ok(())) => Announced::Event(event),
                Some(Err(error)) => Announced::Failed(event, error),
                None => Announced::Failed(event, PortError::unavailable("publishing events", "no result for this one")),
            }
        };
        events.into_iter().map(announced).collect()
    }
}
