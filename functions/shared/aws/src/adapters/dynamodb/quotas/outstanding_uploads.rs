use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::outstanding::{OUTSTANDING_FOR, OutstandingLimits, OutstandingUpload};
use rowmill_core::ports::{OutstandingError, OutstandingUploads, PortError};
use uuid::Uuid;

use super::{DynamoDbQuotas, below};
use crate::adapters::dynamodb::attributes::{Item, expiry_seconds, from_millis, number, time};
use crate::adapters::dynamodb::write::{Update, Written};

const ADDING: &str = "adding the outstanding upload";

/// Maximum number of expired uploads one write drops. An expression has at most 4 KB.
const DROPPED_AT_ONCE: usize = 50;

/// Maximum number of tries to add an upload. Each further try follows a write that dropped uploads.
const TRIES: usize = 100;

fn scope(owner: &Owner) -> String {
    format!("uploads#{owner}")
}

/// The attribute of an upload.
fn name_of(file_guid: FileGuid) -> String {
    format!("u{}", file_guid.0.simple())
}

fn uploads_in(row: &Item) -> Vec<OutstandingUpload> {
    let upload = |(name, value): (&String, &AttributeValue)| {
        let guid = name.strip_prefix('u').filter(|digits| digits.len() == 32)?;
        let entry = value.as_m().ok()?;
        let field = |name| entry.get(name)?.as_n().ok();
        Some(OutstandingUpload {
            file_guid: FileGuid(Uuid::try_parse(guid).ok()?),
            bytes: field("bytes")?.parse().ok()?,
            until: from_millis(field("until")?.parse().ok()?).ok()?,
        })
    };
    row.iter().filter_map(upload).collect()
}

#[async_trait]
impl OutstandingUploads for DynamoDbQuotas {
    async fn add(
        &self,
        owner: &Owner,
        upload: &OutstandingUpload,
        limits: OutstandingLimits,
        now: Timestamp,
    ) -> Result<(), OutstandingError> {
        for _ in 0..TRIES {
            let row = match self.add_once(owner, upload, limits).await {
                Ok(Written::Applied(_)) => return Ok(()),
                Ok(Written::Refused(row)) => row,
                // There is no row, and the upload does not fit all the same.
                Err(PortError::NotFound) => Item::new(),
                Err(error) => return Err(error.into()),
            };
            // Our own write: its reply was lost.
            if row.contains_key(&name_of(upload.file_guid)) {
                return Ok(());
            }
            let (open, over): (Vec<_>, Vec<_>) = uploads_in(&row).into_iter().partition(|there| there.until > now);
            if over.is_empty() {
                return Err(OutstandingError::Full(limits.refusal(&open, upload.bytes, now)));
            }
            self.drop_over(owner, &over[..over.len().min(DROPPED_AT_ONCE)]).await?;
        }
        Err(PortError::unavailable(ADDING, "other requests of the owner change its uploads all the time").into())
    }

    async fn remove(&self, owner: &Owner, file_guid: FileGuid) -> Result<(), PortError> {
        let name = name_of(file_guid);
        let change = format!("SET #bytes = #bytes - #{name}.#bytes, #uploads = #uploads - :one REMOVE #{name}");
        let condition = format!("attribute_exists(#{name})");
        let update = Update { doing: "removing the outstanding upload", change: &change, condition: &condition };
        match update.apply(self.update(&scope(owner)), [(":one", number(1))]).await {
            // Not there: it was removed, dropped or never added.
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl DynamoDbQuotas {
    /// The sums and the uploads change by the same write, so they always agree.
    async fn add_once(
        &self,
        owner: &Owner,
        upload: &OutstandingUpload,
        limits: OutstandingLimits,
    ) -> Result<Written, PortError> {
        let name = name_of(upload.file_guid);
        let never = !limits.fits(0, 0, upload.bytes);
        let change = format!("SET #{name} = :upload, #expiresAt = :expires ADD #uploads :one, #bytes :further");
        // `bytes` is there if `uploads` is.
        let room = match never {
            true => "#uploads < :zero".to_owned(),
            false => {
                format!("{} AND (attribute_not_exists(#bytes) OR #bytes <= :room)", below("#uploads", ":most", false))
            }
        };
        let condition = format!("attribute_not_exists(#{name}) AND {room}");
        let entry = [("bytes".to_owned(), number(upload.bytes)), ("until".to_owned(), time(upload.until))];
        // Every upload counts at most so long, so all of the row is over when it is deleted.
        let expires = expiry_seconds(upload.until + OUTSTANDING_FOR);
        let mut values = vec![
            (":upload", AttributeValue::M(Item::from(entry))),
            (":expires", number(expires)),
            (":one", number(1)),
            (":further", number(upload.bytes)),
        ];
        if never {
            values.push((":zero", number(0)));
        } else {
            values.push((":most", number(limits.uploads)));
            values.push((":room", number(limits.bytes.saturating_sub(upload.bytes))));
        }
        let update = Update { doing: ADDING, change: &change, condition: &condition };
        update.apply(self.update(&scope(owner)), values).await
    }

    /// Drops uploads that no longer count. If one of them is gone, another request has dropped it, and nothing changes.
    async fn drop_over(&self, owner: &Owner, over: &[OutstandingUpload]) -> Result<(), PortError> {
        let names: Vec<String> = over.iter().map(|upload| format!("#{}", name_of(upload.file_guid))).collect();
        let change = format!("REMOVE {} ADD #uploads :less, #bytes :shorter", names.join(", "));
        let there: Vec<String> = names.iter().map(|name| format!("attribute_exists({name})")).collect();
        let condition = there.join(" AND ");
        let bytes: i128 = over.iter().map(|upload| i128::from(upload.bytes)).sum();
        let less = -i128::try_from(over.len()).unwrap_or_default();
        let values = [(":less", number(less)), (":shorter", number(-bytes))];
        let doing = "dropping uploads that no longer count";
        let update = Update { doing, change: &change, condition: &condition };
        match update.apply(self.update(&scope(owner)), values).await {
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
