use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata};
use aws_sdk_dynamodb::types::{BatchStatementError, BatchStatementRequest};
use futures::stream::{self, StreamExt};
use rowmill_core::model::records::{RecordPage, Upsert, Upserted};
use rowmill_core::ports::{PortError, RecordStore};

use super::record_statements::{Answer, DOING, Kind, Record, Statements, answer};
use crate::retry::Pauses;

/// How many statements a batch may have.
const BATCH_STATEMENTS: usize = 25;

/// How many bytes of records a batch is given, well within what a request may have.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// How many batches are sent at once.
const CONCURRENT_BATCHES: usize = 8;

/// The records table in DynamoDB.
///
/// A record is written by a conditional write, so that of its versions the latest stays whatever the order: inserted if
/// there is none, else updated if what is there is earlier. PartiQL sends 25 of these in a request, where the ordinary API
/// has conditions only one by one. Which of the two is tried first follows what the last batch met, so that both loading
/// new records and writing them again cost one statement a record: one write unit per KB.
#[derive(Debug)]
pub struct DynamoDbRecordStore {
    pub(super) client: Client,
    pub(super) table: String,
    statements: Statements,
    /// Whether most records of the last batch were there before.
    records_exist: AtomicBool,
}

impl DynamoDbRecordStore {
    /// The store in this table.
    pub fn new(client: Client, table: String) -> Self {
        Self { client, statements: Statements::of(&table), table, records_exist: AtomicBool::new(false) }
    }

    /// Sends one batch; the answer to each of its statements, or what became of the request.
    async fn send(&self, batch: &[Step]) -> Result<Vec<Option<BatchStatementError>>, Refused> {
        let statements: Result<Vec<BatchStatementRequest>, PortError> =
            batch.iter().map(|step| self.statements.request(step.kind, &step.record, step.exists)).collect();
        let statements = statements.map_err(|error| Refused { lasting: true, why: error.to_string() })?;
        let output = self.client.batch_execute_statement().set_statements(Some(statements)).send().await;
        let output = output.map_err(|error| Refused {
            lasting: matches!(error.code(), Some("ValidationException" | "SerializationException")),
            why: DisplayErrorContext(&error).to_string(),
        })?;
        let answers = output.responses.unwrap_or_default();
        if answers.len() == batch.len() {
            return Ok(answers.into_iter().map(|answer| answer.error).collect());
        }
        Err(Refused { lasting: false, why: format!("{} answers to {} statements", answers.len(), batch.len()) })
    }

    /// Learns from the first statements of an upsert what to try first the next time.
    fn learn(&self, existed: usize, of: usize) {
        self.records_exist.store(existed * 2 > of, Ordering::Relaxed);
    }
}

/// A request that was refused whole.
struct Refused {
    /// For what is in it.
    lasting: bool,
    why: String,
}

/// A record on its way, with the statement that is tried next.
#[derive(Clone, Debug)]
struct Step {
    /// Its place among the upserts.
    place: usize,
    record: Record,
    kind: Kind,
    /// Whether there is known to be a record of its key.
    exists: bool,
    /// Whether it is sent in a request of its own.
    alone: bool,
}

/// What follows from the answer to a statement.
enum Next {
    Settled(Result<Upserted, PortError>),
    /// The other statement, at once.
    Try(Step),
    /// The same one, after a pause.
    Repeat(Step, String),
}

impl Step {
    fn after(mut self, error: Option<&BatchStatementError>) -> Next {
        let message = || error.and_then(BatchStatementError::message).unwrap_or("no reason given").to_owned();
        match answer(error) {
            Answer::Done => Next::Settled(Ok(Upserted::Written)),
            Answer::Later => Next::Settled(Ok(Upserted::Superseded)),
            Answer::NotEarlier if self.exists => Next::Settled(Ok(Upserted::Superseded)),
            Answer::NotEarlier => {
                self.kind = Kind::Insert;
                Next::Try(self)
            }
            Answer::Exists => {
                (self.kind, self.exists) = (Kind::Update, true);
                Next::Try(self)
            }
            Answer::Invalid => Next::Settled(Err(PortError::invalid(DOING, message()))),
            Answer::Unavailable => Next::Settled(Err(PortError::unavailable(DOING, message()))),
            Answer::Passing => Next::Repeat(self, message()),
        }
    }

    fn after_refusal(mut self, refused: &Refused) -> Next {
        match refused.lasting {
            // One record of the batch is to blame; the others must not suffer for it.
            true if !self.alone => {
                self.alone = true;
                Next::Try(self)
            }
            true => Next::Settled(Err(PortError::invalid(DOING, refused.why.clone()))),
            // The SDK has tried again already.
            false => Next::Settled(Err(PortError::unavailable(DOING, refused.why.clone()))),
        }
    }
}

#[async_trait]
impl RecordStore for DynamoDbRecordStore {
    async fn upsert(&self, dataset: &str, upserts: &[Upsert]) -> Vec<Result<Upserted, PortError>> {
        let kind = if self.records_exist.load(Ordering::Relaxed) { Kind::Update } else { Kind::Insert };
        let mut settled: Vec<Option<Result<Upserted, PortError>>> = upserts.iter().map(|_| None).collect();
        let mut steps = Vec::with_capacity(upserts.len());
        for (place, upsert) in upserts.iter().enumerate() {
            match Record::of(dataset, upsert) {
                Ok(record) => steps.push(Step { place, record, kind, exists: false, alone: false }),
                Err(error) => settled[place] = Some(Err(error)),
            }
        }
        let mut pauses = Pauses::after_conflict();
        let mut first = true;
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
                let go_on = pauses.wait().await;
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

    async fn page(
        &self,
        dataset: &str,
        partition: u32,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RecordPage, PortError> {
        self.query(dataset, partition, after, limit).await
    }
}

/// What came of sending every step once.
#[derive(Default)]
struct Round {
    settled: Vec<(usize, Result<Upserted, PortError>)>,
    next: Vec<Step>,
    repeat: Vec<(Step, String)>,
    /// How many records were found to be there.
    existed: usize,
}

impl DynamoDbRecordStore {
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

/// Cuts the steps into batches within the limits of a request.
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
