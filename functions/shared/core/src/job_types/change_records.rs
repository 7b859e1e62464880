//! Changes records by a rule over what is stored: reads each, and stores what the rule makes of it unless somebody else
//! has written it since. Then it reads it again.

use std::collections::HashMap;
use std::ops::Range;

use crate::model::records::Dataset;
use crate::model::stored_record::StoredRecord;
use crate::ports::{PortError, Reading, RecordStore, Replacement};

/// Number of records that are read and written at once: with their history at most 10 MB. An invocation has several
/// chunks, each with so many.
const AT_ONCE: usize = 25;

/// How often a record is read before its item is retried later: each time somebody else has written it meanwhile.
const ROUNDS_MAX: usize = 8;

/// What a rule makes of a record, and its result.
pub enum Rewrite<T> {
    Keep(T),
    Store(Box<StoredRecord>, T),
    /// It is removed; so there is one.
    Remove(T),
}

/// Changes the records with these keys, no two of them the same. The rule gets the place of the key. The results are in
/// the order of the keys. What is written takes the place of what was read. So the first reading may be `Recent` if a rule
/// that changes nothing in an earlier state changes nothing in a later one, and there may be none (`None`) if the rule
/// always stores a record where none is: then a record that is there costs a write in vain.
///
/// # Errors
/// Per key, those of the store. `Unavailable` also if others write the record all the time.
pub async fn change_records<T: Send>(
    records: &dyn RecordStore,
    dataset: &Dataset,
    keys: &[&str],
    reading: Option<Reading>,
    rule: impl Fn(usize, Option<&StoredRecord>) -> Rewrite<T> + Sync,
) -> Vec<Result<T, PortError>> {
    let mut results = Vec::with_capacity(keys.len());
    for from in (0..keys.len()).step_by(AT_ONCE) {
        let places = from..keys.len().min(from + AT_ONCE);
        results.extend(change_part(records, dataset, keys, (places, reading), &rule).await);
    }
    results
}

async fn change_part<T>(
    records: &dyn RecordStore,
    dataset: &Dataset,
    keys: &[&str],
    (places, mut reading): (Range<usize>, Option<Reading>),
    rule: &(impl Fn(usize, Option<&StoredRecord>) -> Rewrite<T> + Sync),
) -> Vec<Result<T, PortError>> {
    let mut results: HashMap<usize, Result<T, PortError>> = HashMap::with_capacity(places.len());
    let mut left: Vec<usize> = places.clone().collect();
    for _ in 0..ROUNDS_MAX {
        let names: Vec<&str> = left.iter().map(|place| keys[*place]).collect();
        let stored = match reading {
            Some(reading) => records.records(dataset, &names, reading).await,
            None => Ok(Vec::new()),
        };
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => {
                results
                    .extend(left.drain(..).map(|place| (place, Err(PortError::unavailable(DOING, error.to_string())))));
                break;
            }
        };
        let stored: HashMap<&str, &StoredRecord> =
            stored.iter().map(|record| (record.latest.key.as_str(), record)).collect();
        let (mut replaced, mut replacements) = (Vec::new(), Vec::new());
        for place in left.drain(..) {
            let seen = stored.get(keys[place]).copied();
            let (record, result) = match rule(place, seen) {
                Rewrite::Keep(result) => {
                    results.insert(place, Ok(result));
                    continue;
                }
                Rewrite::Store(record, result) => (Some(*record), result),
                Rewrite::Remove(result) => (None, result),
            };
            replaced.push((place, result));
            replacements.push(Replacement { key: keys[place].to_owned(), record, seen: seen.map(StoredRecord::at) });
        }
        let answers = records.replace(dataset, &replacements).await;
        for ((place, result), answer) in replaced.into_iter().zip(answers) {
            match answer {
                Ok(true) => drop(results.insert(place, Ok(result))),
                Ok(false) => left.push(place),
                Err(error) => drop(results.insert(place, Err(error))),
            }
        }
        if left.is_empty() {
            break;
        }
        // Somebody has written them in the last moments.
        reading = Some(Reading::Latest);
    }
    let unsettled = || Err(PortError::unavailable(DOING, "others write the record all the time"));
    places.map(|place| results.remove(&place).unwrap_or_else(unsettled)).collect()
}

const DOING: &str = "changing records";
