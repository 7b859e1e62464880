//! Jobs over many files on the stack: uploads, and objects of an external bucket.

use acceptance::files;
use acceptance::local_stack::{LocalStack, answer, refused};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::command::User;
use crate::stack::on_the_stack;

/// The external bucket that the stack may read.
pub const BUCKET: &str = "rowmill-inputs";

async fn stored(stack: &LocalStack, name: &str, bytes: impl Into<Vec<u8>>) -> String {
    let path = format!("/api/uploads?fileName={name}");
    let request = stack.post(&path).header("content-type", "application/octet-stream").body(bytes.into());
    let (status, upload) = answer(request).await;
    assert_eq!(status, StatusCode::CREATED, "{upload}");
    upload["fileGuid"].as_str().expect("a guid").to_owned()
}

/// The files of a job, a few at a time.
async fn listed(stack: &LocalStack, job: &str) -> Vec<Value> {
    let (mut files, mut after) = (Vec::new(), String::new());
    loop {
        let (_, page) = answer(stack.get(&format!("/api/jobs/{job}/files?limit=70{after}"))).await;
        files.extend(page["files"].as_array().expect("files").clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return files,
        }
    }
}

/// A CSV file with this many good rows and one bad one.
fn with_a_bad_row(rows: u64) -> Vec<u8> {
    let mut text = files::plain_csv(rows);
    text.extend_from_slice(b"one cell\n");
    text
}

#[test]
fn one_job_reads_uploads_of_different_formats() {
    on_the_stack(async |stack| {
        let lines = "{\"id\": 1}\nnot JSON\n";
        let uploads = [
            stored(stack, "a.csv", with_a_bad_row(1000)).await,
            stored(stack, "b.csv.gz", files::gzip(&files::plain_csv(500))).await,
            stored(stack, "c.jsonl", lines).await,
            stored(stack, "broken.csv.gz", &files::gzip(&files::plain_csv(5000))[..2000]).await,
        ];
        let (job, shown) = stack.run_from(&json!({ "jobType": "validate", "source": { "files": uploads } })).await;
        let files = listed(stack, &job).await;
        let counts: Vec<_> = files.iter().map(|file| (&file["name"], &file["rows"], &file["failed"])).collect();
        let expected = [json!(["a.csv", 1001, 1]), json!(["b.csv.gz", 500, 0]), json!(["c.jsonl", 2, 1])];
        let expected: Vec<_> = expected.iter().map(|one| (&one[0], &one[1], &one[2])).collect();
        assert_eq!(counts[..3], expected);
        let broken = &files[3];
        assert_eq!((&broken["failed"], &broken["problem"]["code"]), (&json!(1), &json!("unreadable_file")), "{broken}");
        let rows: u64 = files.iter().map(|file| file["rows"].as_u64().expect("a number")).sum();
        assert_eq!((&shown["itemCount"], &shown["itemsFailed"], &shown["files"]), (&json!(rows), &json!(3), &json!(4)));
        let failed = answer(stack.get(&format!("/api/jobs/{job}/items?outcome=failed"))).await.1;
        assert_eq!(failed["items"][1]["file"]["name"], "c.jsonl", "{failed}");
        assert_eq!((&failed["items"][1]["file"]["row"], &failed["table"]["format"]), (&json!(2), &json!("text")));
        let audit = answer(stack.get(&format!("/api/jobs/{job}/audit"))).await.1;
        assert_eq!(audit["verdict"], "proved", "{audit}");
        let (_, problem) = answer(stack.get(&format!("/api/jobs/{job}/files?after=1-1-1-0-0-0-0"))).await;
        assert_eq!(problem["code"], "invalid_query", "{problem}");
    });
}

#[test]
fn one_job_reads_the_files_in_a_zip_archive() {
    on_the_stack(async |stack| {
        let cut = files::gzip(&files::plain_csv(5))[..20].to_vec();
        let members = [("a/good.csv", with_a_bad_row(2000)), ("b.json", files::unicode_json()), ("cut.csv.gz", cut)];
        let upload = stored(stack, "all.zip", files::zip(&members)).await;
        let (job, shown) = stack.run_from(&json!({ "jobType": "validate", "fileGuid": upload })).await;
        let files = listed(stack, &job).await;
        let counts: Vec<_> = files.iter().map(|file| json!([file["name"], file["rows"], file["failed"]])).collect();
        assert_eq!(counts, [json!(["a/good.csv", 2001, 1]), json!(["b.json", 11_231, 0]), json!(["cut.csv.gz", 1, 1])]);
        assert_eq!((&shown["itemCount"], &shown["itemsFailed"]), (&json!(13_233), &json!(2)), "{shown}");
        let audit = answer(stack.get(&format!("/api/jobs/{job}/audit"))).await.1;
        assert_eq!(audit["verdict"], "proved", "{audit}");
        let request = stack.post(&format!("/api/uploads/{upload}/preview")).json(&json!({}));
        let (_, preview) = answer(request).await;
        assert_eq!((&preview["member"], &preview["rows"][1]["row"]), (&json!("a/good.csv"), &json!(2)), "{preview}");
    });
}

