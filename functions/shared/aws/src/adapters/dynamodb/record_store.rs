use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata};
use aws_sdk_dynamodb::types::{BatchStatementError, BatchStatementRequest};
use futures::stream::{self, StreamExt};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::records::{Dataset, DatasetPage, DatasetRecord, RecordPage, Upserted, Writer};
use rowmill_core::model::stored_record::StoredRecord;
use rowmill_core::ports::{Clock, KeyRange, PortError, PortResult, Reading, RecordStore, Replacement};

use super::record_statements::{Answer, DOING, Kind, Record, Statements, answer};
use crate::sdk::denied::{denied, is_denied};
use crate::sdk::retry::Backoff;

const BATCH_STATEMENTS: usize = 25;

/// The maximum size of the records in a batch in bytes, well below the limit of a request.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// How often the other statement is tried at once. After that it waits each time.
const SWITCHES_AT_ONCE: u32 = 4;

/// The number of batches sent at the same time.
const CONCURRENT_BATCHES: usize = 8;

/// The records table in DynamoDB.
///
/// Each record is written conditionally, so that its latest version stays in any order of writes: it is inserted if the
/// key is new, and updated if the stored version is earlier. PartiQL sends 25 conditional writes in a request; the
/// ordinary API sends only one. Whether the insert or the update is tried first depends on the last batch. So both
/// loading new records and writing them again cost one statement per record: one write unit per KB.
pub struct DynamoDbRecordStore {
    pub(super) client: Client,
    pub(super) table: String,
    pub(super) clock: Arc<dyn Clock>,
    statements: Statements,
    /// True if most records of the last batch existed before.
    records_exist: AtomicBool,
}

impl DynamoDbRecordStore {
    /// Records expire by this clock.
    pub fn new(client: Client, table: String, clock: Arc<dyn Clock>) -> Self {
        Self { client, statements: Statements::of(&table), table, clock, records_exist: AtomicBool::new(false) }
    }

    /// Sends one batch. Returns the answer to each statement, or why the request was refused.
    async fn send(&self, batch: &[Step]) -> Result<Vec<Option<BatchStatementError>>, Refused> {
        let statements: Result<Vec<BatchStatementRequest>, PortError> =
            batch.iter().map(|step| self.statements.request(step.kind, &step.record)).collect();
        let statements =
            statements.map_err(|error| Refused { lasting: true, denied: false, why: error.to_string() })?;
        let output = self.client.batch_execute_statement().set_statements(Some(statements)).send().await;
        let output = output.map_err(|error| Refused {
            lasting: matches!(error.code(), Some("ValidationException" | "SerializationException")),
            denied: is_denied(error.code()),
            why: DisplayErrorContext(&error).to_string(),
        })?;
        let answers = output.responses.unwrap_or_default();
        if answers.len() == batch.len() {
            return Ok(answers.into_iter().map(|answer| answer.error).collect());
        }
        let why = format!("{} answers to {} statements", answers.len(), batch.len());
        Err(Refused { lasting: false, denied: false, why })
    }

    /// Learns from the first statements of an upsert which statement to try first the next time.
    fn learn(&self, existed: usize, of: usize) {
        self.records_exist.store(existed * 2 > of, Ordering::Relaxed);
    }
}

/// A request that was refused as a whole.
struct Refused {
    /// True if a retry does not help.
    lasting: bool,
    /// True if a permission is missing.
    denied: bool,
    why: String,
}

/// A record that is not settled yet, with the statement to try next.
#[derive(Clone, Debug)]
struct Step {
    /// Its position among the upserts.
    place: usize,
    record: Record,
    kind: Kind,
    /// How often another statement was tried.
    switches: u32,
    /// True if it is sent in its own request.
    alone: bool,
}

/// The next step after the answer to a statement.
enum Next {
    Settled(Result<Upserted, PortError>),
    /// Try the other statement at once.
    Try(Step),
    /// Repeat the same statement after a backoff.
    Repeat(Step, String),
}

