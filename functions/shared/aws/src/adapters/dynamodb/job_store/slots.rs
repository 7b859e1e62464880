use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, TransactWriteItem};
use jiff::Timestamp;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::ports::{ActiveJobs, Admission, Ceilings, ENDS_KEPT, Full, PortError, SlotsTaken};

use xxhash_rust::xxh3::xxh3_64;

use super::DynamoDbJobStore;
use crate::adapters::dynamodb::attributes::{Item, from_millis, number, text, time};
use crate::adapters::dynamodb::batch_get::batch_get;
use crate::adapters::dynamodb::errors::port_error;
use crate::adapters::dynamodb::transact::{RowUpdate, condition_failed};

/// The stored value of an end that has not happened yet, in milliseconds.
const NEVER: i64 = 0;

/// Over how many rows the counter of a type, and that of the system, is spread. Transactions that begin and end jobs at
/// the same time conflict on a row: `tests/tests/adapters/contention.rs` shows that this many are enough.
const SHARDS: u32 = 16;

/// Maximum number of tries to admit a job, in shards that had room. If others took the slot each time, it is refused.
pub const TRIES: usize = 8;

/// Which rows of the counters a job has its slots in. They are stored in the job row, by the transaction that takes the
/// slots, with the ceilings of the attempt: a job that gave its slots back takes them again under those.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shards {
    job_type: u32,
    system: u32,
}

/// The attributes of the job row that hold the shards.
const OF_TYPE: &str = "typeShard";
const OF_SYSTEM: &str = "systemShard";

/// The attributes of the job row that hold the ceilings.
const TYPE_CEILING: &str = "typeCeiling";
const SYSTEM_CEILING: &str = "systemCeiling";

impl Shards {
    /// The shards to try first. They follow from the name of the job, so that a repeated request is the same.
    pub fn first(job: JobGuid, ceilings: Ceilings) -> Self {
        let hash = xxh3_64(job.0.as_bytes());
        let [a, b, c, d, e, f, g, h] = hash.to_be_bytes();
        let one = |bytes, ceiling: u32| u32::from_be_bytes(bytes) % ceiling.clamp(1, SHARDS);
        Self { job_type: one([a, b, c, d], ceilings.job_type), system: one([e, f, g, h], ceilings.system) }
    }

    pub fn of_row(row: &Item) -> Self {
        Self { job_type: number_in(row, OF_TYPE).unwrap_or(0), system: number_in(row, OF_SYSTEM).unwrap_or(0) }
    }

    /// The attributes that hold them, and the ceilings.
    pub fn attributes(self, ceilings: Ceilings) -> [(String, AttributeValue); 4] {
        let Ceilings { job_type, system, .. } = ceilings;
        let numbers =
            [(OF_TYPE, self.job_type), (OF_SYSTEM, self.system), (TYPE_CEILING, job_type), (SYSTEM_CEILING, system)];
        numbers.map(|(name, value)| (name.to_owned(), number(value)))
    }

    /// The token of the transaction that creates a job in these shards: at most 36 characters.
    pub fn token(self, job: JobGuid) -> String {
        format!("{}{:02}{:02}", job.0.simple(), self.job_type, self.system)
    }
}

/// The ceilings in a job row. That of the owner is not needed again.
pub fn ceilings_of_row(row: &Item) -> Ceilings {
    let ceiling = |name| number_in(row, name).unwrap_or(u32::MAX);
    Ceilings { owner: u32::MAX, job_type: ceiling(TYPE_CEILING), system: ceiling(SYSTEM_CEILING) }
}

fn number_in(row: &Item, name: &str) -> Option<u32> {
    row.get(name)?.as_n().ok()?.parse().ok()
}

fn shard_of(counter: &str, shard: u32) -> String {
    if shard == 0 { counter.to_owned() } else { format!("{counter}#{shard}") }
}

fn all_shards(counter: &str) -> Vec<String> {
    (0..SHARDS).map(|shard| shard_of(counter, shard)).collect()
}

/// Number of a ceiling's slots in a shard. The shares add up to the ceiling.
const fn share_of(ceiling: u32, shard: u32) -> u32 {
    ceiling / SHARDS + (shard < ceiling % SHARDS) as u32
}

