//! The loop of the functions that take the messages of a queue one after the other.

use std::error::Error;

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;

use crate::host::serve::{Batch, Delivery};

impl<M> Batch<M> {
    /// Takes the deliveries one after the other, with the deadline of the invocation.
    ///
    /// A failure is logged as `failed` with the job of its message. Returns the ids of the messages to deliver again.
    pub async fn take_each<E, F>(
        self,
        job_of: impl Fn(&M) -> JobGuid,
        failed: &str,
        take: impl Fn(Delivery<M>, Timestamp) -> F,
    ) -> Vec<String>
    where
        E: Error + 'static,
        F: Future<Output = Result<(), E>>,
    {
        let mut retry = Vec::new();
        for delivery in self.deliveries {
            let (message_id, job_guid) = (delivery.message_id.clone(), job_of(&delivery.message));
            if let Err(error) = take(delivery, self.deadline).await {
                tracing::warn!(
                    job.id = %job_guid, message.id = message_id, error = &error as &dyn Error,
                    "{failed}, to be tried again"
                );
                retry.push(message_id);
            }
        }
        retry
    }
}

#[cfg(test)]
mod tests {
    use rowmill_core::ports::PortError;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn each_message_is_handled_and_failed_ones_are_delivered_again() {
        let delivery = |number: u128| Delivery {
            message_id: format!("m{number}"),
            message: JobGuid(Uuid::from_u128(number)),
            receive_count: 1,
            receipt: format!("r{number}"),
        };
        let batch = Batch { deliveries: (0..4).map(delivery).collect(), deadline: Timestamp::UNIX_EPOCH };
        let retry = batch.take_each(
            |job| *job,
            "not done",
            |delivery, deadline| async move {
                assert_eq!(deadline, Timestamp::UNIX_EPOCH);
                match delivery.message.0.as_u128() % 2 {
                    0 => Ok(()),
                    _ => Err(PortError::NotFound),
                }
            },
        );
        assert_eq!(retry.await, ["m1", "m3"]);
    }
}