impl Step {
    fn after(self, error: Option<&BatchStatementError>) -> Next {
        let message = || error.and_then(BatchStatementError::message).unwrap_or("no reason given").to_owned();
        match answer(error) {
            Answer::Done => Next::Settled(Ok(Upserted::Written)),
            // It has another revision than was seen, or none.
            Answer::Exists | Answer::Later | Answer::Missing if self.record.is_in_place() => {
                Next::Settled(Ok(Upserted::Superseded))
            }
            Answer::Later => Next::Settled(Ok(Upserted::Superseded)),
            // There is none: it was never there, or was deleted since.
            Answer::Missing => self.by(Kind::Insert, message()),
            Answer::Exists => self.by(Kind::Update, message()),
            Answer::Invalid => Next::Settled(Err(PortError::invalid(DOING, message()))),
            Answer::Unavailable => Next::Settled(Err(PortError::unavailable(DOING, message()))),
            Answer::Denied => Next::Settled(Err(denied(DOING, Some(&message()), message()))),
            Answer::Passing => Next::Repeat(self, message()),
        }
    }

    /// Tries the other statement. If that goes on, others write and delete the record all the time.
    fn by(mut self, kind: Kind, why: String) -> Next {
        (self.kind, self.switches) = (kind, self.switches + 1);
        if self.switches <= SWITCHES_AT_ONCE { Next::Try(self) } else { Next::Repeat(self, why) }
    }

    fn after_refusal(mut self, refused: &Refused) -> Next {
        match refused.lasting {
            // One record of the batch is the cause; the others must not fail with it.
            true if !self.alone => {
                self.alone = true;
                Next::Try(self)
            }
            true => Next::Settled(Err(PortError::invalid(DOING, refused.why.clone()))),
            false if refused.denied => Next::Settled(Err(denied(DOING, Some(&refused.why), refused.why.clone()))),
            // The SDK has already retried.
            false => Next::Settled(Err(PortError::unavailable(DOING, refused.why.clone()))),
        }
    }
}

#[async_trait]
impl RecordStore for DynamoDbRecordStore {
    async fn open(&self, if_new: &Dataset, writer: Writer) -> PortResult<Dataset> {
        let dataset = self.open_dataset(if_new).await?;
        self.list_dataset(&dataset, writer).await?;
        Ok(dataset)
    }

    async fn opened(&self, name: &str) -> PortResult<Option<Dataset>> {
        self.opened_dataset(name).await
    }

    async fn upsert(&self, dataset: &Dataset, upserts: &[DatasetRecord]) -> Vec<Result<Upserted, PortError>> {
        let kind = if self.records_exist.load(Ordering::Relaxed) { Kind::Update } else { Kind::Insert };
        self.write(upserts.iter().map(|upsert| (kind, Record::of(dataset, upsert)))).await
    }

    async fn replace(&self, dataset: &Dataset, replacements: &[Replacement]) -> Vec<PortResult<bool>> {
        let record = |replacement: &Replacement| {
            let kind = match replacement {
                Replacement { record: None, .. } => Kind::Remove,
                Replacement { seen: Some(_), .. } => Kind::Replace,
                Replacement { seen: None, .. } => Kind::Insert,
            };
            (kind, Record::in_place(dataset, replacement))
        };
        let written = self.write(replacements.iter().map(record)).await;
        written.into_iter().map(|result| result.map(|written| written == Upserted::Written)).collect()
    }

    async fn page(
        &self,
        dataset: &Dataset,
        partition: u32,
        keys: KeyRange<'_>,
        limit: usize,
        reading: Reading,
    ) -> PortResult<RecordPage> {
        self.query(dataset, partition, keys, limit, reading).await
    }

    async fn record(&self, dataset: &Dataset, key: &str) -> PortResult<Option<DatasetRecord>> {
        self.get(dataset, key).await
    }

    async fn records(&self, dataset: &Dataset, keys: &[&str], reading: Reading) -> PortResult<Vec<StoredRecord>> {
        self.get_many(dataset, keys, reading).await
    }

    async fn unlist(&self, name: &str, by: Writer) -> PortResult<()> {
        self.unlist_dataset(name, by).await
    }

    async fn datasets(&self, owner: &Owner, after: Option<&str>, limit: usize) -> PortResult<DatasetPage> {
        self.listed_datasets(owner, after, limit).await
    }
}

/// The result of sending every step once.
#[derive(Default)]
struct Round {
    settled: Vec<(usize, Result<Upserted, PortError>)>,
    next: Vec<Step>,
    repeat: Vec<(Step, String)>,
    /// The number of records that existed before.
    existed: usize,
}