/// The counters of a job, in the order in which a full one is reported.
fn counters(job: &Job) -> [String; 3] {
    counters_of(&job.owner, &job.job_type)
}

fn counters_of(owner: &Owner, job_type: &str) -> [String; 3] {
    [format!("owner#{owner}"), format!("type#{job_type}"), "system".to_owned()]
}

/// The rows in which a job takes a slot, in the same order.
fn scopes(job: &Job, shards: Shards) -> [String; 3] {
    let [owner, job_type, system] = counters(job);
    [owner, shard_of(&job_type, shards.job_type), shard_of(&system, shards.system)]
}

/// Gives one slot back and stores when: each stored end moves to the next place, and the oldest is dropped. The oldest
/// is set first, so that the result does not depend on whether DynamoDB reads a place before or after it sets it.
fn slot_back() -> String {
    let moves = (1..ENDS_KEPT).rev().map(|place| format!("#e{place} = if_not_exists(#e{}, :never), ", place - 1));
    format!("SET {}#e0 = :now ADD #active :one_less", moves.collect::<String>())
}

/// Number of slots the row of a counter has taken.
fn active(counter: Option<&Item>) -> i64 {
    let taken = counter.and_then(|item| item.get("active")?.as_n().ok()?.parse().ok());
    taken.unwrap_or(0)
}

fn ends_of(item: &Item) -> Vec<Timestamp> {
    let places = (0..ENDS_KEPT).filter_map(|place| item.get(&format!("e{place}")));
    let millis = places.filter_map(|end| end.as_n().ok()?.parse().ok()).filter(|millis| *millis != NEVER);
    millis.filter_map(|millis| from_millis(millis).ok()).collect()
}

