use std::ops::Range;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_api::cost::Usage;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::{CHUNKS_PER_TALLY, Commit, Counts, Tally, Totals};
use rowmill_core::ports::{Committed, PortError, Tallies};

use super::DynamoDbJobStore;
use super::tally_row::{details_expiry, mark_name, tally_item, tally_key, tally_of, totals_key, totals_of};
use super::usage_row::{add_usage, usage_values};
use crate::dynamodb::attributes::{binary, number, text, time};
use crate::dynamodb::errors::port_error;
use crate::dynamodb::write::{Update, Written, put_if_absent};
use crate::metrics::{self, Metric};

const COMMIT: Update = Update {
    doing: "committing a chunk",
    change: concat!(
        "SET #mark = :mark, #at = :at ADD #done :one, #succeeded :succeeded, #failed :failed, #skipped :skipped, \
         #bytes :bytes, ",
        add_usage!()
    ),
    condition: "attribute_exists(#expected) AND attribute_not_exists(#mark) AND #done < #expected",
};

const CLOSE: Update = Update {
    doing: "closing a tally",
    change: "SET #done = #expected, #at = :at ADD #skipped :rest",
    condition: "attribute_exists(#expected) AND #done = :done",
};

const TOUCH: Update = Update {
    doing: "touching a tally",
    change: concat!("SET #at = :at ADD ", add_usage!()),
    condition: "attribute_exists(#expected)",
};

const NOTE_NEXT_SENT: Update = Update {
    doing: "noting that a tally was sent",
    change: "SET #next = :true",
    condition: "attribute_exists(#expected)",
};

const SET_FINAL: Update = Update {
    doing: "noting the number of tallies",
    change: "SET #final = :final, #expiresAt = :expires",
    condition: "",
};

const FOLD: Update = Update {
    doing: "folding a tally",
    change: concat!(
        "SET #expiresAt = :expires, #at = :at ADD #closed :numbers, #items :items, #succeeded :succeeded, \
         #failed :failed, #skipped :skipped, #bytes :bytes, ",
        add_usage!()
    ),
    condition: "attribute_not_exists(#closed) OR NOT contains(#closed, :number)",
};

#[async_trait]
impl Tallies for DynamoDbJobStore {
    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError> {
        const DOING: &str = "putting a tally";
        let item = tally_item(DOING, job, tally)?;
        let request = self.client.put_item().table_name(&self.jobs_table).set_item(Some(item));
        match put_if_absent(DOING, request, "jobId").await? {
            true => Ok(tally.clone()),
            false => self.tally(job, tally.attempt, tally.number).await,
        }
    }

    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError> {
        const DOING: &str = "reading a tally";
        let item = self.row(DOING, job, &tally_key(attempt, number)).await?;
        tally_of(DOING, item.ok_or(PortError::NotFound)?)
    }

    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError> {
        const DOING: &str = "reading the tallies";
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let pages = self
            .client
            .query()
            .table_name(&self.jobs_table)
            .consistent_read(true)
            .key_condition_expression("#job = :job AND #row BETWEEN :first AND :last")
            .expression_attribute_names("#job", "jobId")
            .expression_attribute_names("#row", "row")
            .expression_attribute_values(":job", text(job))
            .expression_attribute_values(":first", text(tally_key(attempt, numbers.start)))
            .expression_attribute_values(":last", text(tally_key(attempt, numbers.end - 1)))
            .into_paginator();
        // Decode row by row: a decoded tally takes a fraction of the memory of its row.
        let (mut rows, mut tallies) = (pages.items().send(), Vec::new());
        while let Some(row) = rows.next().await {
            tallies.push(tally_of(DOING, row.map_err(|error| port_error(DOING, error))?)?);
        }
        Ok(tallies)
    }

