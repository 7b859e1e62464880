//! The expected cost and duration of a job. Nothing is created.
//!
//! It is part of this function for the same reason as the preview: it must detect the same source and find the same
//! refusals as a new job. The input is counted where all of it is at hand, and else judged by its beginning.

mod model;

use rowmill_api::cost::JobCost;
use rowmill_api::estimate::EstimateView;
use rowmill_core::model::files::{FileList, ListedFile, files_of};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::packing::Packing;
use rowmill_core::model::spec::{Source, Spec};
use rowmill_core::ports::PortError;
use rowmill_core::text::{ChunkCutter, Position};
use rowmill_formats::{FirstText, OpenError, decode_prefix, open};

use crate::create::{Creator, Specified};
use crate::error::CreateJobError;
use crate::estimate::model::{Size, Workers};
use crate::request::{CreateJobRequest, check, check_dedupe};
use crate::source::{self, DetectedSource, detected};

/// The most text of a packed file that is decoded to find out how much text there is, in bytes.
const DECODED_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Number of files of a job over many that are looked at. Each may take seconds to unpack.
const FILES_SEEN: usize = 4;

impl Creator {
    /// The expected cost and duration of a job of this request. `None` if its file is not uploaded yet: then the rest
    /// of the request is checked.
    ///
    /// # Errors
    /// See [`CreateJobError`]: those of the job, except that limits of active jobs do not matter.
    pub async fn estimate(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
    ) -> Result<Option<EstimateView>, CreateJobError> {
        check(request, &self.limits)?;
        let job_type = &**self.job_type(request)?;
        self.priority(owner, request)?;
        self.check_results_to(owner, request)?;
        let now = self.clock.now();
        let job_guid = self.entropy.job_guid(now);
        let has_input = request.file_guid.is_some() || request.source.is_some() || request.items.is_some();
        if job_type.input().takes_files() && !has_input {
            let detected = source::file_to_come(request)?;
            self.specified_over(detected, owner, request, job_type, job_guid, now).await?;
            return Ok(None);
        }
        check_dedupe(request)?;
        let specified = self.specified(owner, request, job_type, job_guid, now).await?;
        self.estimate_of(request, &specified).await.map(Some)
    }

    async fn estimate_of(
        &self,
        request: &CreateJobRequest,
        Specified { spec, texts, .. }: &Specified,
    ) -> Result<EstimateView, CreateJobError> {
        let Some(size) = self.size(spec, &texts.first).await? else {
            return Ok(EstimateView {
                items: None,
                items_final: false,
                chunks: None,
                cost: None,
                seconds_at_least: None,
            });
        };
        let chunks_per_invocation = u64::from(self.limits.chunks_per_invocation);
        let at_once = u64::from(self.limits.workers).saturating_mul(chunks_per_invocation);
        let workers = Workers {
            at_once: request.max_concurrency.map_or(at_once, |width| at_once.min(width.into())),
            chunks_per_invocation,
            has_window: request.max_concurrency.is_some(),
        };
        let estimate = model::of(spec, size, workers);
        Ok(EstimateView {
            items: Some(size.items),
            items_final: size.is_final,
            chunks: Some(estimate.chunks),
            cost: Some(JobCost::of(&estimate.usage)),
            seconds_at_least: Some(estimate.seconds_at_least),
        })
    }

    /// The size of the input, if its beginning tells.
    async fn size(&self, spec: &Spec, first: &FirstText) -> Result<Option<Size>, CreateJobError> {
        match &spec.source {
            Source::Files(list) => self.size_of_files(spec, list, &first.bytes).await,
            _ => self.size_of_file(spec, first).await,
        }
    }

