//! The tasks table.

use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::task::{Holder, TASK_KEPT, Task, TaskId, place_of};
use rowmill_core::ports::{BoxError, PortError, Tasks};

use super::attributes::{Item, expiry_seconds, from_millis, number, text, time};
use super::errors::port_error;
use super::write::Update;

/// Tasks by when they are due. Local, so that its reads are consistent.
const DUE_INDEX: &str = "due-index";

const OFFER: Update = Update {
    doing: "offering a task",
    change: "SET #message = :message, #pauses = :pauses, #dueAt = :due, #called = :called, #expiresAt = :expires",
    condition: "attribute_not_exists(#pauses) OR #pauses < :pauses",
};

const PUT_OFF: Update =
    Update { doing: "putting a task off", change: "SET #dueAt = :due", condition: "#dueAt = :seen" };

const LEND: Update = Update { change: "SET #dueAt = :due, #holder = :holder, #heldSince = :since", ..PUT_OFF };

const NOTE_OWNER: Update =
    Update { doing: "noting who has tasks", change: "SET #at = :at, #expiresAt = :expires", condition: "" };

const NOTE_ASK: Update =
    Update { doing: "noting who asks for tasks", change: "SET #at = :at, #expiresAt = :expires", condition: "" };

/// The sort key of a row that is alone in its partition.
const ONLY: &str = "-";

/// The tasks table in DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoDbTasks {
    client: Client,
    table: String,
}

impl DynamoDbTasks {
    pub const fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    fn update(&self, scope: String, entry: impl ToString) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.table).key("scope", text(scope)).key("entry", text(entry))
    }

    fn query(&self, scope: String, limit: usize) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .expression_attribute_names("#scope", "scope")
            .expression_attribute_values(":scope", text(scope))
    }

    async fn row<T>(
        &self,
        doing: &'static str,
        (scope, entry): (String, String),
        read: impl Fn(&Item) -> Result<T, BoxError>,
    ) -> Result<Option<T>, PortError> {
        let request = self.client.get_item().table_name(&self.table).consistent_read(true);
        let request = request.key("scope", text(scope)).key("entry", text(entry));
        let row = request.send().await.map_err(|error| port_error(doing, error))?.item;
        row.map(|row| read(&row).map_err(|error| PortError::invalid(doing, error))).transpose()
    }

    /// Deletes a row on a condition. A failed condition is no error.
    async fn delete(
        &self,
        doing: &'static str,
        (scope, entry): (String, String),
        (attribute, condition): (&str, &str),
        value: AttributeValue,
    ) -> Result<(), PortError> {
        let request = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key("scope", text(scope))
            .key("entry", text(entry))
            .condition_expression(condition)
            .expression_attribute_names("#attribute", attribute)
            .expression_attribute_values(":value", value);
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(refused) if refused.is_conditional_check_failed_exception() => Ok(()),
                _ => Err(port_error(doing, error)),
            },
        }
    }
}

/// The partition of the owners that may have tasks of a type.
fn owners_scope(job_type: &str) -> String {
    format!("owners#{job_type}")
}

/// The partition of the tasks of a type and owner.
fn tasks_scope(job_type: &str, owner: &Owner) -> String {
    format!("tasks#{job_type}#{owner}")
}

/// The partition of the note of the last worker that has asked for a type.
fn asks_scope(job_type: &str) -> String {
    format!("asks#{job_type}")
}

fn owner_entry(owner: &Owner) -> String {
    format!("{:08x}#{owner}", place_of(owner))
}

fn owner_of(row: &Item) -> Result<(Owner, Timestamp), BoxError> {
    let entry = row.get("entry").and_then(|entry| entry.as_s().ok()).ok_or("the row has no owner")?;
    let (_, owner) = entry.split_once('#').ok_or("the row has no owner")?;
    Ok((Owner(owner.to_owned()), time_of(row, "at")?))
}

/// What can be read of the rows of a query. One of another version must not keep workers from all others.
async fn readable<T>(
    doing: &'static str,
    request: QueryFluentBuilder,
    read: impl Fn(&Item) -> Result<T, BoxError>,
) -> Result<Vec<T>, PortError> {
    let rows = request.send().await.map_err(|error| port_error(doing, error))?.items.unwrap_or_default();
    let read = rows.iter().filter_map(|row| match read(row) {
        Ok(read) => Some(read),
        Err(error) => {
            tracing::warn!(error = &*error as &dyn std::error::Error, "{doing}: a row cannot be read");
            None
        }
    });
    Ok(read.collect())
}

fn task_of(job_type: &str, row: &Item) -> Result<Task, BoxError> {
    let message = row.get("message").and_then(|message| message.as_s().ok()).ok_or("the row has no message")?;
    Ok(Task {
        job_type: job_type.to_owned(),
        message: serde_json::from_str(message)?,
        due_at: time_of(row, "dueAt")?,
        called: row.get("called").and_then(|called| called.as_bool().ok()) == Some(&true),
        holder: match row.get("holder").and_then(|holder| holder.as_s().ok()) {
            Some(worker) => Some(Holder { worker: worker.clone(), since: time_of(row, "heldSince")? }),
            None => None,
        },
    })
}

fn time_of(row: &Item, attribute: &'static str) -> Result<Timestamp, BoxError> {
    let millis = row.get(attribute).and_then(|time| time.as_n().ok()).ok_or("the row has no time")?;
    from_millis(millis.parse()?)
}

