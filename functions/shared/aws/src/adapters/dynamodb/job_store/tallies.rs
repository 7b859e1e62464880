use std::ops::Range;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::{Commit, Committed, Counts, Tally, Totals};
use rowmill_core::ports::{CommitAnswer, PortError, Tallies};

use super::DynamoDbJobStore;
use super::tally_row::{details_expiry, mark_name, tally_item, tally_key, tally_of, totals_key, totals_of};
use super::usage_row::{add_usage, usage_values};
use crate::adapters::dynamodb::attributes::{binary, number, text, time};
use crate::adapters::dynamodb::errors::port_error;
use crate::adapters::dynamodb::write::{Update, Written, put_if_absent};
use crate::observe::metrics::{self, Metric};

const CLOSE: Update = Update {
    doing: "closing a tally",
    change: "SET #done = #expected, #at = :at ADD #skipped :rest",
    condition: "attribute_exists(#expected) AND #done = :done",
};

const TOUCH: Update =
    Update { doing: "touching a tally", change: concat!("SET #at = :at ADD ", add_usage!()), condition: "#at < :at" };

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

    async fn commit(&self, job: JobGuid, commits: &[Commit]) -> Result<CommitAnswer, PortError> {
        const DOING: &str = "committing chunks";
        let (attempt, number) =
            Commit::tally_of(commits).ok_or_else(|| PortError::invalid(DOING, Commit::NOT_OF_ONE_TALLY))?;
        let (change, condition) = commit_expressions(commits);
        let update = Update { doing: DOING, change: &change, condition: &condition };
        let share = self.share(Usage::of_row_writes(1));
        let values = commit_values(commits, share);
        match update.apply(self.update_row(job, &tally_key(attempt, number)), values).await? {
            Written::Applied(item) => {
                commits.iter().for_each(measure);
                Ok(CommitAnswer::Applied(tally_of(DOING, item)?))
            }
            Written::Refused(item) => {
                let tally = tally_of(DOING, item)?;
                // Their replies were lost, and the write that was applied had this share.
                let won = |commit: &&Commit| matches!(commit.refused_by(&tally), Some(Committed::WonBefore(_)));
                let won: Vec<&Commit> = commits.iter().filter(won).collect();
                if won.is_empty() {
                    self.give_back(share, Usage::NONE);
                }
                won.into_iter().for_each(measure);
                Ok(CommitAnswer::Refused(tally))
            }
        }
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        let rest = seen.items.saturating_sub(seen.counts.sum());
        let values = [(":done", number(seen.done)), (":at", time(at)), (":rest", number(rest))];
        let request = self.update_row(job, &tally_key(seen.attempt, seen.number));
        match CLOSE.apply(request, values).await? {
            Written::Applied(item) => {
                metrics::add_any(Metric::ItemsSkipped, rest);
                tally_of(CLOSE.doing, item)
            }
            Written::Refused(item) => tally_of(CLOSE.doing, item),
        }
    }

    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError> {
        let share = self.share(Usage::of_row_writes(1));
        let values = usage_values(share).into_iter().chain([(":at", time(at))]);
        match TOUCH.apply_once(self.update_row(job, &tally_key(attempt, tally)), values).await {
            Ok(Written::Applied(_)) => Ok(()),
            // A later sign of life was first, or the tally does not exist.
            Ok(Written::Refused(_)) | Err(PortError::NotFound) => {
                self.give_back(share, Usage::NONE);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn note_next_sent(&self, job: JobGuid, attempt: u32, tally: u32) -> Result<(), PortError> {
        let row = self.update_row(job, &tally_key(attempt, tally));
        match NOTE_NEXT_SENT.apply(row, [(":true", AttributeValue::Bool(true))]).await {
            // The tally does not exist.
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        debug_assert!(tally.is_closed(), "an open tally may still move");
        // With what was used since the commit that closed it. A fold that loses does not give its share back: the row
        // does not tell whether the first one was the same request, whose reply was lost.
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

/// The update that commits chunks of one tally, and its condition. A tally that is not closed has as many chunks left
/// as marks, so `done` cannot exceed `expected`.
fn commit_expressions(commits: &[Commit]) -> (String, String) {
    let mut change = "SET #at = :at".to_owned();
    let mut condition = "attribute_exists(#expected) AND #done < #expected".to_owned();
    for mark in commits.iter().map(|commit| mark_name(commit.chunk.index)) {
        change += &format!(", #{mark} = :{mark}");
        condition += &format!(" AND attribute_not_exists(#{mark})");
    }
    change += " ADD #done :chunks, #succeeded :succeeded, #failed :failed, #skipped :skipped, #bytes :bytes, ";
    change += add_usage!();
    (change, condition)
}

fn commit_values(commits: &[Commit], share: Usage) -> Vec<(String, AttributeValue)> {
    let counts = commits.iter().fold(Counts::default(), |sum, commit| sum + commit.counts);
    let sums = [
        (":at", time(commits.iter().map(|commit| commit.at).max().unwrap_or_default())),
        (":chunks", number(commits.len() as u64)),
        (":succeeded", number(counts.succeeded)),
        (":failed", number(counts.failed)),
        (":skipped", number(counts.skipped)),
        (":bytes", number(commits.iter().map(|commit| commit.bytes).sum::<u64>())),
    ];
    let marks = commits.iter().map(|commit| {
        let name = mark_name(commit.chunk.index);
        (format!(":{name}"), binary(commit.mark.to_bytes()))
    });
    let sums = sums.into_iter().chain(usage_values(share)).map(|(name, value)| (name.to_owned(), value));
    sums.chain(marks).collect()
}

/// Counts a commit that took effect.
fn measure(Commit { counts, .. }: &Commit) {
    metrics::add(Metric::ChunksCommitted, 1);
    metrics::add_any(Metric::ItemsSucceeded, counts.succeeded);
    metrics::add_any(Metric::ItemsFailed, counts.failed);
    metrics::add_any(Metric::ItemsSkipped, counts.skipped);
}

impl DynamoDbJobStore {
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
            update.apply(self.update_row(job, &totals_key(attempt)), values).await?;
        totals_of(update.doing, attempt, item)
    }
}
