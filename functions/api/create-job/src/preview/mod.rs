//! Shows the beginning of an upload as a job would read it.
//!
//! It is part of this function, because it must find the very dialect, columns and refusals that a new job would find:
//! the same detection, the same register of job types, the same settings. A function of its own would parse the same
//! hostile bytes with the same libraries, memory and time, so it would protect nothing, and a deployment with its own
//! job types would have to build it too. What it reads is bounded by the budget of a new job
//! ([`Limits::of_beginning`](rowmill_formats::Limits::of_beginning)), which it may spend twice: for the head, and for
//! rows that lie behind the bytes of the head.

mod rows;
mod shown;

use rowmill_api::job::JobWarning;
use rowmill_api::preview::{FileFormat, FilePacking, ParamsProblem, PreviewView};
use rowmill_api::request::PreviewRequest;
use rowmill_core::items::input::charset_hint;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::packing::{Compression, Packing, TextPacking};
use rowmill_core::model::spec::Source;
use rowmill_core::model::warnings;
use rowmill_core::ports::processor::{InputKind, ItemOutcome};
use rowmill_core::text::{Format, Head};
use rowmill_formats::FirstText;

use crate::create::Creator;
use crate::error::CreateJobError;
use crate::params::{FILE_PARAMS, unknown_param};
use crate::preview::rows::Reading;
use crate::preview::shown::Shown;
use crate::request::{CreateJobRequest, InvalidField, check};
use crate::source::DetectedSource;

const ROWS_DEFAULT: u32 = 20;

/// Maximum number of rows shown.
const ROWS_MAX: u32 = 100;

/// Number of bytes of text that are read for the rows: more than the longest record of the default limits.
const TEXT_MAX_BYTES: usize = 2 * 1024 * 1024;

impl Creator {
    /// The beginning of the owner's upload, read with the params of this request.
    ///
    /// # Errors
    /// See [`CreateJobError`]: those of a job over this upload, except that limits of active jobs do not matter. A
    /// refusal of the params by the job type itself is no error but a part of the view: the client may still be
    /// choosing them.
    pub async fn preview(
        &self,
        owner: &Owner,
        file_guid: FileGuid,
        request: &PreviewRequest,
    ) -> Result<PreviewView, CreateJobError> {
        let rows = request.rows.unwrap_or(ROWS_DEFAULT);
        if !(1..=ROWS_MAX).contains(&rows) {
            return Err(InvalidField::new("rows", format!("must be from 1 to {ROWS_MAX}.")).into());
        }
        let job = CreateJobRequest {
            job_type: request.job_type.clone().unwrap_or_default(),
            file_guid: Some(file_guid),
            params: request.params.clone(),
            ..CreateJobRequest::default()
        };
        check(&job, &self.limits)?;
        let job_type = match &request.job_type {
            Some(_) => Some(self.job_type(&job)?),
            None => None,
        };
        match job_type {
            Some(job_type) if job_type.input() != InputKind::File => {
                let message = format!("is `{}`, which reads no rows of a file.", job.job_type);
                return Err(InvalidField::new("jobType", message).into());
            }
            Some(_) => {}
            None => check_file_params(&job)?,
        }
        let now = self.clock.now();
        let detector = self.detector(now);
        let (member, detected) = match detector.file(owner, &job).await? {
            DetectedSource { source: Source::Awaited(_), .. } => {
                let (name, detected) = detector.first_member(owner, file_guid, &job).await?;
                (Some(name), detected)
            }
            detected => (None, detected),
        };
        let DetectedSource { source, head, warnings: found, mut first, params, .. } = detected;
        let rows = rows as usize;
        let mut shown = self.reading(&first, &source, &head).first_rows(rows);
        if shown.needs_more(rows) && !first.whole {
            first = detector.text(&source, TEXT_MAX_BYTES).await?;
            shown = self.reading(&first, &source, &head).first_rows(rows);
        }
        let mut warned = warnings::of_columns(&head);
        warnings::add(&mut warned, found);
        let (format, packing, delimiter, encoding) = format_of(&source, &head);
        let header_row = (head.dialect.format == Format::Csv).then(|| params.header_number());
        let mut params_problem = None;
        if let Some(job_type) = job_type {
            let spec = self.spec(self.entropy.job_guid(now), owner, &job, source, head, now);
            match job_type.prepare(&spec) {
                Err(refused) => {
                    params_problem = Some(ParamsProblem { detail: refused.to_string(), field: refused.field });
                }
                // A type with an effect outside says nothing, as in a dry run.
                Ok(processor) => {
                    let items = self.reading(&first, &spec.source, &spec.head).items(rows, spec.job_guid);
                    let writes = processor.output().is_some();
                    for (item, result) in items.iter().zip(processor.dry_run_batch(&items).await) {
                        let result = result.map(|outcome| if writes { outcome } else { ItemOutcome::Succeeded });
                        shown.add_result(item.row, result);
                    }
                }
            }
        }
        let Shown { mut columns, column_count, rows, complete, .. } = shown;
        if header_row.is_none() {
            columns.sort_by(|one, other| one.name.cmp(&other.name));
        }
        Ok(PreviewView {
            member,
            format: format.into(),
            packing: packing.map(Into::into),
            delimiter,
            encoding,
            header_row,
            columns,
            column_count,
            rows,
            complete,
            warnings: warned.iter().map(JobWarning::from).collect(),
            params_problem,
        })
    }

    fn reading<'a>(&self, text: &'a FirstText, source: &Source, head: &'a Head) -> Reading<'a> {
        Reading { text, head, hint: charset_hint(source), limits: self.limits.chunks }
    }
}

/// Rejects params that do not say how the file is read.
fn check_file_params(request: &CreateJobRequest) -> Result<(), CreateJobError> {
    match request.params.keys().find(|name| !FILE_PARAMS.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let of_what = "about the file. Send a `jobType` with its params, or only";
            Err(unknown_param(name, of_what, &FILE_PARAMS).into())
        }
    }
}

/// The format of the file for a client: its format, compression, delimiter and charset.
fn format_of(source: &Source, head: &Head) -> (FileFormat, Option<FilePacking>, Option<String>, Option<String>) {
    let packing = match source {
        Source::Packed { packing, .. } => Some(packing),
        Source::File(_) | Source::Files(_) | Source::Dataset { .. } | Source::Awaited(_) => None,
    };
    let text = match packing {
        Some(Packing::Xlsx { .. }) => return (FileFormat::Xlsx, None, None, None),
        Some(Packing::Parquet) => return (FileFormat::Parquet, None, None, None),
        Some(Packing::Text(text) | Packing::Member { text, .. }) => *text,
        None => TextPacking::default(),
    };
    let compression = text.compression.map(|compression| match compression {
        Compression::Gzip => FilePacking::Gzip,
        Compression::Zstd => FilePacking::Zstd,
    });
    let charset = text.charset.map_or_else(|| "utf-8".to_owned(), |charset| charset.name().to_ascii_lowercase());
    match head.dialect.format {
        Format::Csv => {
            let delimiter = char::from(head.dialect.delimiter).to_string();
            (FileFormat::Csv, compression, Some(delimiter), Some(charset))
        }
        Format::Jsonl if text.json_array => (FileFormat::Json, compression, None, Some(charset)),
        Format::Jsonl => (FileFormat::Jsonl, compression, None, Some(charset)),
    }
}