/// The last ends in the rows of a counter, newest first.
fn last_ends(rows: &[Option<Item>]) -> Vec<Timestamp> {
    let mut ends: Vec<Timestamp> = rows.iter().flatten().flat_map(ends_of).collect();
    ends.sort_unstable_by(|one, other| other.cmp(one));
    ends.truncate(ENDS_KEPT);
    ends
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
        shards: Shards,
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
        let Ceilings { owner, job_type, system } = ceilings;
        let shares = [owner, share_of(job_type, shards.job_type), share_of(system, shards.system)];
        scopes(job, shards).into_iter().zip(shares).map(take).collect()
    }

    /// Gives the slots of a job back, in the order of its scopes. It has no condition: a counter must never keep a job
    /// from ending.
    pub(super) fn give_slots_back(
        &self,
        doing: &'static str,
        job: &Job,
        shards: Shards,
        now: Timestamp,
    ) -> Result<Vec<TransactWriteItem>, PortError> {
        let change = slot_back();
        let give = |scope: String| {
            let values = [(":one_less", number(-1)), (":now", time(now)), (":never", number(NEVER))];
            self.update_counter(doing, &scope, &change, "", values)
        };
        scopes(job, shards).into_iter().map(give).collect()
    }

    /// Where to try next if the slots of a job were refused in these shards, or which limit is reached. `reasons`
    /// belong to the items of [`take_slots`](Self::take_slots).
    pub(super) async fn other_shards(
        &self,
        doing: &'static str,
        job: &Job,
        ceilings: Ceilings,
        reasons: &[CancellationReason],
        shards: Shards,
        is_last: bool,
    ) -> Result<Result<Shards, Full>, PortError> {
        let refused = |place: usize| reasons.get(place).is_some_and(condition_failed);
        let [owner, job_type, system] = counters(job);
        if refused(0) {
            let row = self.counter(doing, &owner, true).await?;
            let recent_ends = row.as_ref().map(ends_of).unwrap_or_default();
            return Ok(Err(Full { admission: Admission::OwnerFull, recent_ends }));
        }
        let mut others = shards;
        for (place, counter, ceiling, admission, shard) in [
            (1, job_type, ceilings.job_type, Admission::TypeFull, &mut others.job_type),
            (2, system, ceilings.system, Admission::SystemFull, &mut others.system),
        ] {
            if refused(place) {
                match self.shard_with_room(doing, &counter, ceiling).await? {
                    Ok(_) if is_last => return Ok(Err(Full { admission, recent_ends: Vec::new() })),
                    Ok(with_room) => *shard = with_room,
                    Err(recent_ends) => return Ok(Err(Full { admission, recent_ends })),
                }
            }
        }
        if others == shards && !refused(1) && !refused(2) {
            return Err(PortError::invalid(doing, format!("refused for {reasons:?}")));
        }
        Ok(Ok(others))
    }

    /// A shard of a counter that has room. If none has, the last ends under the ceiling.
    async fn shard_with_room(
        &self,
        doing: &'static str,
        counter: &str,
        ceiling: u32,
    ) -> Result<Result<u32, Vec<Timestamp>>, PortError> {
        let rows = self.rows(doing, &all_shards(counter), true).await?;
        let with_room =
            (0..SHARDS).zip(&rows).filter(|(shard, row)| active(row.as_ref()) < i64::from(share_of(ceiling, *shard)));
        let with_room: Vec<u32> = with_room.map(|(shard, _)| shard).collect();
        // Any of them: those who see the same rows at the same time go different ways.
        if let Some(shard) = fastrand::choice(with_room) {
            return Ok(Ok(shard));
        }
        Ok(Err(last_ends(&rows)))
    }

    /// The rows of counters by their names, in the order of the names: one request.
    async fn rows(
        &self,
        doing: &'static str,
        scopes: &[String],
        consistent: bool,
    ) -> Result<Vec<Option<Item>>, PortError> {
        let keys = scopes.iter().map(|scope| Item::from([("scope".to_owned(), text(scope))])).collect();
        let found = batch_get(doing, &self.client, self.admission_table(doing)?, keys, consistent).await?;
        let name = |row: &Item| row.get("scope").and_then(|scope| scope.as_s().ok()).cloned();
        let mut found: HashMap<String, Item> =
            found.into_iter().filter_map(|row| name(&row).map(|name| (name, row))).collect();
        Ok(scopes.iter().map(|scope| found.remove(scope)).collect())
    }

    /// The slots taken of this owner, this type and the system. The reads may be a moment old, so they cost half.
    pub(super) async fn slots_taken(
        &self,
        doing: &'static str,
        owner: &Owner,
        job_type: &str,
    ) -> Result<SlotsTaken, PortError> {
        let [owner, job_type, system] = counters_of(owner, job_type);
        let scopes = [vec![owner], all_shards(&job_type), all_shards(&system)].concat();
        let rows = self.rows(doing, &scopes, false).await?;
        let (owner, shards) = rows.split_at(1);
        let (job_type, system) = shards.split_at(SHARDS as usize);
        let of = |rows: &[Option<Item>]| ActiveJobs {
            active: rows.iter().map(|row| active(row.as_ref())).sum::<i64>().try_into().unwrap_or(0),
            recent_ends: last_ends(rows),
        };
        Ok(SlotsTaken { owner: of(owner), job_type: of(job_type), system: of(system) })
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
    fn the_shares_of_a_ceiling_add_up_to_it() {
        for ceiling in [0, 1, 15, 16, 17, 200, u32::MAX] {
            let sum: u64 = (0..SHARDS).map(|shard| u64::from(share_of(ceiling, shard))).sum();
            assert_eq!(sum, u64::from(ceiling));
        }
    }

    #[test]
    fn a_job_from_before_there_were_shards_has_its_slots_in_the_counters_of_that_time() {
        let shards = Shards::of_row(&Item::new());
        assert_eq!(
            (shard_of("system", shards.system), shard_of("type#import", shards.job_type)),
            ("system".into(), "type#import".into())
        );
        let stored = Shards { job_type: 3, system: 15 };
        let ceilings = Ceilings { owner: u32::MAX, job_type: 100, system: 200 };
        let row = stored.attributes(ceilings).into();
        assert_eq!((Shards::of_row(&row), ceilings_of_row(&row)), (stored, ceilings));
        assert_eq!(stored.token(JobGuid(uuid::Uuid::nil())).len(), 36);
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