    /// The size of these files, judged by some of them that lie evenly in their list.
    async fn size_of_files(&self, spec: &Spec, list: &FileList, text: &[u8]) -> Result<Option<Size>, CreateJobError> {
        let every = usize::try_from(list.files).unwrap_or(usize::MAX).div_ceil(FILES_SEEN).max(1);
        let (mut seen, mut stored) = (Size { items: 0, bytes: 0, files: list.files, is_final: every == 1 }, 0_u64);
        for file in files_of(text).step_by(every) {
            let file = file.map_err(|error| PortError::invalid("reading a list of files", error))?;
            let size = match self.open_listed(spec, &file).await {
                Ok((spec, first)) => self.size_of_file(&spec, &first).await?,
                Err(OpenError::Port(error)) => return Err(error.into()),
                // It is one item, which fails.
                Err(_) => Some(Size { items: 1, bytes: 0, files: 1, is_final: true }),
            };
            let Some(size) = size else { return Ok(None) };
            stored += file.size;
            seen.items += size.items;
            seen.bytes += size.bytes;
            seen.is_final &= size.is_final;
        }
        let of_all = |seen: u64| {
            let all = u128::from(seen) * u128::from(list.bytes) / u128::from(stored.max(1));
            u64::try_from(all).unwrap_or(u64::MAX)
        };
        Ok(Some(match every {
            1 => seen,
            _ => Size { items: of_all(seen.items).max(list.files), bytes: of_all(seen.bytes), ..seen },
        }))
    }

    /// The spec of a job over this file alone, and the beginning of its text.
    async fn open_listed(&self, spec: &Spec, file: &ListedFile) -> Result<(Spec, FirstText), OpenError> {
        let content_type = file.content_type.as_deref().unwrap_or_default();
        let (object, named) = (file.object(), (content_type, Some(&*file.name)));
        let opened = open(&self.objects, &object, named, &spec.params, self.limits.header_max_bytes).await?;
        let DetectedSource { source, head, first, .. } = detected(object, opened);
        Ok((Spec { source, head, ..spec.clone() }, first))
    }

    /// The size of one file.
    async fn size_of_file(&self, spec: &Spec, first: &FirstText) -> Result<Option<Size>, CreateJobError> {
        let text_bytes = match &spec.source {
            _ if first.whole => first.bytes.len() as u64,
            Source::File(file) => file.size,
            Source::Packed { file, packing: Packing::Text(text) } => {
                let length = self.limits.header_max_bytes.min(file.size);
                let prefix = self.objects.read_range(&file.key, &file.etag, 0..length).await?;
                let (text, _) = decode_prefix(*text, &prefix, false, DECODED_MAX_BYTES)?;
                let bytes = u128::from(file.size) * text.len() as u128 / u128::from(length.max(1));
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
            Source::Packed { .. } | Source::Dataset { .. } | Source::Files(_) | Source::Awaited(_) => return Ok(None),
        };
        Ok(size_of(spec, first, text_bytes))
    }
}

/// The size of a text of so many bytes that begins like this. None if not even one record ends in it.
fn size_of(spec: &Spec, first: &FirstText, text_bytes: u64) -> Option<Size> {
    let start = Position { offset: spec.head.data_start, row: 1 };
    let data = usize::try_from(start.offset).ok().and_then(|start| first.bytes.get(start..)).unwrap_or_default();
    let mut cutter = ChunkCutter::new(&spec.head.dialect, spec.limits, start);
    let mut chunks = Vec::new();
    cutter.push(data, &mut chunks);
    // A quote that is never closed is found by the job.
    cutter.finish(&mut chunks).ok();
    let mut seen: u64 = chunks.iter().map(|chunk| u64::from(chunk.items)).sum();
    if first.whole {
        return Some(Size { items: seen, bytes: data.len() as u64, files: 1, is_final: true });
    }
    // The last record goes on behind this text.
    let (mut bytes, last_line) = (data.len(), data.iter().rposition(|byte| *byte == b'\n'));
    if let Some(end) = last_line.filter(|end| end + 1 < data.len()) {
        (seen, bytes) = (seen.saturating_sub(1), end + 1);
    }
    let all = text_bytes.saturating_sub(start.offset);
    let items = u128::from(seen) * u128::from(all) / (bytes as u128).max(1);
    let items = u64::try_from(items).unwrap_or(u64::MAX);
    Some(Size { items, bytes: all, files: 1, is_final: false }).filter(|_| seen > 0)
}