fn expires(at: Timestamp) -> AttributeValue {
    number(expiry_seconds(at.checked_add(TASK_KEPT).unwrap_or(Timestamp::MAX)))
}

#[async_trait]
impl Tasks for DynamoDbTasks {
    async fn offer(&self, task: &Task, now: Timestamp) -> Result<(), PortError> {
        let owner = &task.message.owner;
        let values = [(":at", time(now)), (":expires", expires(now))];
        NOTE_OWNER.apply(self.update(owners_scope(&task.job_type), owner_entry(owner)), values).await?;
        let message = serde_json::to_string(&task.message).map_err(|error| PortError::invalid(OFFER.doing, error))?;
        let values = [
            (":message", text(message)),
            (":pauses", number(task.message.epoch)),
            (":due", time(task.due_at)),
            (":called", AttributeValue::Bool(task.called)),
            (":expires", expires(now)),
        ];
        // A refused one is there already.
        OFFER.apply(self.update(tasks_scope(&task.job_type, owner), task.id()), values).await.map(drop)
    }

    async fn task(&self, job_type: &str, owner: &Owner, id: TaskId) -> Result<Option<Task>, PortError> {
        let key = (tasks_scope(job_type, owner), id.to_string());
        self.row("reading a task", key, |row| task_of(job_type, row)).await
    }

    async fn owners(&self, job_type: &str, from: u32, limit: usize) -> Result<Vec<(Owner, Timestamp)>, PortError> {
        let request = self
            .query(owners_scope(job_type), limit)
            .key_condition_expression("#scope = :scope AND #entry >= :from")
            .expression_attribute_names("#entry", "entry")
            .expression_attribute_values(":from", text(format!("{from:08x}")));
        readable("reading who has tasks", request, owner_of).await
    }

    async fn forget_owner(&self, job_type: &str, owner: &Owner, last: Timestamp) -> Result<(), PortError> {
        let key = (owners_scope(job_type), owner_entry(owner));
        self.delete("forgetting an owner without tasks", key, ("at", "#attribute = :value"), time(last)).await
    }

    async fn due(&self, job_type: &str, owner: &Owner, now: Timestamp, limit: usize) -> Result<Vec<Task>, PortError> {
        let request = self
            .query(tasks_scope(job_type, owner), limit)
            .index_name(DUE_INDEX)
            .key_condition_expression("#scope = :scope AND #dueAt <= :now")
            .expression_attribute_names("#dueAt", "dueAt")
            .expression_attribute_values(":now", time(now));
        readable("reading due tasks", request, |row| task_of(job_type, row)).await
    }

    async fn due_last(&self, job_type: &str, owner: &Owner, limit: usize) -> Result<Vec<Task>, PortError> {
        let request = self.query(tasks_scope(job_type, owner), limit).index_name(DUE_INDEX);
        let request = request.key_condition_expression("#scope = :scope").scan_index_forward(false);
        readable("reading leased tasks", request, |row| task_of(job_type, row)).await
    }

    async fn of_job(
        &self,
        job_type: &str,
        owner: &Owner,
        job: JobGuid,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, PortError> {
        let scope = tasks_scope(job_type, owner);
        let after =
            after.map(|after| HashMap::from([("scope".to_owned(), text(&scope)), ("entry".to_owned(), text(after))]));
        let request = self
            .query(scope, limit)
            .set_exclusive_start_key(after)
            .key_condition_expression("#scope = :scope AND begins_with(#entry, :job)")
            .expression_attribute_names("#entry", "entry")
            .expression_attribute_values(":job", text(format!("{job}.")));
        readable("reading the tasks of a job", request, |row| task_of(job_type, row)).await
    }

    async fn are_there(&self, job_type: &str, owner: &Owner) -> Result<bool, PortError> {
        let request = self.query(tasks_scope(job_type, owner), 1).key_condition_expression("#scope = :scope");
        let output = request.send().await.map_err(|error| port_error("looking for tasks", error))?;
        Ok(output.count > 0)
    }

    async fn put_off(&self, seen: &Task, due_at: Timestamp, holder: Option<&Holder>) -> Result<(), PortError> {
        let mut values = vec![(":due", time(due_at)), (":seen", time(seen.due_at))];
        if let Some(Holder { worker, since }) = holder {
            values.extend([(":holder", text(worker)), (":since", time(*since))]);
        }
        let update = if holder.is_some() { &LEND } else { &PUT_OFF };
        let request = self.update(tasks_scope(&seen.job_type, &seen.message.owner), seen.id());
        match update.apply(request, values).await {
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn remove(&self, seen: &Task) -> Result<(), PortError> {
        let key = (tasks_scope(&seen.job_type, &seen.message.owner), seen.id().to_string());
        self.delete("removing a task", key, ("dueAt", "#attribute = :value"), time(seen.due_at)).await
    }

    async fn note_ask(&self, job_type: &str, now: Timestamp) -> Result<(), PortError> {
        let values = [(":at", time(now)), (":expires", expires(now))];
        NOTE_ASK.apply(self.update(asks_scope(job_type), ONLY), values).await.map(drop)
    }

    async fn last_ask(&self, job_type: &str) -> Result<Option<Timestamp>, PortError> {
        let key = (asks_scope(job_type), ONLY.to_owned());
        self.row("reading who asks for tasks", key, |row| time_of(row, "at")).await
    }
}
