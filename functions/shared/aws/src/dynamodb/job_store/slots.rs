use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, TransactWriteItem};
use futures::future::try_join_all;
use jiff::Timestamp;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Admission, Ceilings, ENDS_KEPT, Full, PortError};

use super::DynamoDbJobStore;
use crate::dynamodb::attributes::{Item, from_millis, number, text, time};
use crate::dynamodb::errors::port_error;
use crate::dynamodb::transact::{RowUpdate, condition_failed};

/// The stored value of an end that has not happened yet, in milliseconds.
const NEVER: i64 = 0;

/// The scopes in which a job takes a slot, in the order in which a full one is reported.
fn scopes(job: &Job) -> [String; 3] {
    scopes_of(&job.owner, &job.job_type)
}

fn scopes_of(owner: &Owner, job_type: &str) -> [String; 3] {
    [format!("owner#{owner}"), format!("type#{job_type}"), "system".to_owned()]
}

/// The limits, in the order of the scopes.
const ADMISSIONS: [Admission; 3] = [Admission::OwnerFull, Admission::TypeFull, Admission::SystemFull];

/// Gives one slot back and stores when: each stored end moves to the next place, and the oldest is dropped. The oldest is
/// set first, so that the result does not depend on whether DynamoDB reads a place before or after it sets it.
fn slot_back() -> String {
    let moves = (1..ENDS_KEPT).rev().map(|place| format!("#e{place} = if_not_exists(#e{}, :never), ", place - 1));
    format!("SET {}#e0 = :now ADD #active :one_less", moves.collect::<String>())
}

/// How many slots the row of a counter has taken.
fn active(counter: Option<&Item>) -> i64 {
    let taken = counter.and_then(|item| item.get("active")?.as_n().ok()?.parse().ok());
    taken.unwrap_or(0)
}

/// The ends in the row of a counter.
fn ends_of(item: &Item) -> Vec<Timestamp> {
    let places = (0..ENDS_KEPT).filter_map(|place| item.get(&format!("e{place}")));
    let millis = places.filter_map(|end| end.as_n().ok()?.parse().ok()).filter(|millis| *millis != NEVER);
    millis.filter_map(|millis| from_millis(millis).ok()).collect()
}

impl DynamoDbJobStore {
    pub(super) fn admission_table(&self, doing: &'static str) -> Result<&str, PortError> {
        let missing = || PortError::invalid(doing, "this function has no admission table configured");
        self.admission_table.as_deref().ok_or_else(missing)
    }

    fn update_counter(
        &self,
        doing: &'static str,
        scope: &str,
        change: &str,
        condition: &str,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
    ) -> Result<TransactWriteItem, PortError> {
        let key = Item::from([("scope".to_owned(), text(scope))]);
        RowUpdate { table: self.admission_table(doing)?, key, change, condition }.with(doing, values)
    }

    /// Takes the slots of a job, in the order of its scopes.
    pub(super) fn take_slots(
        &self,
        doing: &'static str,
        job: &Job,
        ceilings: Ceilings,
    ) -> Result<Vec<TransactWriteItem>, PortError> {
        let take = |(scope, ceiling): (String, u32)| {
            // Without a row no slot is taken, so there is room unless the ceiling is 0.
            let condition = match ceiling {
                0 => "#active < :ceiling",
                _ => "attribute_not_exists(#active) OR #active < :ceiling",
            };
            let values = [(":one", number(1)), (":ceiling", number(ceiling))];
            self.update_counter(doing, &scope, "ADD #active :one", condition, values)
        };
        scopes(job).into_iter().zip([ceilings.owner, ceilings.job_type, ceilings.system]).map(take).collect()
    }

    /// Gives the slots of a job back. It has no condition: a counter must never keep a job from ending.
    pub(super) fn give_slots_back(
        &self,
        doing: &'static str,
        job: &Job,
        now: Timestamp,
    ) -> Result<Vec<TransactWriteItem>, PortError> {
        let change = slot_back();
        let give = |scope: String| {
            let values = [(":one_less", number(-1)), (":now", time(now)), (":never", number(NEVER))];
            self.update_counter(doing, &scope, &change, "", values)
        };
        scopes(job).into_iter().map(give).collect()
    }

    /// Which limit refused the slots of a job. `reasons` belong to the items of [`take_slots`](Self::take_slots).
    pub(super) async fn full(
        &self,
        doing: &'static str,
        job: &Job,
        reasons: &[CancellationReason],
    ) -> Result<Full, PortError> {
        let mut refused = ADMISSIONS.into_iter().zip(scopes(job)).zip(reasons);
        let refused = refused.find(|(_, reason)| condition_failed(reason));
        let ((admission, scope), reason) =
            refused.ok_or_else(|| PortError::invalid(doing, format!("refused for {reasons:?}")))?;
        let counter = match &reason.item {
            Some(item) => Some(item.clone()),
            None => self.counter(doing, &scope, true).await?,
        };
        Ok(Full { admission, recent_ends: counter.as_ref().map(ends_of).unwrap_or_default() })
    }

    /// The first limit that has no slot left for this owner and type. The reads may be a moment old, so they cost half.
    pub(super) async fn reached_slots(
        &self,
        doing: &'static str,
        owner: &Owner,
        job_type: &str,
        ceilings: Ceilings,
    ) -> Result<Option<Full>, PortError> {
        let scopes = scopes_of(owner, job_type);
        let counters = try_join_all(scopes.iter().map(|scope| self.counter(doing, scope, false))).await?;
        let ceilings = [ceilings.owner, ceilings.job_type, ceilings.system];
        let mut limits = ADMISSIONS.into_iter().zip(counters).zip(ceilings);
        let reached = limits.find(|((_, counter), ceiling)| active(counter.as_ref()) >= i64::from(*ceiling));
        Ok(reached.map(|((admission, counter), _)| {
            let recent_ends = counter.as_ref().map(ends_of).unwrap_or_default();
            Full { admission, recent_ends }
        }))
    }

    async fn counter(&self, doing: &'static str, scope: &str, consistent: bool) -> Result<Option<Item>, PortError> {
        let request = self.client.get_item().table_name(self.admission_table(doing)?).consistent_read(consistent);
        let output = request.key("scope", text(scope)).send().await;
        Ok(output.map_err(|error| port_error(doing, error))?.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_ends_are_shifted_by_one_place_starting_with_the_oldest() {
        let change = slot_back();
        assert!(change.starts_with("SET #e7 = if_not_exists(#e6, :never), #e6 = "), "{change}");
        assert!(change.ends_with("#e1 = if_not_exists(#e0, :never), #e0 = :now ADD #active :one_less"), "{change}");
    }

    #[test]
    fn unused_places_for_recent_ends_are_ignored() {
        let item = [("active", 3), ("e0", 2_000), ("e1", 1_000), ("e2", NEVER), ("e3", NEVER), ("e8", 9_000)];
        let item: Item = item.into_iter().map(|(name, value)| (name.to_owned(), number(value))).collect();
        let ends: Vec<_> = ends_of(&item).into_iter().map(Timestamp::as_millisecond).collect();
        assert_eq!(ends, [2_000, 1_000]);
        assert!(ends_of(&Item::new()).is_empty());
    }
}