impl DynamoDbRecordStore {
    /// Writes these records, each by a statement of this kind at first. The results are in their order.
    async fn write(
        &self,
        records: impl Iterator<Item = (Kind, Result<Record, PortError>)>,
    ) -> Vec<Result<Upserted, PortError>> {
        let (mut settled, mut steps): (Vec<Option<Result<Upserted, PortError>>>, Vec<Step>) = Default::default();
        for (place, (kind, record)) in records.enumerate() {
            settled.push(match record {
                Ok(record) => {
                    steps.push(Step { place, record, kind, switches: 0, alone: false });
                    None
                }
                Err(error) => Some(Err(error)),
            });
        }
        let mut backoff = Backoff::after_conflict();
        let mut first = steps.iter().all(|step| !step.record.is_in_place());
        while !steps.is_empty() {
            let tried = steps.len();
            let round = self.round(std::mem::take(&mut steps)).await;
            if std::mem::take(&mut first) {
                self.learn(round.existed, tried);
            }
            steps = round.next;
            for (place, result) in round.settled {
                settled[place] = Some(result);
            }
            if !round.repeat.is_empty() {
                let go_on = backoff.wait().await;
                for (step, why) in round.repeat {
                    if go_on {
                        steps.push(step);
                    } else {
                        settled[step.place] = Some(Err(PortError::unavailable(DOING, why)));
                    }
                }
            }
        }
        let unsettled = || Err(PortError::unavailable(DOING, "no answer"));
        settled.into_iter().map(|result| result.unwrap_or_else(unsettled)).collect()
    }

    async fn round(&self, steps: Vec<Step>) -> Round {
        let sent = stream::iter(batches(steps)).map(|batch| async {
            let answers = self.send(&batch).await;
            (batch, answers)
        });
        let mut sent = sent.buffer_unordered(CONCURRENT_BATCHES);
        let mut round = Round::default();
        while let Some((batch, answers)) = sent.next().await {
            match answers {
                Ok(answers) => {
                    for (step, error) in batch.into_iter().zip(answers) {
                        round.note(step, error.as_ref());
                    }
                }
                Err(refused) => batch.into_iter().for_each(|step| round.add(step.place, step.after_refusal(&refused))),
            }
        }
        round
    }
}

impl Round {
    fn note(&mut self, step: Step, error: Option<&BatchStatementError>) {
        let (place, kind) = (step.place, step.kind);
        self.existed += usize::from(match answer(error) {
            Answer::Done => kind == Kind::Update,
            Answer::Exists | Answer::Later => true,
            _ => false,
        });
        self.add(place, step.after(error));
    }

    fn add(&mut self, place: usize, next: Next) {
        match next {
            Next::Settled(result) => self.settled.push((place, result)),
            Next::Try(step) => self.next.push(step),
            Next::Repeat(step, why) => self.repeat.push((step, why)),
        }
    }
}

/// Divides the steps into batches within the limits of a request.
fn batches(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let mut batches: Vec<Vec<Step>> = Vec::new();
    let mut open_bytes = 0;
    for step in steps {
        let fits = |batch: &Vec<Step>| {
            let alone = step.alone || batch.first().is_some_and(|first| first.alone);
            !alone && batch.len() < BATCH_STATEMENTS && open_bytes + step.record.bytes <= BATCH_BYTES
        };
        match batches.last_mut().filter(|batch| fits(batch)) {
            Some(batch) => {
                open_bytes += step.record.bytes;
                batch.push(step);
            }
            None => {
                open_bytes = step.record.bytes;
                batches.push(vec![step]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::BatchStatementErrorCodeEnum as Code;
    use rowmill_core::model::ids::JobGuid;
    use rowmill_core::model::records::RecordVersion;
    use serde_json::Map;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_record_that_was_deleted_between_two_statements_is_inserted() {
        let by = Writer { job_created_ms: 1, job_guid: JobGuid(Uuid::nil()) };
        let upsert = DatasetRecord { key: "k".into(), version: RecordVersion { by, row: 1 }, fields: Map::new() };
        let record = Record::of(&Dataset::lasting("d", 1), &upsert).unwrap();
        let mut step = Step { place: 0, record, kind: Kind::Insert, switches: 0, alone: false };
        for (code, next) in [(Code::DuplicateItem, Kind::Update), (Code::ConditionalCheckFailed, Kind::Insert)] {
            let error = BatchStatementError::builder().code(code).build();
            let Next::Try(tried) = step.after(Some(&error)) else { panic!("settled") };
            assert_eq!(tried.kind, next);
            step = tried;
        }
    }
}