/// An object of many kinds: the end of its name, its bytes and its rows; `None` for each fiftieth, which is damaged.
fn object(number: u64) -> (&'static str, Vec<u8>, Option<u64>) {
    if number % 50 == 1 {
        return match number % 100 {
            1 => ("csv.gz", b"\x1f\x8b not gzip".to_vec(), None),
            _ => ("parquet", b"PAR1\x15\0 no footer".to_vec(), None),
        };
    }
    let rows = 1 + number % 7;
    let objects = |between: &str| vec!["{\"id\": 1}"; usize::try_from(rows).unwrap_or(1)].join(between);
    match number % 5 {
        0 => ("csv.gz", files::gzip(&files::plain_csv(rows)), Some(rows)),
        1 => ("jsonl", objects("\n").into_bytes(), Some(rows)),
        2 => ("json", format!("[\n  {}\n]\n", objects(",\n  ")).into_bytes(), Some(rows)),
        // As the crate `parquet` wrote it, and counts it.
        3 => ("parquet", files::data("fuzz/parquet/features-0"), Some(8)),
        _ => ("csv", files::plain_csv(rows), Some(rows)),
    }
}

#[test]
fn one_job_reads_the_objects_of_a_bucket_where_they_lie() {
    on_the_stack(async |stack| {
        // By hand with more of them: `ROWMILL_OBJECTS=10000`.
        let objects: u64 = std::env::var("ROWMILL_OBJECTS").map_or(300, |count| count.parse().expect("a number"));
        for numbers in (0..objects).collect::<Vec<_>>().chunks(20) {
            join_all(numbers.iter().map(|number| async move {
                let (name, bytes, _) = object(*number);
                stack.lay_down(BUCKET, &format!("local/in/{number:06}.{name}"), bytes).await;
            }))
            .await;
        }
        stack.lay_down(BUCKET, "another/in/secret.csv", "a\n1\n").await;
        let source = json!({ "s3": { "bucket": BUCKET, "prefix": "local/in/" } });
        let (job, shown) = stack.run_from(&json!({ "jobType": "validate", "source": source })).await;
        let rows: Vec<Option<u64>> = (0..objects).map(|number| object(number).2).collect();
        let good: u64 = rows.iter().flatten().sum();
        let damaged = rows.iter().filter(|rows| rows.is_none()).count();
        println!("{objects} objects: {}", shown["cost"]);
        assert_eq!((&shown["itemsSucceeded"], &shown["itemsFailed"]), (&json!(good), &json!(damaged)), "{shown}");
        let files = listed(stack, &job).await;
        assert_eq!(files.len() as u64, objects);
        for (number, file) in (0..).zip(&files) {
            let rows = rows[number];
            assert_eq!(file["number"], number);
            assert_eq!((&file["succeeded"], &file["state"]), (&json!(rows.unwrap_or(0)), &json!("done")), "{file}");
            assert_eq!(file["problem"]["code"].as_str(), rows.is_none().then_some("unreadable_file"), "{file}");
        }
        let audit = stack.audit(&job).await;
        assert_eq!(audit["verdict"], "proved", "{audit}");
        for source in [
            json!({ "s3": { "bucket": BUCKET, "prefix": "another/in/" } }),
            json!({ "s3": { "bucket": stack.output("Bucket"), "prefix": "local/" } }),
        ] {
            let request = stack.post("/api/jobs").json(&json!({ "jobType": "validate", "source": source }));
            refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
        }
    });
}

#[test]
fn the_command_runs_one_job_on_several_files_and_on_objects() {
    on_the_stack(async |stack| {
        let user = User::of(stack);
        let one = user.file("one.csv", b"id\n1\n2\n");
        user.file("two.csv", b"id;x\n3;4\n");
        let pattern = one.replace("one.csv", "*.csv");
        let ran = user.runs(&["run", &pattern, "--type", "validate"]).await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("\n  succeeded  3\n"), "{}", ran.out);
        stack.lay_down(BUCKET, "local/command/a.csv", "id\n1\n").await;
        stack.lay_down(BUCKET, "local/command/b.txt", "id\n1\n").await;
        let listed = format!("{BUCKET},local/command/a.csv\n{BUCKET},local/none.csv\n");
        let manifest = user.file("manifest.csv", listed.as_bytes());
        let ran = user.runs(&["run", &manifest, "--manifest", "--type", "validate"]).await;
        assert_eq!(ran.code, Some(3), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("\n  succeeded  1\n") && ran.out.contains("file_not_allowed"), "{}", ran.out);
        let copied = user.runs(&["upload", &format!("s3://{BUCKET}/local/command/a.csv")]).await;
        let upload = copied.out.trim();
        assert_eq!((copied.code, upload.len()), (Some(0), 36), "{}{}", copied.out, copied.err);
        let ran = user.runs(&["run", upload, "--type", "validate"]).await;
        assert!(ran.out.contains("\n  succeeded  1\n"), "{}{}", ran.out, ran.err);
        let objects = format!("s3://{BUCKET}/local/command/*.csv");
        let ran = user.runs(&["run", &objects, "--type", "validate"]).await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("\n  succeeded  1\n"), "{}", ran.out);
    });
}
