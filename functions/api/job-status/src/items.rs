//! The items of a job with an outcome, in row order, a page at a time.

use std::sync::Arc;

use rowmill_api::item::{FilePage, ItemTable, SkippedItem, SucceededItem};
use rowmill_core::items::failed::FailedItems;
use rowmill_core::items::files::{FilesAt, JobFiles, NextFile};
use rowmill_core::items::outputs::{Found, Outputs};
use rowmill_core::items::skipped::SkippedItems;
use rowmill_core::items::stored_job::StoredJob;
use rowmill_core::model::causes::CauseName;
use rowmill_core::model::job::Job;
use rowmill_core::model::results::failed_rows_columns;
use rowmill_core::model::run_output::{FailedItem, ItemOutput};
use rowmill_core::model::spec::Source;
use rowmill_core::ports::{JobStore, Objects, PortError};
use rowmill_core::text::Format;
use serde::Serialize;

/// The longest page, in bytes of its JSON. A Lambda response has at most 6 MB. It holds this JSON as a string, in which
/// each quote is escaped again.
const PAGE_MAX_BYTES: usize = 2_500_000;

/// About how many objects are read for a page, so that the answer comes soon even if they hold few items.
const OBJECTS_READ: usize = 200;

/// About how many steps through the outputs are taken for a page. Each reads a few objects, of up to 8 MiB each. It takes
/// more, if the first of them bring the page no further.
const OUTPUT_STEPS: usize = 50;

/// The use case and the ports it works through.
pub struct ItemPages {
    pub jobs: Arc<dyn JobStore>,
    /// The objects with the failed items.
    pub objects: Arc<dyn Objects>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemsPage<T> {
    /// The items in row order.
    pub items: Vec<T>,
    /// The row after which the next page begins. `None` if there are no more items so far.
    pub next: Option<u64>,
}

impl ItemPages {
    /// The failed items of this filter after row `after`, at most `limit` of them.
    pub async fn failed(
        &self,
        job: &Job,
        filter: &CauseFilter,
        after: u64,
        limit: usize,
    ) -> Result<ItemsPage<FailedItem>, PortError> {
        let mut page = Page::new(limit);
        let mut walk = FailedItems::of(self.stored(job), after).await?;
        while let Some(items) = walk.next().await? {
            for item in items.into_iter().filter(|item| filter.has(item)) {
                if !page.takes(item, |item| (item.raw, item.raw_base64) = (None, None))? {
                    let next = page.items.last().map_or(after, |last| last.row);
                    return Ok(ItemsPage { items: page.items, next: Some(next) });
                }
            }
            if walk.objects_read() >= OBJECTS_READ {
                return Ok(ItemsPage { items: page.items, next: Some(walk.after()) });
            }
        }
        Ok(ItemsPage { items: page.items, next: None })
    }

    /// The succeeded items after row `after` that have an output, at most `limit` of them. `None` if items of this job
    /// have none.
    pub async fn succeeded(
        &self,
        job: &Job,
        after: u64,
        limit: usize,
    ) -> Result<Option<ItemsPage<SucceededItem>>, PortError> {
        if self.jobs.spec(job.job_guid).await?.output.is_none() {
            return Ok(None);
        }
        let mut page = Page::new(limit);
        let mut walk = Outputs::of(self.stored(job), after).await?;
        let mut steps = 0;
        let next = loop {
            match walk.next().await? {
                Found::End => break None,
                Found::Nothing if steps >= OUTPUT_STEPS && walk.after() > after => break Some(walk.after()),
                Found::Nothing => steps += 1,
                Found::Output(ItemOutput { row, output }) => {
                    let item = SucceededItem::of(row, output);
                    if !page.takes(item, |item| item.output = None)? {
                        break Some(page.items.last().map_or(after, |last| last.row));
                    }
                }
            }
        };
        Ok(Some(ItemsPage { items: page.items, next }))
    }

