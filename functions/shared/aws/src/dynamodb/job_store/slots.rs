use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, TransactWriteItem};
use jiff::Timestamp;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Admission, Ceilings, ENDS_KEPT, Full, PortError};

use super::DynamoDbJobStore;
use crate::dynamodb::attributes::{Item, from_millis, number, text, time};
use crate::dynamodb::errors::port_error;
use crate::dynamodb::transact::{RowUpdate, condition_failed};

/// What stands for an end that there has not been yet, in milliseconds.
const NEVER: i64 = 0;

/// The scopes whose active jobs are counted, in the order in which a full one is reported.
fn scopes(job: &Job) -> [String; 3] {
    [format!("owner#{}", job.owner), format!("type#{}", job.job_type), "system".to_owned()]
}

/// Gives one slot back and remembers when: each remembered end moves one place on, the oldest is forgotten. Written from
/// the oldest to the newest, so that it comes out the same whether or not a place is read after it was set.
fn slot_back() -> String {
    let moves = (1..ENDS_KEPT).rev().map(|place| format!("#e{place} = if_not_exists(#e{}, :never), ", place - 1));
    format!("SET {}#e0 = :now ADD #active :one_less", moves.collect::<String>())
}

/// The ends that a counter's row remembers.
fn ends_of(item: &Item) -> Vec<Timestamp> {
    let places = (0..ENDS_KEPT).filter_map(|place| item.get(&format!("e{place}")));
    let millis = places.filter_map(|end| end.as_n().ok()?.parse().ok()).filter(|millis| *millis != NEVER);
    millis.filter_map(|millis| from_millis(millis).ok()).collect()
}

impl DynamoDbJobStore {
    pub(super) fn admission_table(&self, doing: &'static str) -> Result<&str, PortError> {
        let missing = || PortError::invalid(doing, "this function was not told of an admission table");
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

    /// Takes a job's slots, in the order of its scopes.
    pub(super) fn take_slots(
        &self,
        doing: &'static str,
        job: &Job,
        ceilings: Ceilings,
    ) -> Result<Vec<TransactWriteItem>, PortError> {
        let take = |(scope, ceiling): (String, u32)| {
            // Nobody has counted yet: there is room, unless the ceiling is on the floor.
            let condition = match ceiling {
                0 => "#active < :ceiling",
                _ => "attribute_not_exists(#active) OR #active < :ceiling",
            };
            let values = [(":one", number(1)), (":ceiling", number(ceiling))];
            self.update_counter(doing, &scope, "ADD #active :one", condition, values)
        };
        scopes(job).into_iter().zip([ceilings.owner, ceilings.job_type, ceilings.system]).map(take).collect()
    }

    /// Gives a job's slots back. Without a condition: nothing may keep a job from ending, least of all a counter.
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

    /// Which ceiling kept a job from its slots; `reasons` are those of [`take_slots`](Self::take_slots).
    pub(super) async fn full(
        &self,
        doing: &'static str,
        job: &Job,
        reasons: &[CancellationReason],
    ) -> Result<Full, PortError> {
        let ceilings = [Admission::OwnerFull, Admission::TypeFull, Admission::SystemFull];
        let mut refused = ceilings.into_iter().zip(scopes(job)).zip(reasons);
        let refused = refused.find(|(_, reason)| condition_failed(reason));
        let ((admission, scope), reason) =
            refused.ok_or_else(|| PortError::invalid(doing, format!("refused for {reasons:?}")))?;
        let counter = match &reason.item {
            Some(item) => Some(item.clone()),
            None => self.counter(doing, &scope).await?,
        };
        Ok(Full { admission, recent_ends: counter.as_ref().map(ends_of).unwrap_or_default() })
    }

    async fn counter(&self, doing: &'static str, scope: &str) -> Result<Option<Item>, PortError> {
        let request = self.client.get_item().table_name(self.admission_table(doing)?).consistent_read(true);
        let output = request.key("scope", text(scope)).send().await;
        Ok(output.map_err(|error| port_error(doing, error))?.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_moves_one_place_on_and_the_oldest_first() {
        let change = slot_back();
        assert!(change.starts_with("SET #e7 = if_not_exists(#e6, :never), #e6 = "), "{change}");
        assert!(change.ends_with("#e1 = if_not_exists(#e0, :never), #e0 = :now ADD #active :one_less"), "{change}");
    }

    #[test]
    fn ends_there_have_not_been_are_not_remembered() {
        let item = [("active", 3), ("e0", 2_000), ("e1", 1_000), ("e2", NEVER), ("e3", NEVER), ("e8", 9_000)];
        let item: Item = item.into_iter().map(|(name, value)| (name.to_owned(), number(value))).collect();
        let ends: Vec<_> = ends_of(&item).into_iter().map(Timestamp::as_millisecond).collect();
        assert_eq!(ends, [2_000, 1_000]);
        assert!(ends_of(&Item::new()).is_empty());
    }
}