    async fn commit(&self, job: JobGuid, commit: &Commit) -> Result<Committed, PortError> {
        let chunk = commit.chunk;
        let index = usize::from(chunk.index);
        if index >= CHUNKS_PER_TALLY {
            return Err(PortError::invalid(COMMIT.doing, format!("a tally has no chunk {index}")));
        }
        let share = self.share(Usage::of_row_writes(1));
        let values = [
            (":mark", binary(commit.mark.to_bytes())),
            (":at", time(commit.at)),
            (":one", number(1)),
            (":succeeded", number(commit.counts.succeeded)),
            (":failed", number(commit.counts.failed)),
            (":skipped", number(commit.counts.skipped)),
            (":bytes", number(commit.bytes)),
        ];
        let values = values.into_iter().chain(usage_values(share));
        let request = self.update(job, &tally_key(chunk.attempt, chunk.tally));
        let committed = match COMMIT.apply_to_mark(request, values, mark_name(index)).await? {
            Written::Applied(item) => Committed::Won(tally_of(COMMIT.doing, item)?),
            Written::Refused(item) => {
                let tally = tally_of(COMMIT.doing, item)?;
                // Our own mark is our own commit: its reply was lost.
                let own = tally.mark(chunk.index).is_some_and(|mark| mark.run == commit.mark.run);
                if own {
                    Committed::WonBefore(tally)
                } else {
                    self.give_back(share);
                    Committed::Lost(tally)
                }
            }
        };
        if committed.is_won() {
            measure(commit.counts);
        }
        Ok(committed)
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        let rest = seen.items.saturating_sub(seen.counts.sum());
        let values = [(":done", number(seen.done)), (":at", time(at)), (":rest", number(rest))];
        let request = self.update(job, &tally_key(seen.attempt, seen.number));
        match CLOSE.apply(request, values).await? {
            Written::Applied(item) => {
                metrics::add_any(Metric::ItemsSkipped, rest);
                tally_of(CLOSE.doing, item)
            }
            Written::Refused(item) => tally_of(CLOSE.doing, item),
        }
    }

    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError> {
        let values = usage_values(self.share(Usage::of_row_writes(1))).into_iter().chain([(":at", time(at))]);
        self.note_on_tally(job, attempt, tally, &TOUCH, values).await
    }

    async fn note_next_sent(&self, job: JobGuid, attempt: u32, tally: u32) -> Result<(), PortError> {
        self.note_on_tally(job, attempt, tally, &NOTE_NEXT_SENT, [(":true", AttributeValue::Bool(true))]).await
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        debug_assert!(tally.is_closed(), "an open tally may still move");
        // What was used since the commit that closed it, too.
        let usage = tally.usage + self.share(Usage::of_row_writes(1));
        let mut values = vec![
            (":at", time(tally.at)),
            (":number", number(tally.number)),
            (":numbers", AttributeValue::Ns(vec![tally.number.to_string()])),
            (":items", number(tally.items)),
            (":succeeded", number(tally.counts.succeeded)),
            (":failed", number(tally.counts.failed)),
            (":skipped", number(tally.counts.skipped)),
            (":bytes", number(tally.bytes)),
        ];
        values.extend(usage_values(usage));
        self.move_totals(job, tally.attempt, &FOLD, values).await
    }

    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
        const DOING: &str = "reading the totals";
        let item = self.row(DOING, job, &totals_key(attempt)).await?;
        totals_of(DOING, attempt, item.unwrap_or_default())
    }

    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError> {
        self.move_totals(job, attempt, &SET_FINAL, vec![(":final", number(tallies))]).await
    }
}

/// Counts a commit that took effect.
fn measure(counts: Counts) {
    metrics::add(Metric::ChunksCommitted, 1);
    metrics::add_any(Metric::ItemsSucceeded, counts.succeeded);
    metrics::add_any(Metric::ItemsFailed, counts.failed);
    metrics::add_any(Metric::ItemsSkipped, counts.skipped);
}

impl DynamoDbJobStore {
    /// Sets values on a tally, if the tally exists.
    async fn note_on_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        tally: u32,
        note: &Update<'_>,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)> + Send,
    ) -> Result<(), PortError> {
        match note.apply(self.update(job, &tally_key(attempt, tally)), values).await {
            // The tally does not exist.
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Updates the totals of an attempt. The first update creates their row.
    async fn move_totals(
        &self,
        job: JobGuid,
        attempt: u32,
        update: &Update<'_>,
        mut values: Vec<(&'static str, AttributeValue)>,
    ) -> Result<Totals, PortError> {
        values.push((":expires", number(details_expiry(job))));
        let (Written::Applied(item) | Written::Refused(item)) =
            update.apply(self.update(job, &totals_key(attempt)), values).await?;
        totals_of(update.doing, attempt, item)
    }
}
