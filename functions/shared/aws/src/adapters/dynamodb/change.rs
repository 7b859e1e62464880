//! The records of a table's stream: each change of a row, with the row before and after.

use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::ports::PortError;
use serde::Deserialize;
use serde_dynamo::{AttributeValue, Item};

use super::job_store::job_row::{JOB_ROW, job_of_image};

const DOING: &str = "reading a change of the jobs table";

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct RowChange {
    dynamodb: Images,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Images {
    sequence_number: String,
    keys: Item,
    #[serde(default)]
    old_image: Option<Item>,
    #[serde(default)]
    new_image: Option<Item>,
}

/// A job before and after a change of its row.
#[derive(Clone, PartialEq, Debug)]
pub struct JobChange {
    /// The job before; none if it was created.
    pub before: Option<Job>,
    pub after: Job,
}

impl RowChange {
    /// Its position in the stream. After a failure the stream is read again from there.
    pub fn sequence_number(&self) -> &str {
        &self.dynamodb.sequence_number
    }

    /// The job whose row it is. None if the key names no job.
    pub fn job_guid(&self) -> Option<JobGuid> {
        match self.dynamodb.keys.get("jobId") {
            Some(AttributeValue::S(job)) => job.parse().ok(),
            _ => None,
        }
    }

    /// The change of a job. None if it changes another row, or deletes the job row.
    pub fn job(self) -> Result<Option<JobChange>, PortError> {
        let Images { keys, old_image, new_image, .. } = self.dynamodb;
        let is_job = matches!(keys.get("row"), Some(AttributeValue::S(row)) if row == JOB_ROW);
        let Some(after) = new_image.filter(|_| is_job) else { return Ok(None) };
        let before = old_image.map(|image| job_of_image(DOING, image)).transpose()?;
        Ok(Some(JobChange { before, after: job_of_image(DOING, after)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::model::job::states::Status;
    use serde_json::{Value, json};

    fn image(status: &str) -> Value {
        let mut image = json!({
            "jobId": {"S": "01890a5d-ac96-774b-bcce-b302099a8057"}, "row": {"S": "job"}, "owner": {"S": "me"},
            "jobType": {"S": "import"}, "fileGuid": {"S": "00000000-0000-4000-8000-000000000001"},
            "dataBytes": {"N": "18446744073709551615"}, "status": {"S": status}, "attempt": {"N": "1"},
            "tallies": {"N": "0"}, "dispatched": {"N": "0"}, "cursorOffset": {"N": "0"}, "cursorRow": {"N": "1"},
            "splitDone": {"BOOL": false}, "completions": {"N": "0"}, "createdAt": {"N": "1750000000000"},
            "movedAt": {"N": "1750000000123"}, "revision": {"N": "3"}, "deadlineAt": {"N": "1750000999000"},
        });
        if status == "running" {
            image["startedAt"] = json!({"N": "1750000000123"});
        }
        image
    }

    fn change(row: &str, old: Option<Value>, new: Option<Value>) -> RowChange {
        let keys = json!({"jobId": {"S": "01890a5d-ac96-774b-bcce-b302099a8057"}, "row": {"S": row}});
        let mut images = json!({
            "ApproximateCreationDateTime": 1_750_000_000, "Keys": keys, "SequenceNumber": "4421584500000000017450439091",
            "SizeBytes": 26, "StreamViewType": "NEW_AND_OLD_IMAGES",
        });
        for (name, image) in [("OldImage", old), ("NewImage", new)] {
            if let Some(image) = image {
                images[name] = image;
            }
        }
        let record = json!({"eventID": "1", "eventName": "MODIFY", "eventSource": "aws:dynamodb", "dynamodb": images});
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn a_change_has_the_job_before_and_after_it() {
        let change = change("job", Some(image("waiting")), Some(image("running")));
        assert_eq!(change.sequence_number(), "4421584500000000017450439091");
        assert_eq!(change.job_guid().unwrap().to_string(), "01890a5d-ac96-774b-bcce-b302099a8057");
        let JobChange { before, after } = change.job().unwrap().unwrap();
        assert_eq!((before.unwrap().status(), after.status()), (Status::Waiting, Status::Running));
        assert_eq!((after.data_bytes, after.moved_at.as_millisecond()), (u64::MAX, 1_750_000_000_123));
    }

    #[test]
    fn changes_of_other_rows_and_deletions_are_ignored() {
        assert_eq!(change("tally#1#0", None, Some(json!({"done": {"N": "1"}}))).job().unwrap(), None);
        assert_eq!(change("job", Some(image("completed")), None).job().unwrap(), None);
        assert_eq!(change("job", None, Some(image("waiting"))).job().unwrap().unwrap().before, None);
    }

    #[test]
    fn a_row_that_is_not_a_job_is_invalid() {
        let read = change("job", Some(image("waiting")), Some(image("unheard-of"))).job();
        assert!(matches!(read, Err(PortError::Invalid { .. })), "{read:?}");
    }
}
