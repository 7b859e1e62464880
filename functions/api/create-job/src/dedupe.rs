//! The dedupe key: a name for what a job does, by which the owner's next request finds it.

use rowmill_core::model::files::{ListedFile, files_of};
use rowmill_core::model::spec::{Source, SourceFile, Spec};
use serde_json::{Value, json};

use crate::request::{CreateJobRequest, add_given, digest};

/// The dedupe key of a job. `None` if it reads no object. The list is that of its files, if it reads many.
///
/// It covers the bytes of the file (ETag and length), how they are read, and everything that the job does with them. So
/// it has the whole spec except names and times: which upload has the bytes does not matter. Deadline and tolerance
/// stand in the request only. A setting that changes how files are cut changes the key too, which costs no more than a
/// new job. The priority is no part of it: it says when a job is done, and changes nothing of what it does. A job that
/// is found keeps its own.
pub fn key(spec: &Spec, list: &[u8], request: &CreateJobRequest) -> Option<String> {
    let Spec {
        job_guid: _,
        owner: _,
        created_at: _,
        job_type,
        source,
        // A job over files as they are takes no part.
        inputs: _,
        head,
        limits,
        scanner_version,
        params,
        max_concurrency,
        output,
        results_to,
        // Deadline, tolerance and notes; the rest stands in the spec.
        request: _,
        // Of importance only to a dataset that is not there yet.
        new_dataset_partitions: _,
    } = spec;
    let file = match source {
        Source::Files(files) => SourceFile { etag: bytes_of(list)?, size: files.bytes, ..files.list.clone() },
        source => source.file()?.clone(),
    };
    let packing = match source {
        Source::Packed { packing, .. } => json!(packing),
        Source::File(_) | Source::Dataset { .. } | Source::Files(_) | Source::Awaited(_) => Value::Null,
    };
    let mut fields = json!({
        "jobType": job_type,
        "etag": file.etag,
        "size": file.size,
        "packing": packing,
        "head": head,
        "limits": limits,
        "scannerVersion": scanner_version,
        "params": params,
        "tolerance": request.tolerance,
        "maxConcurrency": max_concurrency,
        "deadlineSeconds": request.deadline_seconds,
        "output": output,
    });
    let optional = [
        ("resultsTo", json!(results_to)),
        ("startWithinSeconds", json!(request.start_within_seconds)),
        ("keepSeconds", json!(request.keep_seconds)),
    ];
    add_given(&mut fields, optional);
    Some(digest(&fields))
}

/// A digest of the bytes of these files, in their order, and of what may decide how they are read.
fn bytes_of(list: &[u8]) -> Option<String> {
    let files = files_of(list).map(|file| {
        let ListedFile { name, etag, size, content_type, .. } = file.ok()?;
        Some(json!([endings(&name), etag, size, content_type]))
    });
    Some(digest(&Value::from(files.collect::<Option<Vec<_>>>()?)))
}

/// The end of a name, which may tell the format: `csv`, `json.gz`.
fn endings(name: &str) -> &str {
    let ending = |name: &str| name.rfind('.').map_or(name.len(), |dot| dot);
    let last = ending(name);
    let is_packing = matches!(name.get(last..), Some(".gz" | ".zst"));
    let start = if is_packing { ending(&name[..last]) } else { last };
    name.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use rowmill_api::request::Tolerance;
    use rowmill_core::model::job::Priority;
    use rowmill_core::model::packing::Packing;
    use rowmill_core::model::results::ResultsTo;
    use rowmill_testing::fixtures;

    const GUID: &str = "00000000-0000-4000-8000-000000000009";

    fn file(spec: &Spec) -> SourceFile {
        spec.source.file().unwrap().clone()
    }

    #[test]
    fn only_the_end_of_a_name_tells_how_a_file_is_read() {
        for (name, end) in
            [("a.csv", ".csv"), ("b.c.json.gz", ".json.gz"), ("a.gz", ".gz"), ("a", ""), (".zst", ".zst")]
        {
            assert_eq!(endings(name), end, "{name}");
        }
    }

    #[test]
    fn the_key_is_that_of_the_bytes_and_of_what_is_done_with_them() {
        let (spec, request) = (fixtures::spec(), CreateJobRequest::default());
        let of = |spec: &Spec| key(spec, &[], &request).unwrap();
        let upload = SourceFile { file_guid: Some(GUID.parse().unwrap()), key: "uploads/9".into(), ..file(&spec) };
        let same = Spec {
            job_guid: GUID.parse().unwrap(),
            created_at: Timestamp::UNIX_EPOCH,
            source: Source::File(upload),
            ..spec.clone()
        };
        assert_eq!(of(&same), of(&spec), "another upload of the same bytes");

        let with = |change: &dyn Fn(&mut Spec)| {
            let mut other = spec.clone();
            change(&mut other);
            other
        };
        let source = |change: &dyn Fn(&mut SourceFile)| {
            let mut file = file(&spec);
            change(&mut file);
            Source::File(file)
        };
        let others = [
            with(&|other| other.job_type = "other".into()),
            with(&|other| other.source = source(&|file| file.etag = "other".into())),
            with(&|other| other.source = source(&|file| file.size += 1)),
            with(&|other| other.source = Source::Packed { file: file(&spec), packing: Packing::Parquet }),
            with(&|other| other.head.data_start += 1),
            with(&|other| other.limits.max_items += 1),
            with(&|other| other.scanner_version += 1),
            with(&|other| other.params = json!({ "dryRun": true }).as_object().cloned().unwrap()),
            with(&|other| other.max_concurrency = Some(7)),
            with(&|other| {
                let (bucket, prefix) = ("b".into(), String::new());
                other.results_to = Some(ResultsTo { bucket, prefix });
            }),
        ];
        let mut keys: Vec<String> = others.iter().map(of).collect();
        keys.push(of(&spec));
        let deadline = CreateJobRequest { deadline_seconds: Some(60), ..CreateJobRequest::default() };
        keys.extend(key(&spec, &[], &deadline));
        let tolerance = Some(Tolerance { percent: None, count: Some(1), minimum_items: None });
        keys.extend(key(&spec, &[], &CreateJobRequest { tolerance, ..CreateJobRequest::default() }));
        let high = CreateJobRequest { priority: Some(Priority::High), ..CreateJobRequest::default() };
        assert_eq!(key(&spec, &[], &high), key(&spec, &[], &request), "the priority does not change what the job does");
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 13, "each of them is another job");
    }
}