    /// The skipped items after row `after`, at most `limit` of them.
    pub async fn skipped(&self, job: &Job, after: u64, limit: usize) -> Result<ItemsPage<SkippedItem>, PortError> {
        let mut walk = SkippedItems::of(self.stored(job), after).await?;
        let mut rows = Vec::new();
        while rows.len() <= limit
            && let Some(chunk) = walk.next().await?
        {
            let place = |row| chunk.part.as_ref().and_then(|part| part.place(row));
            rows.extend(chunk.rows.take(limit + 1 - rows.len()).map(|row| SkippedItem::of(row, place(row))));
        }
        let is_last = rows.len() <= limit;
        rows.truncate(limit);
        let next = rows.last().map(|item| item.row).filter(|_| !is_last);
        Ok(ItemsPage { items: rows, next })
    }

    /// The files of the job from this place on, at most `limit` of them. A job over one file has none.
    pub async fn files(&self, job: &Job, at: FilesAt, limit: usize) -> Result<FilePage, PortError> {
        let mut files = Vec::new();
        let spec = self.jobs.spec(job.job_guid).await?;
        let Source::Files(list) = &spec.source else { return Ok(FilePage { files, next: None }) };
        let mut walk = JobFiles::of(self.stored(job), list, at).await?;
        while files.len() < limit {
            match walk.next(|walk| walk.objects_read() < OBJECTS_READ).await? {
                NextFile::File(file) => files.push(file),
                NextFile::Suspended => break,
                NextFile::End => return Ok(FilePage { files, next: None }),
            }
        }
        let has_more = walk.at().file.number < list.files;
        Ok(FilePage { files, next: has_more.then(|| walk.at().to_string()) })
    }

    /// The format of the text of the job's items. `None` if it reads a dataset.
    pub async fn table(&self, job: &Job) -> Result<Option<ItemTable>, PortError> {
        let spec = self.jobs.spec(job.job_guid).await?;
        if matches!(spec.source, Source::Dataset { .. }) {
            return Ok(None);
        }
        if matches!(spec.source, Source::Files(_)) {
            return Ok(Some(ItemTable {
                format: "text".to_owned(),
                delimiter: None,
                columns: Vec::new(),
                corrected_header: Vec::new(),
            }));
        }
        let (head, own) = (&spec.head, spec.head.own_header());
        Ok(Some(match head.dialect.format {
            Format::Csv => ItemTable {
                format: "csv".to_owned(),
                delimiter: Some(char::from(head.dialect.delimiter).to_string()),
                columns: head.columns.clone(),
                corrected_header: own.iter().chain(failed_rows_columns(own).first()).cloned().collect(),
            },
            Format::Jsonl => ItemTable {
                format: "jsonl".to_owned(),
                delimiter: None,
                columns: Vec::new(),
                corrected_header: Vec::new(),
            },
        }))
    }

    const fn stored<'a>(&'a self, job: &'a Job) -> StoredJob<'a> {
        StoredJob { jobs: &self.jobs, objects: &self.objects, job }
    }
}

/// Narrows failed items by their cause. An empty text stands for none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CauseFilter {
    pub code: Option<String>,
    /// The name of the column, whole or as a cause has it.
    pub column: Option<String>,
    pub rule: Option<String>,
}

impl CauseFilter {
    fn has(&self, item: &FailedItem) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let CauseName { code, column, rule } = CauseName::of(item);
        let whole = item.column.as_deref().unwrap_or_default();
        is(&self.code, &code)
            && (is(&self.column, whole) || is(&self.column, &column.unwrap_or_default()))
            && is(&self.rule, &rule.unwrap_or_default())
    }
}

struct Page<T> {
    items: Vec<T>,
    limit: usize,
    bytes_left: usize,
}

impl<T: Serialize> Page<T> {
    const fn new(limit: usize) -> Self {
        Self { items: Vec::new(), limit, bytes_left: PAGE_MAX_BYTES }
    }

    /// Adds an item, unless the page is full. An item that no page can hold is shown without its text.
    fn takes(&mut self, mut item: T, without_text: impl FnOnce(&mut T)) -> Result<bool, PortError> {
        let size = |item: &T| {
            let json = serde_json::to_vec(item);
            json.map(|json| json.len()).map_err(|error| PortError::invalid("showing an item", error))
        };
        let mut bytes = size(&item)?;
        if bytes > PAGE_MAX_BYTES {
            without_text(&mut item);
            bytes = size(&item)?;
        }
        if self.items.len() == self.limit || bytes > self.bytes_left {
            return Ok(false);
        }
        self.bytes_left -= bytes;
        self.items.push(item);
        Ok(true)
    }
}
